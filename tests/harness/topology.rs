//! Topologies that are missing or wrong say so, with the same text however they were written.

use servicebus_harness::{Error, prelude::*};

async fn refusal(topology: Topology) -> Error {
    let started = ServiceBus::builder()
        .topology(topology)
        .start()
        .result()
        .await;
    started.expect_err("this topology should not start")
}

#[tokio::test]
async fn a_missing_file_names_the_paths_that_were_tried() {
    let error = refusal(Topology::file("tests/harness/fixtures/nowhere.json")).await;
    let current = std::env::current_dir().unwrap();
    let fixtures = current.join("tests/harness/fixtures");
    assert_eq!(
        error.to_string(),
        format!(
            "no topology file at {0}/nowhere.json; {0} has invalid.json, orders.json, two_namespaces.json",
            fixtures.display()
        )
    );
    let error = refusal(Topology::file("no/where/orders.json")).await;
    assert_eq!(
        error.to_string(),
        format!(
            "no topology file at {}/no/where/orders.json; a relative path is looked for in the package under test, then in the current directory",
            current.display()
        )
    );
}

#[tokio::test]
async fn an_invalid_file_lists_every_problem_with_its_place() {
    let error = refusal(Topology::file("tests/harness/fixtures/invalid.json")).await;
    assert_eq!(error.kind(), ErrorKind::Topology);
    let current = std::env::current_dir().unwrap();
    let fixtures = format!("{}/tests/harness/fixtures", current.display());
    assert_eq!(
        error.to_string().replace(&fixtures, "…"),
        "the topology is invalid:
…/invalid.json:7:67: UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647
…/invalid.json:7:86: UserConfig.Namespaces[0].Queues[0].Properties.LockDuration: \"PT1S\" is not allowed; allowed: 5 s (PT5S) to 5 min (PT5M)"
    );
}

#[tokio::test]
async fn the_builder_is_refused_in_the_words_of_the_file() {
    let queue = Queue::new("orders")
        .max_delivery_count(0)
        .lock_duration(std::time::Duration::from_secs(1));
    let built = refusal(Topology::new().queue(queue)).await.to_string();
    let read = refusal(Topology::file("tests/harness/fixtures/invalid.json")).await;

    let mut built: Vec<&str> = built.lines().map(without_place).collect();
    let read = read.to_string();
    let mut read: Vec<&str> = read.lines().map(without_place).collect();
    built.sort_unstable();
    read.sort_unstable();
    assert_eq!(built, read);
}

/// Leaves the path within the document and what is wrong there.
fn without_place(line: &str) -> &str {
    line.split_once(": ")
        .map_or(line, |(_place, problem)| problem)
}

#[tokio::test]
async fn a_file_is_not_mixed_with_the_builder() {
    let mixed = Topology::file("orders.json").queue(Queue::new("orders"));
    assert_eq!(
        refusal(mixed).await.to_string(),
        "the topology file orders.json cannot be extended by the builder: write it all in one of the two"
    );
}

#[tokio::test]
async fn settings_of_the_namespace_take_effect() {
    let topology = Topology::new()
        .queue(Queue::new("orders"))
        .locks_on_detach(LocksOnDetach::Release);
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let orders = servicebus.queue("orders");
    orders.send("hello").await;
    drop(orders.receive().await);
    // Under `keep`, the message would stay locked for a minute.
    assert_eq!(orders.receive().await.delivery_count(), 1);
}

/// A test runs on what a template deploys.
#[tokio::test]
async fn a_template_is_a_topology() {
    let nested = Topology::arm("fixtures/arm/nested.json");
    let text = refusal(nested.clone()).await.to_string();
    let expected = "the parameter serviceBusNamespaceName has no default and needs a value";
    assert!(
        text.contains(expected) && text.contains("nested.json"),
        "{text}"
    );

    let deployed = nested.parameter("serviceBusNamespaceName", "market");
    let servicebus = ServiceBus::builder().topology(deployed).start().await;
    assert_eq!(servicebus.namespace(), "market");
    let gold = |subject| {
        Message::from("a price")
            .subject(subject)
            .application_property("tier", "gold")
    };
    let prices = servicebus.topic("prices");
    prices.send(gold("us")).await;
    prices.send(gold("eu").message_id("p-1")).await;
    let eu = servicebus.subscription("prices", "sub-eu");
    let received = eu.receive().await;
    assert_eq!(received.message_id.as_deref(), Some("p-1"));
    received.complete().await;
    assert_empty!(eu).await;
}

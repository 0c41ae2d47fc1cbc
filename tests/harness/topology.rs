//! Topologies that are missing or wrong say so, in the same words however they were written.

use servicebus_harness::{StartError, TopologyError, prelude::*};

async fn refusal(topology: Topology) -> StartError {
    let started = ServiceBus::builder().topology(topology).start().await;
    started.expect_err("this topology should not start")
}

#[tokio::test]
async fn a_missing_file_names_the_paths_that_were_tried() {
    let error = refusal(Topology::file("tests/harness/fixtures/nowhere.json")).await;
    let expected = std::env::current_dir().unwrap();
    let expected = expected.join("tests/harness/fixtures/nowhere.json");
    assert_eq!(
        error.to_string(),
        format!("no topology file at {}", expected.display())
    );
}

#[tokio::test]
async fn an_invalid_file_lists_every_problem_with_its_place() {
    let error = refusal(Topology::file("tests/harness/fixtures/invalid.json")).await;
    assert!(matches!(
        error,
        StartError::Topology(TopologyError::Invalid(_))
    ));
    let text = error.to_string();
    assert!(text.starts_with("the topology is invalid:\n"), "{text}");
    assert!(text.contains("fixtures/invalid.json:7:"), "{text}");
    assert!(text.contains("MaxDeliveryCount"), "{text}");
    assert!(text.contains("LockDuration"), "{text}");
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
    let servicebus = servicebus.unwrap();
    let orders = servicebus.queue("orders");
    orders.send("hello").await;
    drop(orders.receive().await);
    // Under `keep`, the message would stay locked for a minute.
    assert_eq!(orders.receive().await.delivery_count(), 1);
}

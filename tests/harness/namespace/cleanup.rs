//! Which entities are deleted when a `ServiceBus` ends, in whatever way, and which are kept.

use super::*;

#[test]
fn entities_are_deleted_after_a_panic() {
    let panics = async {
        let servicebus = ServiceBus::builder().topology(orders()).start().await;
        servicebus.queue("orders").send("left").await;
        panic!("as a failed assertion does");
    };
    with_child(panics, async |external| {
        let output = external.run_child().await;
        assert!(output.contains("as a failed assertion does"), "{output}");
        assert!(!external.has("orders").await, "orders was left");
    });
}

#[test]
fn entities_of_a_killed_run_are_deleted_later() {
    let dies = async {
        let servicebus = ServiceBus::builder().topology(orders()).start().await;
        servicebus.queue("orders").send("left").await;
        match env::var_os("STAYS") {
            Some(_) => std::process::abort(),
            None => assert_empty!(servicebus.queue("orders")).await,
        }
    };
    with_child(dies, async |external| {
        for by_itself in [true, false] {
            let mut dying = external.command();
            dying.env("STAYS", "1");
            assert!(!output(dying).await.0);
            assert!(external.has("orders").await, "the process was killed");
            if by_itself {
                external.servicebus.clock().advance(301 * SECOND).await;
                assert!(!external.has("orders").await, "orders was left");
            }
        }
        // Its first message is gone with the queue; only what it sends itself is there, which it says.
        let output = external.run_child().await;
        assert!(output.contains("orders holds 1 message"), "{output}");
        assert!(!external.has("orders").await, "orders was left");
    });
}

#[test]
fn what_a_killed_run_created_at_run_time_can_be_created_again() {
    let dies = async {
        let servicebus = ServiceBus::builder().topology(orders()).start().await;
        let later = servicebus.create_queue(Queue::new("later")).await;
        assert_empty!(later).await;
        let shared = Subscription::new("of-a-test");
        servicebus.create_subscription("shared", shared).await;
        let again = Subscription::new("of-a-test");
        let error = error_of(servicebus.create_subscription("shared", again)).await;
        assert!(error.contains("there is a subscription"), "{error}");
        later.send("left").await;
        if env::var_os("STAYS").is_some() {
            std::process::abort();
        }
    };
    with_child(dies, async |external| {
        external.servicebus.create_topic(Topic::new("shared")).await;
        let mut dying = external.command();
        dying.env("STAYS", "1");
        assert!(!output(dying).await.0);
        assert!(external.has("later").await, "the process was killed");
        external.assert_passes().await;
        for name in ["later", "shared/Subscriptions/of-a-test"] {
            assert!(!external.has(name).await, "{name} was left");
        }
        assert!(external.has("shared").await, "the topic is another's");
    });
}

#[test]
fn entities_of_others_are_kept() {
    let refused = async {
        let error = error_of(ServiceBus::builder().topology(orders()).start()).await;
        let expected = "the namespace has a queue \"orders\" that no test created: delete it, or use a namespace only for tests";
        assert_eq!(error, expected);
    };
    with_child(refused, async |external| {
        let orders = external.servicebus.create_queue(Queue::new("orders"));
        let orders = orders.await;
        orders.send("theirs").await;
        external.assert_passes().await;
        assert_message_count!(orders, active = 1).await;
    });
}

#[test]
fn entities_are_deleted_also_if_the_reply_to_their_creation_was_lost() {
    let interrupted = async {
        let servicebus = ServiceBus::builder().topology(orders()).start().await;
        let error = error_of(servicebus.create_queue(Queue::new("later"))).await;
        assert!(error.contains("does not answer"), "{error}");
        servicebus.stop().await;
        let theirs = Topology::new().queue(Queue::new("theirs"));
        let error = error_of(ServiceBus::builder().topology(theirs).start()).await;
        assert!(error.contains("does not answer"), "{error}");
    };
    with_child(interrupted, async |external| {
        external.servicebus.create_queue(Queue::new("theirs")).await;
        for name in ["later", "theirs"] {
            let creation = external.servicebus.faults().on(Operation::Http);
            creation.named("PUT").entity(name).lose_reply().await;
        }
        external.assert_passes().await;
        assert!(!external.has("later").await, "later was left");
        assert!(external.has("theirs").await, "theirs was removed");
    });
}

//! Tests of a worker in a separate file. A test with an argument `servicebus` has a namespace of its own.
//!
//! `cargo test --example first_test`

#![expect(clippy::print_stdout, reason = "an example talks to its reader")]

fn main() {
    println!("this example is made of tests: cargo test --example first_test");
}

#[cfg(test)]
#[expect(clippy::large_futures, reason = "the futures of the SDK are")]
mod shop;

#[cfg(test)]
#[expect(clippy::large_futures, reason = "the futures of the SDK are")]
mod tests {
    use super::shop;

    use rstest::rstest;
    use servicebus_harness::prelude::*;

    #[rstest]
    #[tokio::test]
    async fn a_poison_order_is_dead_lettered(
        #[future(awt)]
        #[with(Topology::file("fixtures/config/orders.json"))]
        servicebus: ServiceBus,
    ) {
        let orders = servicebus.queue("orders");
        orders.send("not json").await; // arrange, as another party would

        let worker = shop::Worker::connect(servicebus.connection_string());
        worker.handle(3).await; // the code under test, with a real SDK

        assert_dead_lettered!(orders, reason = "MaxDeliveryCountExceeded").await;
    }

    #[rstest]
    #[case::whole("{}", 0)]
    #[case::torn("{", 1)]
    #[tokio::test]
    async fn only_json_passes(
        #[future(awt)]
        #[with(Topology::new().queue(Queue::new("orders").max_delivery_count(1)))]
        servicebus: ServiceBus,
        #[case] body: &str,
        #[case] dead: u64,
    ) {
        let orders = servicebus.queue("orders");
        orders.send(body).await;
        let worker = shop::Worker::connect(servicebus.connection_string());
        worker.handle(1).await;
        assert_message_count!(orders, active = 0, dead_letter = dead).await;
    }
}

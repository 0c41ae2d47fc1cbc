//! The example of `harness/EXPLORATION.md`, word by word: its bug is found.

use std::sync::{Arc, Mutex};

use servicebus_harness::{explore::explore, prelude::*};

#[should_panic(expected = "replay: SERVICEBUS_EXPLORE='x1:worker.")]
#[test]
fn every_order_is_charged_once() {
    explore(Topology::new().queue(Queue::new("orders")), async |run| {
        let orders = run.queue("orders");
        let sent = ["o-1", "o-2"].map(|id| Message::from("12.50").message_id(id));
        orders.send_all(sent).await;
        let charged = Arc::new(Mutex::new(Vec::new())); // outlives crashes; new in each run
        let till = Arc::clone(&charged);
        run.party("worker", async move |bus| {
            let mut client = bus.client().await.unwrap();
            let options = Default::default();
            let receiver = client.create_receiver_for_queue("orders", options).await;
            let mut orders = receiver.unwrap();
            while let Ok(order) = orders.receive_message().await {
                let id = order.message_id().unwrap().into_owned();
                till.lock().unwrap().push(id);
                let _ = orders.complete_message(&order).await;
            }
        });
        run.wait_idle().await; // nothing more will happen
        assert_eq!(*charged.lock().unwrap(), ["o-1", "o-2"]);
    });
}

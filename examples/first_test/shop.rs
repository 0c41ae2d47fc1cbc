//! The code under test: a worker that does not depend on tests.

use azservicebus::{ServiceBusClient, ServiceBusClientOptions};

pub(crate) struct Worker(String);

impl Worker {
    pub(crate) fn connect(connection_string: &str) -> Self {
        Self(connection_string.to_owned())
    }

    /// Processes this number of deliveries of orders; an order that is not JSON is abandoned and delivered again.
    pub(crate) async fn handle(self, deliveries: u32) {
        let options = ServiceBusClientOptions::default();
        let connecting = ServiceBusClient::unsecured().new_from_connection_string(self.0, options);
        let mut client = connecting.await.unwrap();
        let receiving = client.create_receiver_for_queue("orders", Default::default());
        let mut orders = receiving.await.unwrap();
        for _ in 0..deliveries {
            let order = orders.receive_message().await.unwrap();
            match serde_json::from_slice::<serde_json::Value>(order.body().unwrap()) {
                Ok(_) => orders.complete_message(&order).await.unwrap(),
                Err(_) => orders.abandon_message(&order, None).await.unwrap(),
            }
        }
        client.dispose().await.unwrap();
    }
}

//! Seeded bugs.

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

use servicebus_harness::{
    explore::{Effect, Explore, Party, Run},
    prelude::*,
};
use tokio::time::timeout;

type Outcome = Result<(), Box<dyn Error>>;

/// How often each order was charged; what survives a crash.
#[derive(Debug, Default)]
struct Bank(Mutex<BTreeMap<String, u32>>);

impl Bank {
    fn charge(&self, id: &str) {
        *self.0.lock().unwrap().entry(id.to_owned()).or_default() += 1;
    }

    fn has_charged(&self, id: &str) -> bool {
        self.0.lock().unwrap().contains_key(id)
    }

    fn assert_once(&self, ids: &[&str]) {
        let charges = self.0.lock().unwrap().clone();
        let expected = ids.iter().map(|id| ((*id).to_owned(), 1)).collect();
        assert_eq!(charges, expected);
    }
}

const IDS: [&str; 3] = ["o-1", "o-2", "o-3"];

async fn put_orders(run: &Run) {
    let orders = run.queue("orders");
    orders
        .send_all(IDS.map(|id| Message::from("12.50").message_id(id)))
        .await;
}

fn orders() -> Topology {
    Topology::new().queue(Queue::new("orders"))
}

/// Charges each order and completes it.
async fn work(bus: Party, bank: &Bank, looks_at_id: bool) -> Outcome {
    let mut client = bus.client().await?;
    // azservicebus 0.25.1 waits forever for a token whose connection drops before the service has it.
    let receiver = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = timeout(Duration::from_secs(60), receiver).await??;
    loop {
        let order = orders.receive_message().await?;
        let id = order.message_id().ok_or("an order has an id")?.into_owned();
        if !looks_at_id || !bank.has_charged(&id) {
            bank.charge(&id);
        }
        orders.complete_message(&order).await?;
    }
}

fn charge_twice(
    looks_at_id: bool,
    effects: impl IntoIterator<Item = Effect>,
) -> Result<String, String> {
    Explore::new(orders())
        .effects(effects)
        .result(async move |run| {
            put_orders(run).await;
            let bank = Arc::new(Bank::default());
            let till = Arc::clone(&bank);
            run.party("worker", async move |bus| {
                work(bus, &till, looks_at_id).await
            });
            run.wait_idle().await;
            bank.assert_once(&IDS);
            assert_empty!(run.queue("orders")).await;
        })
}

#[test]
fn charges_without_looking_at_the_id() {
    let report = charge_twice(false, [Effect::LoseLock]).unwrap_err();
    let found = format!("{} at worker.complete@orders/o-1#1", Effect::LoseLock);
    assert!(report.contains(&found), "{report}");
    charge_twice(true, []).unwrap();
}

//! Workers that rely on an order in which the queue need not deliver, or in which they happen to run.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::sleep;

use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    TrustsTheOrder,
    WritesWhatItReadBefore,
}

/// Sets a price to that of each message.
async fn set_price(bus: Party, price: &Mutex<u32>, takes: Duration, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut prices = receiver(&mut client, "prices").await?;
    loop {
        let message = next(&mut prices).await?;
        let version: u32 = id(&message).parse()?;
        sleep(takes).await;
        {
            let mut price = price.lock().unwrap();
            if *price < version || bug == Some(Bug::TrustsTheOrder) {
                *price = version;
            }
        }
        prices.complete_message(&message).await?;
    }
}

#[test]
fn two_workers_rely_on_the_order_of_the_queue() {
    let explore = |_| Explore::new(Topology::new().queue(Queue::new("prices")));
    let fault = "elsewhere at fast.receive@prices/1#1";
    finds(Bug::TrustsTheOrder, fault, explore, |bug| {
        async move |run: &Run| {
            let price = Arc::new(Mutex::new(0));
            for (name, millis) in [("fast", 10), ("slow", 100)] {
                let (price, takes) = (Arc::clone(&price), Duration::from_millis(millis));
                run.party(name, async move |bus| {
                    set_price(bus, &price, takes, bug).await
                });
                sleep(Duration::from_secs(1)).await;
            }
            for id in ["1", "2"] {
                let prices = run.queue("prices");
                prices.send(Message::from("{}").message_id(id)).await;
            }
            run.wait_idle().await;
            assert_eq!(*price.lock().unwrap(), 2);
        }
    });
}

/// Adds each payment to the total, by the rate that comes next.
async fn add(bus: Party, total: &Mutex<u32>, added: &CountTable, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut payments = receiver(&mut client, "payments").await?;
    let mut rates = receiver(&mut client, "rates").await?;
    loop {
        let payment = next(&mut payments).await?;
        let id = id(&payment);
        if !added.has(&id) {
            let before = *total.lock().unwrap();
            let rate = next(&mut rates).await?;
            rates.complete_message(&rate).await?;
            if !added.has(&id) {
                added.add(&id);
                let mut total = total.lock().unwrap();
                let before = if bug.is_some() { before } else { *total };
                *total = before + 1;
            }
        }
        payments.complete_message(&payment).await?;
    }
}

#[test]
fn writes_a_total_that_it_read_before_a_wait() {
    let topology = Topology::new()
        .queue(Queue::new("payments"))
        .queue(Queue::new("rates"));
    let explore = |_| Explore::new(topology.clone());
    let fault = "postpone at a.receive@rates/r-1#1";
    finds(Bug::WritesWhatItReadBefore, fault, explore, |bug| {
        async move |run: &Run| {
            let (total, added) = (Arc::new(Mutex::new(0)), CountTable::default());
            let rates = ["r-1", "r-2", "r-3", "r-4", "r-5", "r-6"];
            let rates = rates.map(|id| Message::from("1").message_id(id));
            run.queue("rates").send_all(rates).await;
            for name in ["a", "b"] {
                let (total, added) = (Arc::clone(&total), added.clone());
                run.party(name, async move |bus| add(bus, &total, &added, bug).await);
                sleep(Duration::from_secs(1)).await;
            }
            let payments = run.queue("payments");
            let pay = |id| payments.send(Message::from("1").message_id(id));
            // The second is paid when there was time to handle the first, but no time has passed.
            let later = async {
                for _ in 0..20 {
                    // A service that is updated detaches the test's link, too.
                    let _ = payments.peek().result().await;
                }
                pay("p-2").await;
            };
            tokio::join!(pay("p-1"), later);
            run.wait_idle().await;
            assert_eq!(*total.lock().unwrap(), 2);
        }
    });
}

//! The code of the examples, which has no bug that exploration knows.

use std::sync::Arc;

use servicebus_harness::{
    explore::{Explore, Run},
    prelude::*,
};
use tokio::{sync::Mutex, time::Duration};

use crate::support::{IDS, Outcome, bodies, connect, orders, put_orders};

#[path = "../../examples/deadline.rs"]
#[expect(dead_code, reason = "the example's `main` is not run")]
mod deadline;
#[path = "../../examples/outbox.rs"]
#[expect(dead_code, reason = "the example's `main` is not run")]
mod outbox;
#[path = "../../examples/worker.rs"]
#[expect(dead_code, reason = "the example's `main` is not run")]
mod worker;

/// Runs of each.
const BUDGET: u32 = 80;

#[test]
fn the_worker_charges_each_order_once() {
    Explore::new(orders())
        .budget(BUDGET)
        .run(async |run: &Run| {
            put_orders(run).await;
            let charged = Arc::new(worker::Charged::default());
            let till = Arc::clone(&charged);
            run.party("worker", async move |bus| -> Outcome {
                worker::work(connect(&bus).await?, &till).await
            });
            run.wait_idle().await;
            let mut charged = charged.lock().unwrap().clone();
            charged.sort();
            assert_eq!(charged, IDS);
            assert_empty!(run.queue("orders")).await;
        });
}

#[test]
fn the_outbox_sends_each_event_once() {
    let events = Queue::new("events").requires_duplicate_detection(true);
    let explore = Explore::new(Topology::new().queue(events)).budget(BUDGET);
    explore.run(async |run: &Run| {
        let rows = [("row-1", "paid"), ("row-2", "placed"), ("row-3", "shipped")];
        let rows = Mutex::new(outbox::Outbox::from(rows));
        run.job("relay", async move |bus| {
            outbox::relay(&mut *rows.lock().await, bus.connection_string()).await
        });
        run.wait_idle().await;
        assert_eq!(bodies(run, "events").await, ["paid", "placed", "shipped"]);
    });
}

#[test]
fn a_job_that_expired_is_done_nevertheless() {
    let jobs = Queue::new("jobs").dead_lettering_on_message_expiration(true);
    let slow = Queue::new("slow").requires_duplicate_detection(true);
    let explore = Explore::new(Topology::new().queue(jobs).queue(slow)).budget(BUDGET);
    explore.run(async |run: &Run| {
        let job = Message::from("resize").message_id("job-1");
        let job = job.time_to_live(Duration::from_secs(60));
        run.queue("jobs").send(job).await;
        run.job("rescue", async |bus| -> Outcome {
            deadline::rescue(connect(&bus).await?).await
        });
        run.wait_idle().await;
        // Its dead letter may stay, as the completion of that may be lost; the next rescue sends nothing twice.
        assert_eq!(bodies(run, "slow").await, ["resize"]);
    });
}

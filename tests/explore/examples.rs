//! The code of the examples, which has no bug that exploration knows.

use std::sync::Arc;

use servicebus_harness::{
    explore::{Explore, Run},
    prelude::*,
};
use tokio::{
    sync::Mutex,
    time::{Duration, sleep},
};

use crate::support::{IDS, Outcome, bodies, connect, orders, put_orders};

#[path = "../../examples/deadline.rs"]
#[expect(dead_code, reason = "the example's `main` is not run")]
mod deadline;
#[path = "../../examples/outbox.rs"]
#[expect(dead_code, reason = "the example's `main` is not run")]
mod outbox;
#[path = "../../examples/session_workflow.rs"]
#[expect(dead_code, reason = "the example's `main` is not run")]
mod session_workflow;
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
fn an_expired_job_is_still_done() {
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

#[test]
fn a_workflow_does_each_step_once() {
    let queue = Queue::new("orders").requires_session(true);
    let explore = Explore::new(Topology::new().queue(queue)).budget(BUDGET);
    explore.run(async |run: &Run| {
        let orders = run.queue("orders");
        let opened = orders.accept_session("o-17").await;
        opened.set_state("[]").await;
        opened.close().await;
        let steps = ["placed", "placed", "paid", "shipped"];
        let steps = steps.map(|step| Message::from(step).session_id("o-17"));
        orders.send_all(steps).await;
        run.job("worker", async |bus| -> Outcome {
            // Until there has been no order for five minutes.
            let mut without = 0;
            while without < 5 {
                let done = session_workflow::carry_on(connect(&bus).await?).await;
                without = if done.is_ok() { 0 } else { without + 1 };
                sleep(Duration::from_secs(1)).await;
            }
            Ok(())
        });
        run.wait_idle().await;
        let done = serde_json::json!(["placed", "paid", "shipped"]);
        assert_session_state!(orders, session = "o-17", json = done).await;
        assert_empty!(orders).await;
    });
}

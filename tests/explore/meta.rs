//! Tests that cannot be explored as they are: each is told what to do, in these words.

use std::{
    error::Error,
    fs,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use azservicebus::ServiceBusMessage;
use servicebus_harness::{
    explore::{Effect, Explore, Party, Run},
    prelude::*,
};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, timeout},
};

type Outcome = Result<(), Box<dyn Error>>;

fn orders() -> Explore {
    Explore::new(Topology::new().queue(Queue::new("orders")))
}

/// Receives and completes.
async fn work(bus: Party) -> Outcome {
    let mut client = bus.client().await?;
    let receiver = client.create_receiver_for_queue("orders", Default::default());
    let mut orders = timeout(Duration::from_secs(60), receiver).await??;
    loop {
        let order = orders.receive_message().await?;
        orders.complete_message(&order).await?;
    }
}

async fn put(run: &Run, id: &str) {
    run.queue("orders")
        .send(Message::from("12.50").message_id(id))
        .await;
}

/// Lets a worker handle one order of this id.
async fn handle(run: &Run, id: &str) {
    put(run, id).await;
    run.party("worker", work);
    run.wait_idle().await;
}

/// Counts runs, as a static, a file or a database does that is not made anew in each.
fn counted() -> impl Fn() -> u32 {
    let runs = Arc::new(AtomicU32::new(0));
    move || runs.fetch_add(1, Ordering::Relaxed) + 1
}

/// Returns what is said without the name of the test.
fn report_of(result: Result<String, String>) -> String {
    let report = result.unwrap_err();
    let name = thread::current().name().unwrap().to_owned();
    report
        .trim_start_matches(&name)
        .trim_start_matches([':', ' '])
        .to_owned()
}

#[test]
fn a_test_that_fails_without_a_fault() {
    let report = report_of(orders().result(async |_| Err::<(), _>("no stock")));
    assert_eq!(
        report,
        "the test fails without any fault; make it pass first\nno stock"
    );
}

#[test]
fn a_flaky_base_run() {
    let count = counted();
    let report = report_of(orders().result(async move |run| {
        let number = count();
        handle(run, &format!("o-{number}")).await;
        (number == 1).then_some(()).ok_or("not the first")
    }));
    assert_eq!(
        report,
        "the base run is itself flaky: without any fault one of two runs fails (one does `worker.receive@orders/o-1#1` where \
         the other does `worker.receive@orders/o-2#1`); make what it depends on the same in each run, and keep nothing from \
         one run to the next in statics, files or databases\nnot the first"
    );
}

#[test]
fn state_leaks_between_runs() {
    let count = counted();
    let report = report_of(orders().only("complete").jobs(1).result(async move |run| {
        handle(run, "o-1").await;
        (count() < 3).then_some(()).ok_or("a row too many")
    }));
    assert_eq!(
        report,
        "state leaks between runs: without faults the test passed before the other runs and fails after \
         them; create anew in each run what a run changes, and keep nothing in statics, files or \
         databases\na row too many"
    );
}

#[test]
fn ids_from_the_wall_clock() {
    let test = || {
        // It goes on between runs as the wall clock does.
        let clock = counted();
        async move |run: &Run| handle(run, &format!("o-{}", clock())).await
    };
    let explore = || orders().effects([Effect::LoseLock]).jobs(1);
    let differ = "two runs without faults perform different operations (one does `worker.receive@orders/o-1#1` where the \
                  other does `worker.receive@orders/o-2#1`); operations are identified by less: take ids and times neither \
                  from random numbers nor from the wall clock";
    let report = explore().result(test()).unwrap();
    assert!(report.contains(&format!("warning: {differ}")), "{report}");
    let report = report_of(explore().strict().result(test()));
    assert_eq!(report, format!("{differ}, and `strict` is set"));
}

#[test]
fn a_report_counts_runs_and_operations() {
    let explore = || orders().effects([Effect::LoseLock, Effect::Elsewhere]);
    let report = explore()
        .result(async |run: &Run| handle(run, "o-1").await)
        .unwrap();
    let counts =
        "not reached 0; cut by budget 0; not applicable 1; base run stable (3 of 3, 8 operations)";
    assert!(report.contains(counts), "{report}");
    let count = counted();
    let report = explore().jobs(1).result(async move |run: &Run| {
        let id = if count() > 4 { "o-2" } else { "o-1" };
        handle(run, id).await;
    });
    let report = report.unwrap();
    assert!(
        report.contains("base run not stable (2 of 3, 8 operations)"),
        "{report}"
    );
    let warning = "warning: a run without faults after the others performs other operations than before them; keep nothing from one run \
                   to the next in statics, files or databases";
    assert!(report.contains(warning), "{report}");
}

#[test]
fn operations_that_are_not_repeated() {
    let count = counted();
    let explore = orders().effects([Effect::LoseLock]).only("complete");
    let report = report_of(explore.result(async move |run| match count() {
        1 | 2 => handle(run, "o-1").await,
        _ => run.wait_idle().await,
    }));
    assert_eq!(
        report,
        "the exploration is inconclusive: 1 of 1 faults were never applied, because the code does not do the same in each run; make \
         its message ids, order and number of operations the same in each run"
    );
}

#[test]
fn a_run_without_a_party() {
    let report = report_of(orders().result(async |run| put(run, "o-1").await));
    assert_eq!(
        report,
        "there is no operation to apply a fault to: start the code under test by `run.party(\"worker\", async |bus| …)` or `run.job`, and let \
         it connect with `bus.connection_string()`"
    );
}

#[test]
fn a_party_that_always_ends_soon() {
    let report = report_of(orders().result(async |run| {
        run.party("worker", async |bus| -> Outcome {
            bus.client().await?;
            Err("no database".into())
        });
        run.wait_idle().await;
    }));
    assert_eq!(
        report,
        "the test fails without any fault; make it pass first\nthe party \"worker\" ended 20 times in a row; the last time: no database"
    );
}

const STUCK: &str = "the run does not end: after 2 s of real time it still runs; do not block the thread \
                     (`std::thread::sleep`, a lock, a blocking client) and do not spin: await, or put it into \
                     `tokio::task::spawn_blocking` or `run.outside(…)`";

#[test]
fn a_thread_that_is_blocked() {
    let explore = orders().within(Duration::from_secs(2));
    let begun = std::time::Instant::now();
    let report = report_of(explore.result(async |_| {
        let (kept, never) = mpsc::channel::<()>();
        let _ = never.recv();
        drop(kept);
    }));
    assert_eq!(report, STUCK);
    assert!(begun.elapsed() < Duration::from_secs(20));
}

const TIME_STANDS: &str = "the run does not end: after 2 s of real time virtual time does not advance until the tasks of \
                      `tokio::task::spawn_blocking` and the futures of `run.outside(…)` have ended, and one has not; end it \
                      with a timeout";

#[test]
fn a_blocking_task_that_does_not_end() {
    let (over, wait) = mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    let explore = orders().within(Duration::from_secs(2));
    let report = report_of(explore.result(async move |_| {
        let wait = Arc::clone(&wait);
        let waiting = tokio::task::spawn_blocking(move || {
            let _ = wait.lock().map(|wait| wait.recv());
        });
        drop(waiting.await);
    }));
    assert_eq!(report, TIME_STANDS);
    drop(over);
}

#[test]
fn something_outside_that_does_not_end() {
    let explore = orders().within(Duration::from_secs(2));
    let report = report_of(explore.result(async |run| run.outside(pending::<()>()).await));
    assert_eq!(report, TIME_STANDS);
}

#[test]
fn a_thread_that_spins() {
    let (over, goes_on) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(true)),
    );
    let explore = orders().within(Duration::from_secs(2));
    let (ends, seen) = (Arc::clone(&over), Arc::clone(&goes_on));
    let report = report_of(explore.result(async move |_| {
        while !ends.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        seen.store(false, Ordering::Relaxed);
    }));
    assert_eq!(report, STUCK);
    assert!(goes_on.load(Ordering::Relaxed));
    over.store(true, Ordering::Relaxed);
}

const HANGS: &str = "the test hangs: for 1 h of virtual time no client was active, neither the test nor a party made \
                     progress, and nothing is due; end the wait with a timeout; if it waits for something outside of the run, \
                     such as a thread, a database or another service, let it wait in `run.outside(…)`: virtual time does not \
                     wait for others";

#[test]
fn a_test_that_waits_forever() {
    let report = report_of(orders().result(async |_| pending::<()>().await));
    assert_eq!(
        report,
        format!("the test fails without any fault; make it pass first\n{HANGS}")
    );
}

#[test]
fn a_test_that_never_ends() {
    let report = report_of(orders().result(async |_| {
        for _ in 0..u32::MAX {
            sleep(Duration::from_secs(60)).await;
        }
    }));
    assert_eq!(
        report,
        "the test fails without any fault; make it pass first\nthe test does not end: after 2 h of virtual \
         time it still runs; shorten its waits, and end endless loops"
    );
}

#[test]
fn a_test_that_waits_for_long_and_ends() {
    let explore = orders().only("complete").effects([Effect::LoseLock]);
    explore.run(async move |run: &Run| {
        handle(run, "o-1").await;
        for _ in 0..2 {
            sleep(Duration::from_secs(50 * 60)).await;
        }
    });
}

#[test]
fn a_test_with_its_own_thread() {
    let report = report_of(orders().result(async |_| {
        let (answer, answered) = oneshot::channel();
        let (over, wait) = mpsc::channel::<()>();
        thread::spawn(move || {
            // Works for longer than the hour of virtual time lasts.
            let _ = wait.recv();
            answer.send(())
        });
        let _ = answered.await;
        drop(over);
    }));
    assert_eq!(
        report,
        format!("the test fails without any fault; make it pass first\n{HANGS}")
    );
}

#[test]
fn time_stops_while_outside_waits_for_a_thread() {
    let explore = orders().effects([Effect::LoseLock]);
    explore.run(async |run| {
        let (answer, answered) = oneshot::channel();
        let before = Instant::now();
        thread::spawn(move || answer.send(()));
        run.outside(answered).await.unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO);
        handle(run, "o-1").await;
    });
}

#[test]
fn a_party_that_never_becomes_idle() {
    let report = report_of(orders().result(async |run| {
        run.party("producer", async |bus| -> Outcome {
            let mut client = bus.client().await?;
            let mut orders = client.create_sender("orders", Default::default()).await?;
            loop {
                orders.send_message(ServiceBusMessage::new("12.50")).await?;
                sleep(Duration::from_secs(60)).await;
            }
        });
        run.wait_idle().await;
    }));
    let rest = "the test fails without any fault; make it pass first\nthe run does not become idle: within 2 h of virtual \
                time there were never 5 min in which no client was active and nothing was locked; end code that polls or \
                attaches again all the time, or wait for something else than `wait_idle`";
    assert!(report.starts_with(rest), "{report}");
}

#[test]
fn a_token_of_another_test() {
    let token = "x1:worker.complete@orders/o-9#1=lose-lock";
    let report = report_of(
        orders()
            .always(token)
            .result(async |run| handle(run, "o-1").await),
    );
    assert_eq!(
        report,
        format!(
            "the token {token} names the operation `worker.complete@orders/o-9#1`, which this test does not \
             perform: the token belongs to another test, or the code has changed since; explore again \
             without it"
        )
    );
}

#[test]
fn a_file_that_outlives_its_run() {
    let name = format!("servicebus-explore-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let _ = fs::remove_file(&file);
    let table = file.clone();
    let report = report_of(orders().result(async move |run| {
        handle(run, "o-1").await;
        let rows = fs::read_to_string(&table).unwrap_or_default() + "o-1\n";
        fs::write(&table, &rows).unwrap();
        (rows == "o-1\n").then_some(()).ok_or("charged twice")
    }));
    fs::remove_file(file).unwrap();
    assert_eq!(
        report,
        "the base run is itself flaky: without any fault one of two runs fails; make what it depends on the same in each run, and \
         keep nothing from one run to the next in statics, files or databases\ncharged twice"
    );
}

#[test]
fn tokens_that_cannot_be_read() {
    let test = async |run: &Run| handle(run, "o-1").await;
    let report = |token: &str| orders().always(token).result(test).unwrap_err();
    let token = |effect: &str| format!("x1:worker.complete@orders/o-1#1={effect}");
    assert_eq!(
        report("x0:worker.complete@orders/o-1#1=lose-lock"),
        "the token has version x0, but this harness reads x1: explore again without it, and copy the token that the report then \
         shows"
    );
    let unknown = report(&token("explode"));
    let names = "the token names the effect `explode`, which does not exist; allowed are postpone, elsewhere, server-busy, ";
    assert!(unknown.starts_with(names), "{unknown}");
}

//! Workflows whose state is in their session, and is lost, told twice or out of date.

use std::time::Duration;

use tokio::time::sleep;

use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    SavesLast,
    AppendsAgain,
    KeepsTheState,
}

type Steps = Vec<String>;

const STEPS: [&str; 3] = ["placed", "paid", "shipped"];

/// Does the steps of the next session until none comes for ten seconds.
async fn carry_on(bus: &Party, kept: &mut Option<Steps>, bug: Option<Bug>) -> Outcome {
    let mut client = connect(bus).await?;
    let accepting = client.accept_next_session_for_queue("orders", Default::default());
    let mut order = with_timeout(accepting).await?;
    let mut steps = match kept.take() {
        Some(steps) if bug == Some(Bug::KeepsTheState) => steps,
        _ => serde_json::from_slice(&with_timeout(order.session_state()).await?)?,
    };
    loop {
        let wait = Some(Duration::from_secs(10));
        let receiving = order.receive_messages_with_max_wait_time(1, wait);
        let Some(message) = with_timeout(receiving).await?.pop() else {
            return with_timeout(order.dispose()).await;
        };
        if bug == Some(Bug::SavesLast) {
            order.complete_message(&message).await?;
        }
        let step = str::from_utf8(message.body()?)?.to_owned();
        if !steps.contains(&step) || bug == Some(Bug::AppendsAgain) {
            steps.push(step);
        }
        *kept = Some(steps.clone());
        let state = serde_json::to_vec(&steps)?;
        with_timeout(order.set_session_state(state)).await?;
        if bug != Some(Bug::SavesLast) {
            order.complete_message(&message).await?;
        }
    }
}

/// Does what sessions have, until there has been none for five minutes.
async fn work(bus: Party, bug: Option<Bug>) -> Outcome {
    let (mut kept, mut without) = (None, 0);
    while without < 5 {
        match carry_on(&bus, &mut kept, bug).await {
            Ok(()) => without = 0,
            Err(_) => without += 1,
        }
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

fn step(name: &str) -> Message {
    Message::from(name).message_id(name).session_id("o-17")
}

fn working(
    workers: &'static [&str],
    bug: Option<Bug>,
) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        let orders = run.queue("orders");
        let opened = orders.accept_session("o-17").await;
        // azservicebus cannot read the state of a session that has none.
        opened.set_state("[]").await;
        opened.close().await;
        for name in STEPS {
            orders.send(step(name)).await;
        }
        for worker in workers {
            run.job(worker, async move |bus| work(bus, bug).await);
            sleep(Duration::from_secs(1)).await;
        }
        sleep(Duration::from_secs(40)).await;
        orders.send(step("returned")).await;
        run.wait_idle().await;
        let opened = orders.accept_session("o-17").await;
        let state = opened.state().await.unwrap_or_default();
        let steps: Steps = serde_json::from_slice(&state).unwrap();
        assert_eq!(steps, [&STEPS[..], &["returned"]].concat());
    }
}

fn explore(_: Option<Bug>) -> Explore {
    Explore::new(Topology::new().queue(Queue::new("orders").requires_session(true)))
}

#[test]
fn saves_the_state_after_it_completes() {
    let fault = "drop-before at worker.management(set-session-state)@orders/o-17#1";
    finds(Bug::SavesLast, fault, explore, |bug| {
        working(&["worker"], bug)
    });
}

#[test]
fn appends_a_step_that_the_state_has() {
    let fault = "lose-reply at worker.management(set-session-state)@orders/o-17#1";
    finds(Bug::AppendsAgain, fault, explore, |bug| {
        working(&["worker"], bug)
    });
}

#[test]
fn keeps_the_state_when_the_session_is_lost() {
    let fault = "lose-session-lock at a.complete@orders/placed#1";
    finds(Bug::KeepsTheState, fault, explore, |bug| {
        working(&["a", "b"], bug)
    });
}

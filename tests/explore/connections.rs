//! Workers that go on with what is dead, or give up too soon.

use std::time::Duration;

use tokio::time::{Instant, interval_at, sleep};

use crate::support::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    GivesUpRenewing,
    EndsAtTheFirstError,
    UsesTheDeadClient,
}

/// Charges each order, which takes longer than its lock.
async fn charge_slowly(bus: Party, charged: &CountTable, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = receiver(&mut client, "orders").await?;
    let mut renews = true;
    loop {
        let mut order = next(&mut orders).await?;
        let id = id(&order);
        if !charged.has(&id) {
            let mut charging = std::pin::pin!(sleep(Duration::from_secs(150)));
            let period = Duration::from_secs(20);
            let mut renewals = interval_at(Instant::now() + period, period);
            loop {
                tokio::select! {
                    biased;
                    () = &mut charging => break,
                    _ = renewals.tick(), if renews => {
                        let renewed = with_timeout(orders.renew_message_lock(&mut order)).await;
                        renews = renewed.is_ok() || bug != Some(Bug::GivesUpRenewing);
                    }
                }
            }
            // Whose lock is lost may be charged by another.
            if with_timeout(orders.renew_message_lock(&mut order))
                .await
                .is_err()
            {
                continue;
            }
            charged.add(&id);
        }
        orders.complete_message(&order).await?;
    }
}

#[test]
fn stops_to_renew_locks_after_one_failure() {
    let fault = "answer-500 at worker.renew-lock(renew-lock)@orders/o-1#1";
    finds_in_orders(Bug::GivesUpRenewing, fault, |bug| {
        async move |run: &Run| {
            put_order(run, "o-1").await;
            let bank = CountTable::default();
            let charged = bank.clone();
            run.party("worker", async move |bus| {
                charge_slowly(bus, &charged, bug).await
            });
            run.wait_idle().await;
            bank.assert_once(&["o-1"]);
        }
    });
}

/// Charges three orders.
async fn charge_three(bus: Party, charged: &CountTable, bug: Option<Bug>) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = loop {
        match receiver(&mut client, "orders").await {
            Ok(attached) => break attached,
            Err(_) if bug == Some(Bug::UsesTheDeadClient) => sleep(Duration::from_secs(1)).await,
            Err(error) => return Err(error),
        }
    };
    while !IDS.iter().all(|id| charged.has(id)) {
        let order = match next(&mut orders).await {
            Ok(order) => order,
            Err(_) if bug == Some(Bug::EndsAtTheFirstError) => return Ok(()),
            Err(_) if bug == Some(Bug::UsesTheDeadClient) => {
                sleep(Duration::from_secs(1)).await;
                if let Ok(attached) = receiver(&mut client, "orders").await {
                    orders = attached;
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        if !charged.has(&id(&order)) {
            charged.add(&id(&order));
        }
        orders.complete_message(&order).await?;
    }
    Ok(())
}

fn charging_three(bug: Option<Bug>) -> impl AsyncFn(&Run) + Send + Sync + 'static {
    async move |run| {
        put_orders(run).await;
        let bank = CountTable::default();
        let charged = bank.clone();
        run.job("worker", async move |bus| {
            charge_three(bus, &charged, bug).await
        });
        run.wait_idle().await;
        bank.assert_once(&IDS);
    }
}

#[test]
fn ends_when_its_link_is_detached() {
    let fault = "detach-after at worker.receive@orders/o-1#1";
    finds_in_orders(Bug::EndsAtTheFirstError, fault, charging_three);
}

#[test]
fn uses_a_client_whose_connection_is_dead() {
    let fault = "drop-before at worker.connect#1";
    finds_in_orders(Bug::UsesTheDeadClient, fault, charging_three);
}

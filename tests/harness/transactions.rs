//! Transactions in timelines: what belonged to them, and how they ended.

use std::time::Duration;

use servicebus_harness::{Timeline, prelude::*};

use crate::harness::{namespace_with_orders, transaction_client::TransactionClient};
use servicebus_test_support::normalised::normalised;

/// A timeline in which transactions are called T1, T2… in the order in which they turn up.
fn shown(timeline: &Timeline) -> String {
    let mut ids: Vec<String> = Vec::new();
    let text = normalised(&timeline.to_string());
    let lines = text.lines().map(|line| {
        let Some((before, id)) = line.rsplit_once(", transaction ") else {
            return line.to_owned();
        };
        let known = ids.iter().position(|known| known == id);
        let number = known.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        });
        format!("{before}, transaction T{}", number + 1)
    });
    Vec::from_iter(lines).join("\n")
}

#[tokio::test]
async fn timelines_tell_what_belonged_to_a_transaction_and_how_it_ended() {
    let servicebus = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send(Message::from("{}").message_id("o-1")).await;
    let mut transaction_client = TransactionClient::connect(&servicebus).await;
    let transaction = transaction_client.declare().await.complete("orders").await;
    transaction.send("orders", "o-2").await.commit().await;
    let transaction = transaction_client.declare().await.complete("orders").await;
    transaction.send("orders", "o-3").await.roll_back().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(
        shown(&timeline),
        "\
timeline of orders                                            (virtual time)
  +… sent                    o-1, by the test, 25 bytes
  +… delivered               o-1, to the transaction client (lock 60 s, delivery 1 of 3)
  +… settlement enlisted     o-1, by the transaction client, transaction T1
  +… send enlisted           o-2, by the transaction client, transaction T1
  +… transaction committed   by the transaction client, transaction T1
  +… completed               o-1, by the transaction client
  +… sent                    o-2, by the transaction client, 18 bytes
  +… delivered               o-2, to the transaction client (lock 60 s, delivery 1 of 3)
  +… settlement enlisted     o-2, by the transaction client, transaction T2
  +… send enlisted           o-3, by the transaction client, transaction T2
  +… transaction rolled back by the transaction client, transaction T2
            clock advanced          by the test, 61 s
  +… lock expired            o-2, delivery 1 counted"
    );
}

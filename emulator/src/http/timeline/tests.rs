use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use servicebus_broker::ClientId;
use tokio::sync::Semaphore;

use super::*;
use crate::clock::{RealClock, WallClock};
use crate::config::NamespaceConfig;
use crate::failures::Failures;

fn namespace() -> Arc<Namespace> {
    let config = NamespaceConfig::new("a");
    Arc::new(Namespace::new(
        config,
        RealClock::start(WallClock::default()),
        None,
        false,
        Failures::default(),
    ))
}

fn refuse(namespace: &Namespace, times: usize) {
    for number in 0..times {
        let text = format!("the {number}th");
        namespace.note_refusal(ClientId::BROKER, None, "amqp:not-allowed", &text);
    }
}

fn everything() -> Which {
    Which {
        entity: None,
        message_id: None,
        sequence_number: None,
        messages: false,
    }
}

async fn body(namespace: &Arc<Namespace>, permits: &Arc<Semaphore>) -> Body {
    let permit = Arc::clone(permits).acquire_owned().await.unwrap();
    streamed(
        copied(namespace, everything(), None),
        permit,
        Duration::from_secs(20),
    )
}

#[tokio::test]
async fn what_happens_while_an_answer_is_rendered_waits_for_nothing() {
    let (namespace, permits) = (namespace(), Arc::new(Semaphore::new(1)));
    refuse(&namespace, 5_000);
    let mut answer = body(&namespace, &permits).await;
    let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    // The next piece waits for a reader, and the record is free: this would wait for ever.
    refuse(&namespace, 10_000);
    assert_eq!(namespace.timeline().events().len(), 15_000);
    let rest = answer.collect().await.unwrap().to_bytes();
    assert!(
        first.len() < 256 * 1024 && rest.len() > first.len(),
        "{}",
        first.len()
    );
    let answer: Value = serde_json::from_slice(&[first, rest].concat()).unwrap();
    let events = answer["events"].as_array().unwrap();
    assert_eq!((events.len(), &answer["dropped"]), (5_000, &json!(0)));
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["detail"], format!("the {number}th"));
    }
}

#[tokio::test]
async fn an_answer_without_events_is_whole() {
    let answer = body(&namespace(), &Arc::new(Semaphore::new(1))).await;
    let answer = answer.collect().await.unwrap().to_bytes();
    let answer: BTreeMap<String, Value> = serde_json::from_slice(&answer).unwrap();
    let names: Vec<&str> = answer.keys().map(String::as_str).collect();
    assert_eq!(names, ["counters", "dropped", "events"]);
}

#[tokio::test]
async fn one_that_nobody_reads_keeps_its_place_until_it_is_dropped() {
    let (namespace, permits) = (namespace(), Arc::new(Semaphore::new(1)));
    refuse(&namespace, 5_000);
    let unread = body(&namespace, &permits).await;
    assert!(body(&namespace, &permits).now_or_never().is_none());
    drop(unread);
    body(&namespace, &permits).await.collect().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_is_not_read_in_time_breaks_off() {
    let (namespace, permits) = (namespace(), Arc::new(Semaphore::new(1)));
    refuse(&namespace, 5_000);
    let unread = body(&namespace, &permits).await;
    let next = body(&namespace, &permits).await;
    next.collect().await.unwrap();
    assert!(unread.collect().await.is_err());
}

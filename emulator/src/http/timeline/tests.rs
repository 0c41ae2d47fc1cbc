//! Slow readers, and pages compared with the whole record.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use servicebus_broker::{ClientId, EventKind};
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
        namespace.record_refusal(ClientId::BROKER, None, "amqp:not-allowed", &text);
    }
}

async fn body(namespace: &Arc<Namespace>, permits: &Arc<Semaphore>) -> Body {
    let permit = Arc::clone(permits).acquire_owned().await.unwrap();
    streamed(
        copied(namespace, TimelineQuery::default(), None, None).await,
        permit,
        Duration::from_secs(20),
    )
}

#[tokio::test]
async fn rendering_a_timeline_does_not_block_new_events() {
    let (namespace, permits) = (namespace(), Arc::new(Semaphore::new(1)));
    refuse(&namespace, 5_000);
    let mut answer = body(&namespace, &permits).await;
    let first = answer.frame().await.unwrap().unwrap().into_data().unwrap();
    // The next piece waits for a reader, and the record is not locked: otherwise this would block for ever.
    refuse(&namespace, 10_000);
    assert_eq!(namespace.timeline().last_position(), 15_000);
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
async fn a_timeline_without_events_has_all_members() {
    let answer = body(&namespace(), &Arc::new(Semaphore::new(1))).await;
    let answer = answer.collect().await.unwrap().to_bytes();
    let answer: BTreeMap<String, Value> = serde_json::from_slice(&answer).unwrap();
    let names: Vec<&str> = answer.keys().map(String::as_str).collect();
    assert_eq!(names, ["counters", "dropped", "events"]);
}

#[tokio::test]
async fn an_unread_timeline_response_keeps_its_permit_until_dropped() {
    let (namespace, permits) = (namespace(), Arc::new(Semaphore::new(1)));
    refuse(&namespace, 5_000);
    let unread = body(&namespace, &permits).await;
    assert!(body(&namespace, &permits).now_or_never().is_none());
    drop(unread);
    body(&namespace, &permits).await.collect().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unread_timeline_response_is_aborted_after_a_timeout() {
    let (namespace, permits) = (namespace(), Arc::new(Semaphore::new(1)));
    refuse(&namespace, 5_000);
    let unread = body(&namespace, &permits).await;
    let next = body(&namespace, &permits).await;
    next.collect().await.unwrap();
    assert!(unread.collect().await.is_err());
}

/// Random arrivals, moves and removals of messages in two entities.
fn happen(namespace: &Namespace, seed: u32) {
    let mut random = seed;
    let mut draw = |below: usize| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) as usize % below
    };
    let (mut events, mut held) = (Events::new(), Vec::new());
    for number in 1..1_000 {
        let entity = EntityId(1 + u32::from(draw(2) == 0));
        let (to, text) = (SequenceNumber(number), events.text(&number.to_string()));
        let enqueued = EventKind::Enqueued {
            message_id: text,
            bytes: 1,
            expires_at: None,
        };
        let index = draw(held.len().max(1));
        let kinds = match (draw(8), held.get(index).copied()) {
            (0..3, _) | (_, None) => {
                held.push((entity, SubQueue::Active, to));
                vec![(held[held.len() - 1], enqueued)]
            }
            (3, _) => {
                held.push((entity, SubQueue::Active, to));
                let place = held[held.len() - 1];
                vec![
                    (place, EventKind::Matched { rule: text }),
                    (place, enqueued),
                ]
            }
            (4, Some(place)) => {
                held[index] = (place.0, SubQueue::DeadLetter, to);
                let kind = EventKind::DeadLettered {
                    moved_to: to,
                    reason: text,
                    description: text,
                };
                vec![(place, kind)]
            }
            (5, Some(_)) => vec![(held.swap_remove(index), EventKind::Completed)],
            (_, Some(place)) => vec![(place, EventKind::Abandoned { delivery_count: 1 })],
        };
        for ((entity, store, own), kind) in kinds {
            let at = servicebus_broker::Timestamp::default();
            let place = (entity, store);
            events.push(Event::new(at, place, ClientId::BROKER, Some(own), kind));
        }
    }
    namespace.timeline().absorb(&mut events);
}

#[tokio::test]
async fn a_timeline_page_equals_that_part_of_the_whole_timeline() {
    let mut named = 0;
    for (seed, is_newest) in (0..40).flat_map(|seed| [(seed, true), (seed, false)]) {
        let namespace = namespace();
        happen(&namespace, seed);
        let page = || Page {
            after: u64::from(seed % 3 * 250),
            before: u64::from(1_200 - seed * 20),
            left: 1 + 7 * seed as usize,
            is_newest,
            next: None,
            others: 0,
        };
        let mut rendered = Vec::new();
        for requested in [None, Some(page())] {
            let query = || TimelineQuery {
                sequence_number: (seed % 5 == 0).then_some(7),
                ..TimelineQuery::default()
            };
            let copied = copied(&namespace, query(), None, requested.as_ref()).await;
            let mut rendering = copied.in_page(Some(page())).await;
            let pieces = std::iter::from_fn(|| rendering.piece());
            rendered.push(String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap());
        }
        assert_eq!(rendered[0], rendered[1], "seed {seed}, newest: {is_newest}");
        named += usize::from(rendered[0].contains("\"message_id\":\""));
    }
    assert!(named > 60, "{named} pages name a message");
}

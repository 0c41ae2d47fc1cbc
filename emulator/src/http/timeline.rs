//! What happened to the messages of an entity, oldest first.
//!
//! What is asked for is copied out of the record under its lock, and rendered in pieces while nothing is locked: a client
//! that reads a long answer slowly keeps no other from sending. A few are rendered at a time, because each is a copy.

mod page;
mod render;

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use servicebus_broker::{EntityId, Event, Events, SequenceNumber, SubQueue};
use servicebus_control_api::{Timeline, UnsettledSends};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::Control;
use super::counts::find;
use super::error::{ApiError, Asked, Chosen, check_limit};
use crate::namespace::{Namespace, SharedEntity};
use page::{Newest, Page};
pub(crate) use render::Recorded;
use render::{Rendering, place};

/// Events that are copied while the record is locked: a tenth of a millisecond. Other tasks have their turn behind them.
const COPIED: usize = 1024;
/// Events in one answer where a part of them is asked for.
const MAX_PAGE: usize = 1000;
/// How many are rendered at the same time; others wait.
pub(crate) const AT_ONCE: usize = 4;
/// Bytes of the timeline of a message that an exploration tells.
const MAX_TOLD: usize = 256 * 1024;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Which {
    entity: Option<String>,
    message_id: Option<String>,
    sequence_number: Option<u64>,
    /// Whether the messages themselves are wanted.
    #[serde(default)]
    messages: bool,
    /// Whether events are told as lines, too.
    #[serde(default)]
    lines: bool,
    /// Events have positions in the order in which they happened, the first 1: those behind this one.
    after: Option<u64>,
    /// Those before this one.
    before: Option<u64>,
    /// How many at most.
    limit: Option<usize>,
    /// `oldest` of them, or `newest`.
    order: Option<String>,
}

impl Which {
    /// The part of the record that is asked for, if it is a part.
    fn page(&self) -> Result<Option<Page>, ApiError> {
        let Self {
            after,
            before,
            limit,
            order,
            ..
        } = self;
        if after.is_none() && before.is_none() && limit.is_none() && order.is_none() {
            return Ok(None);
        }
        let is_newest = match order.as_deref() {
            None | Some("oldest") => false,
            Some("newest") => true,
            Some(other) => {
                return Err(ApiError::not_allowed("order", other, "oldest or newest"));
            }
        };
        Ok(Some(Page {
            after: after.unwrap_or(0),
            before: before.unwrap_or(u64::MAX),
            left: check_limit(*limit, MAX_PAGE)?,
            is_newest,
            next: None,
        }))
    }
}

pub(crate) async fn show(
    State(control): State<Control>,
    Chosen(namespace): Chosen,
    Asked(which): Asked<Which>,
) -> Result<Response, ApiError> {
    let entity = which.entity.as_deref();
    let entity = entity.map(|entity| find(&namespace, entity)).transpose()?;
    let (page, lines) = (which.page()?, which.lines);
    let Ok(permit) = Arc::clone(&control.timelines).acquire_owned().await else {
        // They are not taken away while a client can ask for them.
        return Ok(Response::default());
    };
    let rendering = copied(&namespace, which, entity, page.as_ref()).await;
    let rendering = rendering.in_page(page).await.with_lines(lines);
    let body = streamed(rendering, permit, control.shared.options.patience);
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Which events are asked for; everything that is not said is any.
struct Wanted {
    entity: Option<EntityId>,
    message_id: Option<String>,
    number: Option<SequenceNumber>,
}

impl Wanted {
    /// Whether an event is of the entity. What happens to the namespace itself happens to every entity.
    fn is_here(&self, event: &Event) -> bool {
        let here = |entity| entity == event.entity || event.entity == EntityId::NAMESPACE;
        self.entity.is_none_or(here)
    }

    /// Whether an event may be among them, as far as can be told without the id of its message.
    fn takes(&self, event: &Event) -> bool {
        self.is_here(event)
            && self
                .number
                .is_none_or(|number| Some(number) == event.number())
    }
}

/// What is to be rendered, as it is in the record now; of a page of the newest events these, and those before them that tell the
/// ids of their messages.
async fn copied(
    namespace: &Arc<Namespace>,
    which: Which,
    entity: Option<(Arc<SharedEntity>, SubQueue)>,
    page: Option<&Page>,
) -> Rendering {
    let mut head = Timeline {
        sends_unsettled: entity.as_ref().map(|(entity, _)| UnsettledSends {
            now: entity.sends.now().into(),
            most: entity.sends.most().into(),
        }),
        ..Timeline::default()
    };
    let entity = entity.map(|(entity, kind)| (entity.id, kind));
    let wanted = Wanted {
        entity: entity.map(|(entity, _)| entity),
        message_id: which.message_id,
        number: which.sequence_number.map(SequenceNumber),
    };
    let known: HashSet<EntityId> = match entity {
        Some(_) => HashSet::new(),
        None => namespace.known_entities().into_iter().collect(),
    };
    let counted = |id, store| match entity {
        Some(entity) => entity == (id, store),
        None => known.contains(&id),
    };
    let last = {
        let timeline = namespace.timeline();
        let counters = timeline.totals(counted);
        head.counters = counters
            .map(|(counter, count)| (counter.name().to_owned(), count))
            .collect();
        head.dropped = timeline.dropped();
        match page {
            // One more tells which message the last of the page is about.
            Some(page) if page.is_newest => timeline.last_position().min(page.before),
            _ => timeline.last_position(),
        }
    };
    let newest = match page {
        Some(page) if page.is_newest => Newest::find(namespace, &wanted, page, last).await,
        _ => None,
    };
    let (mut events, mut positions, mut from) = (Events::new(), Vec::new(), 1);
    // What all are gathered in grows while nothing is locked.
    let mut copy = Events::new();
    while from <= last {
        positions.reserve(COPIED);
        let newest = newest.as_ref().filter(|newest| from < newest.begin);
        let end = newest.map_or(last + 1, |newest| newest.begin);
        let takes = |event: &Event| {
            let is_told_of = |newest: &Newest| newest.places.contains(&place(event));
            wanted.is_here(event) && newest.is_none_or(is_told_of)
        };
        let range = from..end.min(from + COPIED as u64);
        from = namespace
            .timeline()
            .copy(range, takes, &mut copy, &mut positions);
        events.absorb(&mut copy);
        yield_now().await;
    }
    let shows_messages = which.messages && namespace.recorded_messages.are_kept();
    Rendering::new(
        Arc::clone(namespace),
        head,
        (events, positions),
        wanted,
        shows_messages,
    )
}

/// What happened at an address, with the messages behind the events if they are asked for and kept.
pub(crate) async fn of_entity(
    namespace: &Arc<Namespace>,
    found: (Arc<SharedEntity>, SubQueue),
    messages: bool,
) -> (Timeline, Option<Vec<Recorded>>) {
    let which = Which {
        messages,
        ..Which::default()
    };
    copied(namespace, which, Some(found), None)
        .await
        .whole()
        .await
}

/// What happened to one message; none where there is no such entity, or it is more than is told of one.
pub(crate) async fn of_message(
    namespace: &Arc<Namespace>,
    entity: &str,
    message_id: &str,
) -> Option<Timeline> {
    let found = find(namespace, entity).ok()?;
    let which = Which {
        message_id: Some(message_id.to_owned()),
        ..Which::default()
    };
    let mut rendering = copied(namespace, which, Some(found), None).await;
    let mut whole = Vec::new();
    while let Some(piece) = rendering.piece() {
        whole.extend_from_slice(&piece);
        yield_now().await;
        if whole.len() > MAX_TOLD {
            return None;
        }
    }
    serde_json::from_slice(&whole).ok()
}

/// A body that is rendered as it is read. One that is not read on within `patience` breaks off, so that others are
/// rendered.
fn streamed(mut rendering: Rendering, permit: OwnedSemaphorePermit, patience: Duration) -> Body {
    let first = rendering.piece();
    if rendering.is_done() {
        // With its length, as simple clients like it.
        return first.map_or_else(Body::empty, Body::from);
    }
    let (sender, receiver) = mpsc::channel::<Option<Bytes>>(1);
    tokio::spawn(async move {
        let _permit = permit;
        let mut piece = first;
        loop {
            let is_last = piece.is_none();
            let sent = timeout(patience, sender.send(piece)).await;
            if is_last || !matches!(sent, Ok(Ok(()))) {
                return;
            }
            piece = rendering.piece();
        }
    });
    let pieces = stream::unfold(Some(receiver), |receiver| async {
        let mut receiver = receiver?;
        match receiver.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(receiver))),
            Some(None) => None,
            None => Some((
                Err(io::Error::other("the answer was read too slowly")),
                None,
            )),
        }
    });
    Body::from_stream(pieces)
}

#[cfg(test)]
mod tests {
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
            namespace.note_refusal(ClientId::BROKER, None, "amqp:not-allowed", &text);
        }
    }

    async fn body(namespace: &Arc<Namespace>, permits: &Arc<Semaphore>) -> Body {
        let permit = Arc::clone(permits).acquire_owned().await.unwrap();
        streamed(
            copied(namespace, Which::default(), None, None).await,
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
    async fn an_answer_without_events_is_whole() {
        let answer = body(&namespace(), &Arc::new(Semaphore::new(1))).await;
        let answer = answer.collect().await.unwrap().to_bytes();
        let answer: BTreeMap<String, Value> = serde_json::from_slice(&answer).unwrap();
        let names: Vec<&str> = answer.keys().map(String::as_str).collect();
        assert_eq!(names, ["counters", "dropped", "events"]);
    }

    #[tokio::test]
    async fn one_that_is_not_read_keeps_its_place_until_it_is_dropped() {
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
    /// Messages that come in, move and go at three places, as chance has it.
    fn happen(namespace: &Namespace, seed: u32) {
        let mut random = seed;
        let mut draw = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % below
        };
        let mut events = Events::new();
        for number in 0..1_500 {
            let place = (EntityId(1 + draw(2)), SubQueue::ALL[draw(2) as usize]);
            let own = Some(SequenceNumber(u64::from(draw(40))));
            let rule = events.text("a");
            let kinds = match draw(4) {
                0 => vec![
                    EventKind::Matched { rule },
                    EventKind::Enqueued {
                        message_id: events.text(&number.to_string()),
                        bytes: 1,
                        expires_at: None,
                    },
                ],
                1 => vec![EventKind::DeadLettered {
                    moved_to: SequenceNumber(u64::from(draw(40))),
                    reason: events.text(""),
                    description: events.text(""),
                }],
                _ => vec![EventKind::Completed],
            };
            for kind in kinds {
                let at = servicebus_broker::Timestamp::default();
                events.push(Event::new(at, place, ClientId::BROKER, own, kind));
            }
        }
        namespace.timeline().absorb(&mut events);
    }

    #[tokio::test]
    async fn a_page_of_the_newest_is_that_of_the_whole_record() {
        let mut named = 0;
        for seed in 0..20 {
            let namespace = namespace();
            happen(&namespace, seed);
            let page = || Page {
                after: u64::from(seed % 3 * 250),
                before: u64::from(1_700 - seed * 60),
                left: 1 + 7 * seed as usize,
                is_newest: true,
                next: None,
            };
            let mut told = Vec::new();
            for asked in [None, Some(page())] {
                let which = || Which {
                    sequence_number: (seed % 2 == 0).then_some(7),
                    ..Which::default()
                };
                let copied = copied(&namespace, which(), None, asked.as_ref()).await;
                let mut rendering = copied.in_page(Some(page())).await;
                let pieces = std::iter::from_fn(|| rendering.piece());
                told.push(String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap());
            }
            assert_eq!(told[0], told[1], "seed {seed}");
            named += usize::from(told[0].contains("\"message_id\":\""));
        }
        assert!(named > 15, "{named} pages name a message");
    }
}

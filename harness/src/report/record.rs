//! The content of a report: the answers of the control API that the page requests.
//!
//! It is bounded, because a namespace may hold any amount. The totals of the lists show what is left out.

use serde_json::{Map, Value, json};
use servicebus_assertions::Evidence;

use crate::{backend::Backend, inspector};

/// The number of newest events to include.
const EVENTS: usize = 10_000;
/// The number of events or entities per request.
const PAGE: &str = "1000";
/// The number of entities with settings, receivers, sessions and messages; those with the most dead letters first.
const ENTITIES: usize = 200;
/// The number of listed messages per queue.
const LISTED: &str = "200";
/// The number of messages with all their properties.
const DETAILED: usize = 200;

/// The sub-queues of an entity: their suffixes, and the count fields that show whether they hold messages.
const SUB_QUEUES: [(&str, &[&str]); 3] = [
    ("", &["active", "scheduled", "transfer"]),
    ("/$DeadLetterQueue", &["dead_letter"]),
    ("/$Transfer/$DeadLetterQueue", &["transfer_dead_letter"]),
];

/// Collects the answers. Those that fail are left out, except the list of entities.
pub(super) async fn collect(
    backend: &dyn Backend,
    namespace: &str,
    evidence: Option<&Evidence>,
) -> Result<Value, String> {
    let mut gathering = Collector {
        backend,
        answers: Map::new(),
        detailed: 0,
    };
    let listed = [("order", "dead-letter"), ("limit", PAGE)];
    let entities = backend.get_json("/entities", &listed).await;
    let entities = entities.map_err(|error| error.to_string())?;
    for path in ["/clock", "/faults", "/connections", "/topology"] {
        gathering.keep(path, None).await;
    }
    gathering.record().await;
    if let Some(evidence) = evidence {
        gathering.messages(&evidence.address).await;
    }
    let list = entities["entities"].as_array().cloned();
    for entity in list.iter().flatten().take(ENTITIES) {
        gathering.entity(entity).await;
    }
    let mut answers = gathering.answers;
    answers.insert("/entities".to_owned(), entities);
    Ok(json!({
        "namespace": namespace,
        "fragment": inspector::fragment(namespace, evidence),
        "answers": answers,
    }))
}

struct Collector<'a> {
    backend: &'a dyn Backend,
    /// By path, and by entity for answers about one: `/messages?entity=orders`.
    answers: Map<String, Value>,
    /// How many messages were included with all properties.
    detailed: usize,
}

impl Collector<'_> {
    /// Requests, stores and returns an answer; `None` if the request fails.
    async fn keep(&mut self, path: &str, entity: Option<&str>) -> Option<&Value> {
        let query = entity.map(|entity| ("entity", entity));
        let mut query = Vec::from_iter(query);
        if path == "/messages" {
            query.push(("limit", LISTED));
        }
        let answer = self.backend.get_json(path, &query).await.ok()?;
        let key = match entity {
            Some(entity) => format!("{path}?entity={entity}"),
            None => path.to_owned(),
        };
        self.answers.insert(key.clone(), answer);
        self.answers.get(&key)
    }

    /// Stores the newest part of the record, oldest first.
    async fn record(&mut self) {
        let (mut events, mut before) = (Vec::new(), None::<String>);
        let mut whole = Value::Null;
        while events.len() < EVENTS {
            let mut query = vec![("order", "newest"), ("limit", PAGE)];
            query.extend(before.as_deref().map(|before| ("before", before)));
            let Ok(mut page) = self.backend.get_json("/timeline", &query).await else {
                break;
            };
            let Some(found) = page["events"].as_array_mut().map(std::mem::take) else {
                break;
            };
            let oldest = found.iter().filter_map(|event| event["position"].as_u64());
            let Some(oldest) = oldest.min() else {
                break;
            };
            before = Some(oldest.to_string());
            events.extend(found);
            whole = page;
        }
        events.sort_by_key(|event| event["position"].as_u64());
        whole["events"] = events.into();
        self.answers.insert("/timeline".to_owned(), whole);
    }

    async fn entity(&mut self, entity: &Value) {
        let (Some(path), Some(kind)) = (entity["path"].as_str(), entity["kind"].as_str()) else {
            return;
        };
        self.keep(&format!("/{kind}s/{}", inspector::segments(path)), None)
            .await;
        if kind == "topic" {
            return;
        }
        self.keep("/receivers", Some(path)).await;
        if entity["requires_session"] == true {
            self.keep("/sessions", Some(path)).await;
        }
        for (end, counts) in SUB_QUEUES {
            let mut counts = counts.iter().map(|name| &entity["counts"][name]);
            if counts.any(|count| count.as_u64().is_some_and(|count| count > 0)) {
                self.messages(&format!("{path}{end}")).await;
            }
        }
    }

    /// Stores the messages at an address, the first of them with all properties.
    async fn messages(&mut self, address: &str) {
        if self
            .answers
            .contains_key(&format!("/messages?entity={address}"))
        {
            return;
        }
        let Some(listed) = self.keep("/messages", Some(address)).await else {
            return;
        };
        let listed = listed["messages"].as_array().cloned().unwrap_or_default();
        for message in listed.iter().take(DETAILED - self.detailed) {
            let path = format!("/messages/{}", message["sequence_number"]);
            self.keep(&path, Some(address)).await;
            self.detailed += 1;
        }
    }
}

//! What the control API of an emulator tells, as far as a namespace tells it too.
//!
//! The rest of the harness asks the same questions in every mode. Here they are put to the administration API and
//! answered in the same JSON; what only an emulator has cannot be checked, and the error says what that is.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hyper::Method;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{
    RemoteNamespace,
    admin::Found,
    description::{Description, target},
    xml::Element,
};
use crate::{
    control::{ControlError, Refusal},
    kind::{EntityKind, subscription_path},
    text,
};

/// Where dead letters are, and by which counter they are counted.
const SUB_QUEUES: [(&str, &str); 2] = [
    (
        "/$Transfer/$DeadLetterQueue",
        "TransferDeadLetterMessageCount",
    ),
    ("/$DeadLetterQueue", "DeadLetterMessageCount"),
];

impl RemoteNamespace {
    /// Answers what the control API would be asked.
    pub(crate) async fn answer(
        &self,
        method: &Method,
        path: &str,
        query: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Bytes, ControlError> {
        let body = || serde_json::from_slice::<Value>(body).unwrap_or_default();
        let answer = match (method.as_str(), path) {
            ("GET", "queues") => json!({ "queues": self.queues().await? }),
            ("GET", "topics") => json!({ "topics": self.topics().await? }),
            ("GET", "subscriptions") => json!({ "subscriptions": self.subscriptions().await? }),
            ("GET", "counts") => self.counts(query.first().map_or("", |pair| pair.1)).await?,
            ("GET", "clock") => reading(),
            ("POST", "clock/advance") => self.wait(&body()).await?,
            ("PUT" | "DELETE", path) => match place(path) {
                Some((kind, name)) if method == Method::PUT => {
                    self.put(kind, &name, &body()).await?
                }
                Some((_, name)) => {
                    self.admin.delete(&name).await?;
                    Value::Null
                }
                None => return Err(uncheckable(what(path))),
            },
            (_, path) => return Err(uncheckable(what(path))),
        };
        Ok(answer.to_string().into())
    }

    async fn queues(&self) -> Result<Vec<Value>, ControlError> {
        let found = self.admin.list("$Resources/queues").await?;
        Ok(found
            .iter()
            .map(|found| listed(&found.name, found))
            .collect())
    }

    async fn topics(&self) -> Result<Vec<Value>, ControlError> {
        let found = self.admin.list("$Resources/topics").await?;
        Ok(found
            .iter()
            .map(|found| listed(&found.name, found))
            .collect())
    }

    async fn subscriptions(&self) -> Result<Vec<Value>, ControlError> {
        let mut all = Vec::new();
        for topic in self.admin.list("$Resources/topics").await? {
            let path = format!("{}/Subscriptions", topic.name);
            let found = match self.admin.list(&path).await {
                Ok(found) => found,
                // It went meanwhile.
                Err(error) if error.status() == Some(404) => continue,
                Err(error) => return Err(error),
            };
            let listed =
                |found: &Found| listed(&subscription_path(&topic.name, &found.name), found);
            all.extend(found.iter().map(listed));
        }
        Ok(all)
    }

    /// Counts as the service does: what is locked or deferred is active, and nothing more is said of it.
    async fn counts(&self, address: &str) -> Result<Value, ControlError> {
        let below = SUB_QUEUES.iter().find_map(|(suffix, counter)| {
            let entity = address.strip_suffix(suffix)?;
            Some((entity, *counter))
        });
        let entity = below.map_or(address, |(entity, _)| entity);
        let description = self.find_any(entity).await?;
        let Some(details) = description.child("CountDetails") else {
            return Err(uncheckable(
                "the numbers of messages, which the namespace does not say".to_owned(),
            ));
        };
        let count = |name| {
            details
                .text_of(name)
                .and_then(|text| text.parse::<u64>().ok())
        };
        let count = |name| count(name).unwrap_or(0);
        Ok(match below {
            Some((_, counter)) => json!({ "active": count(counter) }),
            None => json!({
                "active": count("ActiveMessageCount"),
                "dead_letter": count("DeadLetterMessageCount"),
                "transfer_dead_letter": count("TransferDeadLetterMessageCount"),
                "scheduled": count("ScheduledMessageCount"),
                "transfer": count("TransferMessageCount"),
                "size_bytes": size(&description),
            }),
        })
    }

    async fn find_any(&self, path: &str) -> Result<Element, ControlError> {
        for kind in [
            EntityKind::Queue,
            EntityKind::Topic,
            EntityKind::Subscription,
        ] {
            if let Some(found) = self.admin.find(kind, path).await? {
                return Ok(found);
            }
        }
        Err(ControlError::Refused(Refusal {
            status: 404,
            code: "unknown-entity".to_owned(),
            message: format!("the namespace has no entity \"{path}\""),
            problems: Vec::new(),
        }))
    }

    /// Makes an entity, or changes one and leaves what is not said.
    async fn put(
        &self,
        kind: EntityKind,
        name: &str,
        properties: &Value,
    ) -> Result<Value, ControlError> {
        let authority = self.admin.authority();
        match self.admin.find(kind, name).await? {
            Some(found) => {
                let mut description = Description::read(kind, &found);
                description.change(properties, authority);
                self.admin.replace(name, &description).await?;
            }
            None => {
                let description = Description::new(kind, properties, authority);
                self.admin.make(name, &description).await?;
                self.remember(kind, name);
            }
        }
        Ok(Value::Null)
    }

    /// Lets the time pass, up to the limit.
    async fn wait(&self, body: &Value) -> Result<Value, ControlError> {
        let by = body["seconds"].as_f64().unwrap_or(0.0);
        let by = Duration::try_from_secs_f64(by).unwrap_or(Duration::MAX);
        if by > self.max_real_wait {
            let (by, limit) = (text::seconds(by), text::seconds(self.max_real_wait));
            return Err(uncheckable(format!(
                "what happens after {by}, which would really pass, and the longest wait is {limit}; the builder's `max_real_wait` or SERVICEBUS_HARNESS_MAX_REAL_WAIT allows more"
            )));
        }
        tokio::time::sleep(by).await;
        Ok(reading())
    }
}

/// A subscription says nothing of its size.
fn size(description: &Element) -> u64 {
    let text = description.text_of("SizeInBytes");
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn reading() -> Value {
    let now = Timestamp::try_from(SystemTime::now());
    json!({ "now": now.map(|now| now.to_string()).unwrap_or_default() })
}

fn listed(name: &str, found: &Found) -> Value {
    let text = |name| found.description.text_of(name);
    json!({
        "name": name,
        "properties": {
            "MaxDeliveryCount": text("MaxDeliveryCount").and_then(|text| text.parse::<u64>().ok()),
            "DeadLetteringOnMessageExpiration":
                text("DeadLetteringOnMessageExpiration").map(|text| text == "true"),
            "ForwardTo": text("ForwardTo").map(|address| target(&address).to_owned()),
        },
    })
}

/// Reads the place of an entity, such as `queues/orders`.
fn place(path: &str) -> Option<(EntityKind, String)> {
    let (list, name) = path.split_once('/')?;
    let kind = match list {
        "queues" => EntityKind::Queue,
        "topics" => EntityKind::Topic,
        "subscriptions" => EntityKind::Subscription,
        _ => return None,
    };
    Some((
        kind,
        percent_decode_str(name).decode_utf8_lossy().into_owned(),
    ))
}

/// What a question is about that only an emulator answers.
fn what(path: &str) -> String {
    let topic = path.split('/').next().unwrap_or(path);
    match topic {
        "timeline" => "the record of what happened to messages, which only an emulator keeps",
        "settled" => "whether all is idle, which only an emulator knows",
        "sessions" => "the sessions with their holders and states, which only an emulator lists",
        "clock" => "what happens while the clock stands still, which only that of an emulator does",
        "explain" => "why a rule selects a message, which only an emulator explains",
        "faults" => "a scripted fault, which only an emulator has",
        "topology" => "what a namespace holds as a topology, which only an emulator writes",
        "reset" => "a reset, which only an emulator does: start another namespace",
        _ => "what only an emulator's control API reports",
    }
    .to_owned()
}

fn uncheckable(what: String) -> ControlError {
    ControlError::Uncheckable { what }
}

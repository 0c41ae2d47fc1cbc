//! What the errors of operations on queues, topics and subscriptions have in common.

use std::{borrow::Cow, fmt, time::Duration};

use super::SubQueueClient;
use crate::{
    amqp::{AmqpError, Condition},
    catalog::{EntityKind, topic_and_name},
    control::ControlError,
    error::{Error, ErrorKind},
    text,
};

/// The condition by which the emulator says that an entity does not exist.
const NOT_FOUND: &str = "amqp:not-found";

/// How many entities are named that there are.
const LISTED: usize = 10;

/// A queue, topic or subscription that the namespace does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownEntity {
    /// What was asked for.
    pub(crate) kind: EntityKind,
    /// The name that was asked for; that of a subscription has its topic in it.
    pub(crate) name: String,
    /// What the namespace has instead under this name.
    pub(crate) instead: Option<EntityKind>,
    /// Those of this kind that there are, the most similar name first; of a topic's subscriptions, its own.
    pub(crate) known: Vec<String>,
}

impl fmt::Display for UnknownEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, .. } = self;
        let topic = topic_and_name(name).filter(|_| *kind == EntityKind::Subscription);
        match topic {
            Some((topic, name)) => write!(f, "the topic \"{topic}\" has no {kind} \"{name}\"")?,
            None => write!(f, "there is no {kind} \"{name}\"")?,
        }
        let (asked, who) = match topic {
            Some((_, name)) => (name, "it"),
            None => (name.as_str(), "the namespace"),
        };
        match (self.instead, self.known.as_slice()) {
            (Some(instead), _) => write!(f, "; it is a {instead}"),
            (None, []) => write!(f, "; {who} has no {kind}s"),
            (None, known) => {
                match text::is_near(asked, &known[0]) {
                    true => write!(f, "; did you mean {:?}? {} has ", known[0], capital(who))?,
                    false => write!(f, "; {who} has ")?,
                }
                let listed = known.iter().take(LISTED).map(String::as_str);
                f.write_str(&Vec::from_iter(listed).join(", "))?;
                match known.len().checked_sub(LISTED) {
                    Some(more @ 1..) => write!(f, " and {more} more"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// Begins a sentence.
fn capital(words: &str) -> String {
    let (first, rest) = words.split_at(1);
    first.to_uppercase() + rest
}

impl std::error::Error for UnknownEntity {}

impl From<UnknownEntity> for Error {
    fn from(unknown: UnknownEntity) -> Self {
        let path = unknown.name.clone();
        Self::new(ErrorKind::EntityNotFound, path, unknown)
    }
}

/// Lists the messages in a state, for the text of an error.
pub(super) fn listed(state: &str, numbers: &[i64]) -> String {
    let listed = || Vec::from_iter(numbers.iter().map(i64::to_string)).join(", ");
    match numbers {
        [] => format!("none is {state}"),
        [only] => format!("only {only} is {state}"),
        _ => format!("{} are {state}", listed()),
    }
}

impl SubQueueClient {
    /// Finds out whether a refusal means that the entity does not exist.
    pub(super) async fn unknown_by(&self, condition: Option<&Condition>) -> Option<UnknownEntity> {
        let not_found = condition.is_some_and(|condition| condition.condition == NOT_FOUND);
        self.unknown_if(not_found).await
    }

    /// Names the entities there are, when this one is not among them.
    pub(crate) async fn unknown_if(&self, not_found: bool) -> Option<UnknownEntity> {
        if !not_found {
            return None;
        }
        self.catalog().await.missing(self.kind, &self.owner)
    }

    /// An error of a sentence about this entity.
    pub(super) fn error(&self, kind: ErrorKind, sentence: String) -> Error {
        Error::new(kind, self.path.clone(), sentence)
    }

    /// Why an operation failed over AMQP: the entity may not exist.
    pub(super) async fn amqp_error(
        &self,
        operation: impl Into<Cow<'static, str>>,
        source: AmqpError,
    ) -> Error {
        match self.unknown_by(source.condition()).await {
            Some(unknown) => unknown.into(),
            None => Error::of(operation, &self.path, source),
        }
    }

    /// Why the control API did not do an operation: the entity may not exist.
    pub(crate) async fn control_error(
        &self,
        operation: impl Into<Cow<'static, str>>,
        source: ControlError,
    ) -> Error {
        match self.unknown_if(source.status() == Some(404)).await {
            Some(unknown) => unknown.into(),
            None => Error::of(operation, &self.path, source),
        }
    }

    pub(super) async fn receive_error(&self, source: AmqpError) -> Error {
        self.amqp_error(format!("receive from {self}"), source)
            .await
    }

    pub(super) async fn nothing_came(&self, within: Duration) -> Error {
        let counts = self.try_counts().await.unwrap_or_default();
        let within = text::seconds(within);
        let sentence = format!("{self}: no message came within {within}; it holds {counts}");
        self.error(ErrorKind::Timeout, sentence)
    }
}

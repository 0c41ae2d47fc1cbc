//! The messages in a namespace at the end of a test, and how two ends differ.

use std::{
    fmt::Write as _,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use bytes::Bytes;
use servicebus_explore::{Failure, Outcome};

use crate::{Error, ServiceBus, SubQueueClient, catalog::EntityKind};

/// The largest number of differences that are reported per side.
const SHOWN: usize = 10;
/// The largest number of characters that are reported of a body.
const SHOWN_OF_BODY: usize = 60;

/// The messages of a namespace, sorted: position and state, and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinalMessages(Vec<(String, Bytes)>);

/// The messages that each run must end with.
#[derive(Debug)]
pub(crate) struct ExpectedMessages {
    final_messages: FinalMessages,
    /// Whether the runs without faults end with the same bodies.
    with_bodies: bool,
}

/// Peeks all queues, subscriptions and their dead-letter queues.
pub(crate) async fn final_messages(servicebus: &ServiceBus) -> Result<FinalMessages, Error> {
    let client = |kind, path: &str| {
        SubQueueClient::new(Arc::clone(&servicebus.connections), kind, path.to_owned())
    };
    let catalog = client(EntityKind::Queue, "").catalog().await;
    let mut messages = Vec::new();
    for (kind, path) in catalog
        .names()
        .filter(|(kind, _)| *kind != EntityKind::Topic)
    {
        let own = client(kind, path);
        let dead = [own.dead_letter_queue(), own.transfer_dead_letter_queue()];
        for place in dead.iter().chain([&own]) {
            for message in place.peek().result().await? {
                let reason = message.dead_letter_reason();
                let state = reason.map_or_else(|| message.state.to_string(), str::to_owned);
                let held = format!("{}: {state}", place.path());
                messages.push((held, message.body));
            }
        }
    }
    messages.sort();
    Ok(FinalMessages(messages))
}

impl ExpectedMessages {
    /// Compares two runs without faults. Returns their difference as an error, unless only bodies differ.
    pub(crate) fn of(first: FinalMessages, second: &FinalMessages) -> Result<Self, String> {
        let with_bodies = first == *second;
        let expected = Self {
            final_messages: first,
            with_bodies,
        };
        match expected.difference(second) {
            None => Ok(expected),
            Some(difference) => Err(difference),
        }
    }

    /// Fails a passed run that ended with other messages.
    pub(crate) fn check(&self, outcome: &mut Outcome, final_messages: &FinalMessages) {
        if outcome.failure.is_none()
            && let Some(difference) = self.difference(final_messages)
        {
            let message = format!(
                "the test passes, but ends with other messages than without faults{difference}"
            );
            outcome.failure = Some(Failure {
                message,
                location: None,
            });
        }
    }

    fn difference(&self, final_messages: &FinalMessages) -> Option<String> {
        let (mut missing, mut added) = (
            self.compared(&self.final_messages),
            self.compared(final_messages),
        );
        added.retain(|message| {
            let known = missing.iter().position(|other| other == message);
            known.map(|index| missing.remove(index)).is_none()
        });
        let mut text = String::new();
        for (title, messages) in [("missing", missing), ("added", added)] {
            for (place, body) in messages.iter().take(SHOWN) {
                let body = body.map_or_else(String::new, shown);
                let _ = write!(text, "\n  {title}: {place}{body}");
            }
            if messages.len() > SHOWN {
                let _ = write!(text, "\n  {title}: {} more", messages.len() - SHOWN);
            }
        }
        (!text.is_empty()).then_some(text)
    }

    /// Returns what is compared of each message: position and state, and the body if bodies are compared.
    fn compared<'a>(
        &self,
        FinalMessages(messages): &'a FinalMessages,
    ) -> Vec<(&'a str, Option<&'a Bytes>)> {
        let compared = messages
            .iter()
            .map(|(place, body)| (place.as_str(), self.with_bodies.then_some(body)));
        compared.collect()
    }
}

/// Returns the start of a body for people. A hash distinguishes bodies that start alike or are not text.
fn shown(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body);
    let start: String = text.chars().take(SHOWN_OF_BODY).collect();
    if start.as_bytes() == body {
        return format!(" \"{start}\"");
    }
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    let (length, hash) = (body.len(), hasher.finish());
    format!(" \"{start}…\" ({length} bytes, hash {hash:016x})")
}

//! The messages in a namespace at the end of a test, and how two ends differ.

use std::{fmt::Write as _, sync::Arc};

use servicebus_explore::{Failure, Outcome};

use crate::{ServiceBus, SubQueueClient, catalog::EntityKind};

/// The largest number of differences that are reported per side.
const SHOWN: usize = 10;

/// The messages of a namespace, sorted: position and state, and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinalMessages(Vec<(String, String)>);

/// The messages that each run must end with.
#[derive(Debug)]
pub(crate) struct ExpectedMessages {
    final_messages: FinalMessages,
    /// Whether the runs without faults end with the same bodies.
    with_bodies: bool,
}

/// Peeks all queues, subscriptions and their dead-letter queues; `None` if a peek fails.
pub(crate) async fn final_messages(servicebus: &ServiceBus) -> Option<FinalMessages> {
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
            for message in place.peek().result().await.ok()? {
                let reason = message.dead_letter_reason();
                let state = reason.map_or_else(|| message.state.to_string(), str::to_owned);
                let held = format!("{}: {state}", place.path());
                messages.push((held, message.body_text().chars().take(60).collect()));
            }
        }
    }
    messages.sort();
    Some(FinalMessages(messages))
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
        let (mut missing, mut added) =
            (self.lines(&self.final_messages), self.lines(final_messages));
        added.retain(|line| {
            let known = missing.iter().position(|other| other == line);
            known.map(|index| missing.remove(index)).is_none()
        });
        let mut text = String::new();
        for (title, lines) in [("missing", missing), ("added", added)] {
            for line in lines.iter().take(SHOWN) {
                let _ = write!(text, "\n  {title}: {line}");
            }
            if lines.len() > SHOWN {
                let _ = write!(text, "\n  {title}: {} more", lines.len() - SHOWN);
            }
        }
        (!text.is_empty()).then_some(text)
    }

    fn lines(&self, final_messages: &FinalMessages) -> Vec<String> {
        let lines = final_messages
            .0
            .iter()
            .map(|(place, body)| match self.with_bodies {
                true => format!("{place} \"{body}\""),
                false => place.clone(),
            });
        lines.collect()
    }
}

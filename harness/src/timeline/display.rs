//! The timeline as a table that fits a failure message.

use std::fmt;

use super::{Event, EventKind, Timeline};
use crate::text;

/// The column at which the note about virtual time begins.
const NOTE_COLUMN: usize = 62;
/// How wide the column of kinds is.
const KIND_WIDTH: usize = 16;
/// How wide the column of offsets is, unless one is longer.
const OFFSET_WIDTH: usize = 10;

/// A timeline under a title of its own.
#[derive(Debug)]
pub struct Shown<'a> {
    timeline: &'a Timeline,
    subject: Option<&'a str>,
}

impl Timeline {
    /// Shows the timeline as that of one message.
    pub fn titled<'a>(&'a self, subject: &'a str) -> Shown<'a> {
        Shown {
            timeline: self,
            subject: Some(subject),
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Shown {
            timeline: self,
            subject: None,
        };
        shown.fmt(f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timeline = self.timeline;
        let title = match self.subject {
            Some(subject) => format!("timeline of {subject} in {}", timeline.entity),
            None => format!("timeline of {}", timeline.entity),
        };
        match timeline.is_virtual() {
            true => write!(f, "{title:<NOTE_COLUMN$}(virtual time)")?,
            false => f.write_str(&title)?,
        }
        if timeline.dropped > 0 {
            write!(f, "\n  … {} older events were dropped", timeline.dropped)?;
        }
        if timeline.events.is_empty() {
            f.write_str("\n  nothing happened")?;
        }
        let widest = timeline.events.iter().map(|event| offset(event).len());
        let width = widest.max().unwrap_or(0).max(OFFSET_WIDTH - 1) + 1;
        for event in &timeline.events {
            let line = format!(
                "  {:<width$}{:<KIND_WIDTH$}{}",
                offset(event),
                label(&event.kind),
                timeline.words(event, self.subject.is_none())
            );
            write!(f, "\n{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl Timeline {
    fn is_virtual(&self) -> bool {
        self.events
            .iter()
            .any(|event| event.kind == EventKind::ClockAdvanced)
    }

    /// Writes what an event says beyond its kind; `named` when several messages are in the table.
    fn words(&self, event: &Event, named: bool) -> String {
        let mut words = String::new();
        if named && let Some(id) = &event.message_id {
            words = id.clone();
        }
        for part in self.parts(event) {
            if !words.is_empty() {
                words.push_str(if part.starts_with('(') { " " } else { ", " });
            }
            words.push_str(&part);
        }
        words
    }

    fn parts(&self, event: &Event) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(client) = &event.client {
            let preposition = match event.kind {
                EventKind::Delivered => "to",
                _ => "by",
            };
            parts.push(format!("{preposition} {client}"));
        } else if event.kind == EventKind::ClockAdvanced {
            parts.push("by the test".to_owned());
        }
        match event.kind {
            EventKind::Delivered => parts.extend(self.delivery(event)),
            EventKind::LockExpired => parts.extend(
                event
                    .delivery_count
                    .map(|count| format!("delivery {count} counted")),
            ),
            _ => {}
        }
        parts.extend(match (&event.reason, &event.detail) {
            (Some(reason), Some(detail)) => Some(format!("{reason}: {detail}")),
            (Some(only), None) | (None, Some(only)) => Some(only.clone()),
            (None, None) => None,
        });
        if let Some(entity) = &event.entity
            && !entity.is_empty()
            && !entity.eq_ignore_ascii_case(&self.entity)
        {
            parts.push(format!("in {entity}"));
        }
        parts
    }

    fn delivery(&self, event: &Event) -> Option<String> {
        let lock = event
            .lock()
            .map(|lock| format!("lock {}", text::seconds(lock)));
        let count = event
            .delivery_count
            .map(|count| match self.max_delivery_count {
                Some(max) => format!("delivery {count} of {max}"),
                None => format!("delivery {count}"),
            });
        let known = Vec::from_iter([lock, count].into_iter().flatten());
        (!known.is_empty()).then(|| format!("({})", known.join(", ")))
    }
}

fn offset(event: &Event) -> String {
    match event.kind {
        EventKind::ClockAdvanced => String::new(),
        _ => format!("+{:.3} s", event.offset),
    }
}

fn label(kind: &EventKind) -> String {
    match kind {
        EventKind::DeadLettered => kind.name().to_owned(),
        _ => kind.name().replace('-', " "),
    }
}

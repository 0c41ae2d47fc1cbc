//! Formats the timeline as a table for a failure message.

use std::fmt;

use super::{Event, EventKind, Timeline};
use crate::text;

/// The column of the note about virtual time.
const NOTE_COLUMN: usize = 62;
/// The minimum width of the column of kinds.
const KIND_WIDTH: usize = 16;
/// The minimum width of the column of offsets.
const OFFSET_WIDTH: usize = 10;

/// A timeline with a title.
#[derive(Debug)]
pub struct TitledTimeline<'a> {
    timeline: &'a Timeline,
    subject: Option<&'a str>,
}

impl Timeline {
    /// Formats the timeline as that of one message.
    pub fn titled<'a>(&'a self, subject: &'a str) -> TitledTimeline<'a> {
        TitledTimeline {
            timeline: self,
            subject: Some(subject),
        }
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titled = TitledTimeline {
            timeline: self,
            subject: None,
        };
        titled.fmt(f)
    }
}

impl fmt::Display for TitledTimeline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timeline = self.timeline;
        let title = match self.subject {
            Some(subject) => {
                let subject = text::one_line(subject);
                format!("timeline of {subject} in {}", timeline.entity)
            }
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
        let width = timeline.width(|event| offset(event).len(), OFFSET_WIDTH);
        let kind_width = timeline.width(|event| label(&event.kind).len(), KIND_WIDTH);
        for event in &timeline.events {
            let summary = timeline.summary(event, self.subject.is_none());
            write!(f, "\n{}", in_columns(event, width, kind_width, &summary))?;
        }
        Ok(())
    }
}

/// Formats a single event, as in the timeline of a whole namespace.
pub fn line(event: &Event) -> String {
    let summary = Timeline::default().summary(event, true);
    let width = OFFSET_WIDTH.max(offset(event).len() + 1);
    let kind_width = KIND_WIDTH.max(label(&event.kind).len() + 1);
    in_columns(event, width, kind_width, &summary)
}

fn in_columns(event: &Event, width: usize, kind_width: usize, summary: &str) -> String {
    let (offset, kind) = (offset(event), label(&event.kind));
    let line = format!("  {offset:<width$}{kind:<kind_width$}{summary}");
    line.trim_end().to_owned()
}

impl Timeline {
    /// Returns the width of a column, including the space after it.
    fn width(&self, of: impl Fn(&Event) -> usize, at_least: usize) -> usize {
        let widest = self.events.iter().map(of).max();
        (widest.unwrap_or(0) + 1).max(at_least)
    }

    fn is_virtual(&self) -> bool {
        self.events
            .iter()
            .any(|event| event.kind == EventKind::ClockAdvanced)
    }

    /// Describes an event beyond its kind; `named` if the table has several messages.
    fn summary(&self, event: &Event, named: bool) -> String {
        let mut summary = String::new();
        if named && let Some(id) = event.message_id.as_ref().or(event.session.as_ref()) {
            summary = text::one_line(id).into_owned();
        }
        for part in self.parts(event) {
            if !summary.is_empty() {
                summary.push_str(if part.starts_with('(') { " " } else { ", " });
            }
            summary.push_str(&part);
        }
        summary
    }

    fn parts(&self, event: &Event) -> Vec<String> {
        let mut parts = Vec::from_iter(event.operation.clone());
        if let Some(client) = &event.client {
            let preposition = match event.kind {
                EventKind::Delivered => "to",
                _ => "by",
            };
            parts.push(format!("{preposition} {client}"));
        } else if super::is_of_all(event) {
            parts.push("by the test".to_owned());
        }
        match event.kind {
            EventKind::Delivered
            | EventKind::LockRenewed
            | EventKind::SessionAccepted
            | EventKind::SessionLockRenewed => parts.extend(self.delivery(event)),
            EventKind::LockExpired => parts.extend(
                event
                    .delivery_count
                    .map(|count| format!("delivery {count} counted")),
            ),
            _ => {}
        }
        parts.extend(details(event));
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
                Some(max) if !is_in_sub_queue(event) => format!("delivery {count} of {max}"),
                _ => format!("delivery {count}"),
            });
        let known = Vec::from_iter([lock, count].into_iter().flatten());
        (!known.is_empty()).then(|| format!("({})", known.join(", ")))
    }
}

/// Returns whether it happened in a dead-letter queue, which has no maximum delivery count.
fn is_in_sub_queue(event: &Event) -> bool {
    let entity = event.entity.as_deref().unwrap_or_default();
    entity.to_ascii_lowercase().ends_with("/$deadletterqueue")
}

/// Returns the emulator's description of an event.
fn details(event: &Event) -> Option<String> {
    if let Some(text) = due(event) {
        return Some(text);
    }
    match (&event.reason, &event.detail) {
        (None, Some(target)) if event.kind == EventKind::Forwarded => Some(format!("to {target}")),
        (None, Some(rule)) if event.kind == EventKind::Matched => Some(format!("by rule {rule}")),
        (Some(reason), Some(detail)) => Some(format!("{reason}: {}", without_tracking(detail))),
        (Some(only), None) | (None, Some(only)) => Some(only.clone()),
        (None, None) => None,
    }
}

/// Removes the service's support details from an error: the ids and the time of the request.
pub fn without_tracking(detail: &str) -> &str {
    let cut = detail.split_once(" TrackingId:");
    cut.map_or(detail, |(text, _)| text)
}

/// Formats the due time of a scheduled message relative to the event: `26 bytes, due in 600 s`.
fn due(event: &Event) -> Option<String> {
    let wait = event.scheduled_for()?.duration_since(event.at);
    let (size, _instant) = event.detail.as_deref()?.split_once(", for ")?;
    let wait = text::rounded_seconds(wait.unwrap_or_default());
    Some(format!("{size}, due in {wait}"))
}

fn offset(event: &Event) -> String {
    match event.kind {
        EventKind::ClockAdvanced => String::new(),
        _ => format!("+{:.3} s", event.offset),
    }
}

fn label(kind: &EventKind) -> String {
    match kind {
        EventKind::DeadLettered | EventKind::TransferDeadLettered => kind.name(),
        _ => kind.name().replace('-', " "),
    }
}

//! Assertions about what happened, from the emulator's record.
//!
//! A queue does not show that a message was completed or forwarded, but the record does. Its counters are exact; assertions
//! about single messages use its events, with their messages if ids are not enough. If the record has dropped events or
//! messages that could matter, the assertion fails and says so.

use crate::{
    assertion::{Assertion, Number},
    check::Outcome,
    hint,
    matcher::Text,
    report::{AssertionFailed, Report},
    text,
    timeline::{Event, EventKind, Timeline, is_at},
};

/// A kind of event, with its phrases.
#[derive(Debug)]
pub(crate) struct RecordedEventKind {
    /// One occurrence: `message completed`.
    one: &'static str,
    /// Several occurrences.
    many: &'static str,
    is: fn(&Event) -> bool,
    /// The total number, if a counter has it.
    counted: fn(&Timeline) -> Option<u64>,
    /// The target: an entity or a client.
    target: fn(&Event) -> Option<&str>,
    /// Whether the target is an entity, whose name is compared in any case.
    pub(crate) targets_entity: bool,
    /// Explains why it may not have happened.
    hint: fn(&Report) -> Option<String>,
}

pub(crate) static ABANDONED: RecordedEventKind = RecordedEventKind {
    one: "delivery abandoned",
    many: "deliveries abandoned",
    is: |event| event.kind == EventKind::Abandoned,
    counted: |timeline| Some(timeline.count(&EventKind::Abandoned)),
    target: |_| None,
    targets_entity: false,
    hint: hint::receiving,
};
pub(crate) static COMPLETED: RecordedEventKind = RecordedEventKind {
    one: "message completed",
    many: "messages completed",
    is: |event| event.kind == EventKind::Completed,
    counted: |timeline| Some(timeline.count(&EventKind::Completed)),
    target: |_| None,
    targets_entity: false,
    hint: hint::completing,
};
/// With or without a lock; a message that is still in its queue was not delivered.
pub(crate) static DELIVERED: RecordedEventKind = RecordedEventKind {
    one: "delivery",
    many: "deliveries",
    is: |event| {
        matches!(
            event.kind,
            EventKind::Delivered | EventKind::ReceivedAndDeleted
        )
    },
    counted: |timeline| {
        let [locked, deleted] = [EventKind::Delivered, EventKind::ReceivedAndDeleted];
        Some(timeline.count(&locked) + timeline.count(&deleted))
    },
    target: |event| event.client.as_deref(),
    targets_entity: false,
    hint: hint::receiving,
};
/// An expired message is dropped or dead-lettered, depending on its queue; both count.
pub(crate) static EXPIRED: RecordedEventKind = RecordedEventKind {
    one: "message expired",
    many: "messages expired",
    is: |event| match event.kind {
        EventKind::Expired => true,
        EventKind::DeadLettered => event.reason.as_deref() == Some(hint::EXPIRED),
        _ => false,
    },
    // The counter of dead letters does not distinguish reasons.
    counted: |_| None,
    target: |_| None,
    targets_entity: false,
    hint: hint::expiry,
};
pub(crate) static FORWARDED: RecordedEventKind = RecordedEventKind {
    one: "message forwarded",
    many: "messages forwarded",
    is: |event| event.kind == EventKind::Forwarded,
    counted: |timeline| Some(timeline.count(&EventKind::Forwarded)),
    target: |event| event.detail.as_deref(),
    targets_entity: true,
    hint: hint::forwarding,
};
pub(crate) static RENEWED: RecordedEventKind = RecordedEventKind {
    one: "lock renewed",
    many: "locks renewed",
    is: |event| event.kind == EventKind::LockRenewed,
    counted: |timeline| Some(timeline.count(&EventKind::LockRenewed)),
    target: |_| None,
    targets_entity: false,
    hint: hint::absence,
};

impl Assertion {
    pub(crate) fn evaluate_record(
        &self,
        event_kind: &RecordedEventKind,
        timeline: &Timeline,
    ) -> Outcome {
        let found = self.found(event_kind, timeline);
        let is_exact = self.is_exact(event_kind, timeline);
        if self.kind.is_negative() {
            return match found > 0 || !is_exact {
                true => Outcome::Fails,
                false => Outcome::Holds,
            };
        }
        let is_decided = self.number.exact().is_none() || is_exact;
        Outcome::holds_if(self.number.is(found) && is_decided)
    }

    pub(crate) fn not_recorded(
        &self,
        report: Report,
        event_kind: &RecordedEventKind,
        timeline: &Timeline,
    ) -> AssertionFailed {
        let (hint, alike) = match self.kind.is_negative() {
            true => (None, "as ruled out"),
            false => ((event_kind.hint)(&report), "as expected"),
        };
        let report = self.with_examined(report, event_kind, timeline, alike);
        report.hinted_failure(&self.sentence(event_kind, timeline), hint)
    }

    /// Counts the occurrences, as far back as the record goes.
    fn found(&self, event_kind: &RecordedEventKind, timeline: &Timeline) -> u64 {
        if let Some(count) = self.counted(event_kind, timeline) {
            return count;
        }
        let events = self.events(event_kind, timeline);
        let selected = events.filter(|event| match self.which.needs_message() {
            true => timeline
                .message(event)
                .is_some_and(|message| self.which.matches(message)),
            false => self.which.is_named(event.message_id.as_deref()),
        });
        selected.count() as u64
    }

    /// Returns the events of the kind and target, of all messages.
    fn events<'a>(
        &'a self,
        event_kind: &'a RecordedEventKind,
        timeline: &'a Timeline,
    ) -> impl Iterator<Item = &'a Event> {
        timeline.events().iter().filter(|event| {
            let target = (event_kind.target)(event);
            (event_kind.is)(event)
                && is_at(event, self.address.path())
                && self
                    .to
                    .as_ref()
                    .is_none_or(|text| event_kind.has_target(text, target))
        })
    }

    fn counted(&self, event_kind: &RecordedEventKind, timeline: &Timeline) -> Option<u64> {
        let any = self.which.is_any() && self.to.is_none();
        any.then(|| (event_kind.counted)(timeline)).flatten()
    }

    /// Returns whether dropped records cannot change the number.
    fn is_exact(&self, event_kind: &RecordedEventKind, timeline: &Timeline) -> bool {
        self.counted(event_kind, timeline).is_some()
            || timeline.dropped() == 0 && self.has_all_messages(event_kind, timeline)
    }

    /// Returns whether the message of every possible event is still recorded.
    fn has_all_messages(&self, event_kind: &RecordedEventKind, timeline: &Timeline) -> bool {
        let mut unknown = self.events(event_kind, timeline).filter(|event| {
            self.which.is_named(event.message_id.as_deref()) && timeline.message(event).is_none()
        });
        !self.which.needs_message() || unknown.next().is_none()
    }

    /// Adds the recorded messages of the events, which may no longer exist: `alike` for those that match, their differences
    /// for others.
    fn with_examined(
        &self,
        report: Report,
        event_kind: &RecordedEventKind,
        timeline: &Timeline,
        alike: &str,
    ) -> Report {
        let messages = self
            .events(event_kind, timeline)
            .filter_map(|event| timeline.message(event));
        let messages: Vec<_> = messages.collect();
        let keys = self.which.distances(messages.iter().copied());
        let messages = text::sorted(keys, messages);
        let lines = messages.into_iter().map(|message| {
            let differences = self.which.differences(message);
            let listed = match differences.is_empty() {
                true => alike.to_owned(),
                false => format!("{} — differs", differences.join(", ")),
            };
            format!("{message}: {listed}")
        });
        Report {
            examined: lines.collect(),
            ..report
        }
    }

    fn sentence(&self, event_kind: &RecordedEventKind, timeline: &Timeline) -> String {
        let number = self.found(event_kind, timeline);
        let found = text::found(number);
        let is_exact = self.is_exact(event_kind, timeline);
        let which = self.target();
        if self.kind.is_negative() {
            let doubt = match number {
                0 => undecided_note(timeline),
                _ => String::new(),
            };
            return format!(
                "expected no {}{which}, found {number}{doubt}",
                event_kind.one
            );
        }
        let wanted = match self.number {
            Number::AtLeast(number @ 2..) => {
                format!("at least {}", event_kind.phrase_count(number))
            }
            Number::AtLeast(number) | Number::Exactly(number) => event_kind.phrase_count(number),
        };
        let within = text::seconds(self.within);
        let doubt = match is_exact {
            true => String::new(),
            false => undecided_note(timeline),
        };
        format!("expected {wanted}{which}, found {found} within {within}{doubt}")
    }

    /// Phrases target and messages: ` to "audit" with message id "o-17"`.
    fn target(&self) -> String {
        let target = self.to.as_ref().map(|text| format!(" to {text}"));
        target.unwrap_or_default() + &self.which.sentence()
    }
}

impl RecordedEventKind {
    fn has_target(&self, wanted: &Text, target: Option<&str>) -> bool {
        match wanted {
            Text::Is(name) if self.targets_entity => {
                target.is_some_and(|target| target.eq_ignore_ascii_case(name))
            }
            text => text.matches(target),
        }
    }

    fn phrase_count(&self, number: u64) -> String {
        match number {
            1 => format!("1 {}", self.one),
            many => format!("{many} {}", self.many),
        }
    }
}

/// Notes that the record does not reach back far enough.
fn undecided_note(timeline: &Timeline) -> String {
    format!(
        "\n  the record dropped its {}, so this cannot be decided; a count of all messages is exact",
        match timeline.dropped() {
            0 => "oldest messages".to_owned(),
            dropped => format!("{dropped} oldest events"),
        }
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Kind, address::EntityAddress, catalog::EntityKind};

    static SENT: RecordedEventKind = RecordedEventKind {
        one: "message sent",
        many: "messages sent",
        is: |event| event.kind == EventKind::Sent,
        counted: |timeline| Some(timeline.count(&EventKind::Sent)),
        target: |_| None,
        targets_entity: false,
        hint: |_| None,
    };
    static MOVED: RecordedEventKind = RecordedEventKind {
        counted: |_| None,
        ..FORWARDED
    };

    fn dropped() -> Timeline {
        let answer = r#"{"dropped":3,"counters":{"sent":2},"events":[]}"#;
        Timeline::new("orders", serde_json::from_str(answer).unwrap(), None)
    }

    #[test]
    fn target_entities_are_compared_in_any_case() {
        assert!(FORWARDED.has_target(&"AUDIT".into(), Some("audit")));
        assert!(!FORWARDED.has_target(&"AUDIT".into(), Some("orders")));
        assert!(!DELIVERED.has_target(&"Worker".into(), Some("worker")));
    }

    #[test]
    fn a_record_with_dropped_events_decides_by_counters_only() {
        let exactly = |number| {
            let orders = EntityAddress::new(EntityKind::Queue, "orders".to_owned());
            let five = Duration::from_secs(5);
            let assertion = Assertion::new(Kind::Completed, orders, five);
            Assertion {
                number: Number::Exactly(number),
                ..assertion
            }
        };
        assert_eq!(
            exactly(2).evaluate_record(&SENT, &dropped()),
            Outcome::Holds
        );
        let none = exactly(0);
        assert_eq!(none.evaluate_record(&MOVED, &dropped()), Outcome::NotYet);
        assert_eq!(
            none.sentence(&MOVED, &dropped()),
            "expected 0 messages forwarded, found none within 5 s\n  the record dropped its 3 oldest events, so this cannot be decided; a count of all messages is exact"
        );
    }
}

//! The faults of the test that explain a failure.

use servicebus_control_api::{Effect, Operation};

use crate::{
    report::Report,
    timeline::{Event, EventKind},
};

/// Names the last fault that stopped a message from arriving.
pub(super) fn blocked(report: &Report) -> Option<String> {
    let fault = last(report, Operation::Send, |_| true)?;
    let client = fault.client.as_deref().unwrap_or("a client");
    let detail = fault.detail.as_deref()?;
    Some(format!("a fault blocked a message of {client}: {detail}"))
}

/// Names the last fault that kept a message from its receiver.
pub(super) fn holding(report: &Report, id: &str) -> Option<String> {
    let fault = last(report, Operation::Deliver, |event| {
        event.message_id.as_deref() == Some(id)
    })?;
    let client = fault.client.as_deref().unwrap_or("a client");
    let detail = fault.detail.as_deref()?;
    Some(format!("a fault kept it from {client}: {detail}"))
}

/// Returns the last fault that prevented or postponed such an operation.
fn last(report: &Report, operation: Operation, of: impl Fn(&Event) -> bool) -> Option<&Event> {
    let mut events = report.timeline.events().iter();
    events.rfind(|event| {
        let mut fault = event.fault.iter();
        of(event) && fault.any(|fault| fault.operation == operation && fault.effect.prevents())
    })
}

/// Returns whether a fault took the lock of a refused settlement, `events[refused]`: since the delivery, and at the latest
/// at this settlement, whose fault is recorded after it.
pub(super) fn takes_lock(events: &[Event], refused: usize) -> bool {
    let id = &events[refused].message_id;
    let is = |event: &Event, kind| event.kind == kind && event.message_id == *id;
    let before = events[..refused].iter();
    let delivered = before
        .enumerate()
        .rfind(|(_, event)| is(event, EventKind::Delivered));
    let since = delivered.map_or(0, |(index, _)| index);
    let until = events.iter().skip(refused + 1);
    let until = until.take_while(|event| !is(event, EventKind::Refused));
    let mut since = events[since..refused].iter().chain(until);
    since.any(|event| {
        let mut fault = event.fault.iter();
        event.message_id == *id
            && fault.any(|fault| matches!(fault.effect, Effect::LoseLock | Effect::LoseSessionLock))
    })
}

//! Actions on whole messages: only the changed properties differ in the delivery.

use servicebus_broker::filter::{Action, Parameters, System};
use servicebus_broker::{BrokerProperties, Message, SequenceNumber, Timestamp};
use servicebus_codec::Writer;

use crate::message::{self, Ids};

/// A message with these properties and a body.
fn parse(notation: &str) -> Message {
    let mut payload = message::sample(notation).payload();
    let mut out = Writer::new(&mut payload);
    out.descriptor(0x75);
    out.binary(b"the body");
    Message::parse(payload.into(), &mut Ids::default()).unwrap()
}

fn changed(notation: &str, action: &str) -> Message {
    let mut message = parse(notation);
    let parameters = message::sample("@ttl=span:90000, @long=span:8640000000").parameters;
    let action = Action::parse(action, parameters).unwrap();
    let edits = action.edits(
        &message.filter_view(&System::default()).unwrap(),
        &mut Ids::default(),
    );
    message.apply(&edits.unwrap(), &mut Ids::default()).unwrap();
    message
}

/// Returns the delivery of a message.
fn delivered(message: &Message) -> Vec<u8> {
    let properties = BrokerProperties {
        delivery_count: 0,
        time_to_live: message.time_to_live(),
        sequence_number: SequenceNumber(1),
        enqueued_sequence_number: None,
        enqueued_at: Timestamp::from_millis(0),
        lock: None,
        is_removed: false,
        state: None,
    };
    let mut bytes = Vec::new();
    let rest = message.encode(&properties, 0, &mut bytes).unwrap();
    bytes.extend_from_slice(&rest);
    bytes
}

const MESSAGE: &str = "sys.MessageId='m', sys.Label='l', sys.SessionId='s', sys.PartitionKey='s', a=1i, b='x', A b=2.5";

#[test]
fn an_action_changes_only_its_properties_in_the_delivery() {
    for (action, expected) in [
        ("SET sys.Label = 'n'", MESSAGE.replace("'l'", "'n'")),
        ("REMOVE sys.Label", MESSAGE.replace("sys.Label='l', ", "")),
        ("SET sys.To = 't'", format!("sys.To='t', {MESSAGE}")),
        (
            "SET sys.ReplyToSessionId = 't'",
            format!("sys.ReplyToSessionId='t', {MESSAGE}"),
        ),
        ("SET sys.MessageId = 'n'", MESSAGE.replace("'m'", "'n'")),
        // A message without id gets a new one.
        (
            "REMOVE sys.MessageId",
            MESSAGE.replace("sys.MessageId='m', ", ""),
        ),
        (
            "SET sys.MessageId = NULL",
            MESSAGE.replace("sys.MessageId='m', ", ""),
        ),
        (
            "SET sys.MessageId = missing",
            MESSAGE.replace("sys.MessageId='m', ", ""),
        ),
        (
            "SET sys.SessionId = 'n'",
            MESSAGE.replace("SessionId='s'", "SessionId='n'"),
        ),
        (
            "REMOVE sys.PartitionKey",
            MESSAGE.replace("sys.PartitionKey='s', ", ""),
        ),
        (
            "SET sys.ViaPartitionKey = 'v'",
            format!("{MESSAGE}, sys.ViaPartitionKey='v'"),
        ),
        (
            "SET A = a + 1",
            MESSAGE.replace("a=1i, b='x', A b=2.5", "b='x', A b=2.5, a=2i"),
        ),
        (
            "REMOVE a; REMOVE [a b]",
            MESSAGE.replace("a=1i, ", "").replace(", A b=2.5", ""),
        ),
        (
            "SET sys.Label = b; SET c = sys.Label",
            format!("{}, c='x'", MESSAGE.replace("'l'", "'x'")),
        ),
    ] {
        let (found, expected) = (changed(MESSAGE, action), parse(&expected));
        assert_eq!(delivered(&found), delivered(&expected), "{action}");
        assert!(!found.exceeds_header_limit());
    }
}

#[test]
fn an_action_sets_and_removes_the_time_to_live() {
    assert_eq!(
        changed("-", "SET sys.TimeToLive = @ttl").time_to_live(),
        Some(90_000)
    );
    assert_eq!(
        changed("-", "SET sys.TimeToLive = @long").time_to_live(),
        Some(8_640_000_000)
    );
    assert_eq!(
        changed("-", "SET sys.TimeToLive = '00:00:00.0000001'").time_to_live(),
        Some(1)
    );
    assert_eq!(changed("-", "REMOVE sys.TimeToLive").time_to_live(), None);
    let mut message = changed("-", "SET sys.TimeToLive = @ttl");
    let remove = Action::parse("REMOVE sys.TimeToLive", Parameters::new()).unwrap();
    let edits = remove.edits(
        &message.filter_view(&System::default()).unwrap(),
        &mut Ids::default(),
    );
    message.apply(&edits.unwrap(), &mut Ids::default()).unwrap();
    assert_eq!(message.time_to_live(), None);
}

#[test]
fn ids_and_schedules_are_seen_by_the_broker() {
    let message = changed(
        MESSAGE,
        "SET sys.MessageId = 'n'; SET sys.SessionId = 'o'; SET sys.PartitionKey = 'p'",
    );
    assert_eq!(message.id(), "n");
    assert_eq!(message.session_id().as_deref(), Some("o"));
    assert_eq!(message.partition_key().as_deref(), Some("p"));
    let message = changed(
        "sys.ScheduledEnqueueTimeUtc=at:5000",
        "SET sys.ScheduledEnqueueTimeUtc = sys.ScheduledEnqueueTimeUtc + @ttl",
    );
    assert_eq!(message.scheduled_at(), Some(Timestamp::from_millis(95_000)));
}

#[test]
fn a_copy_can_outgrow_the_limits() {
    let long = "x".repeat(20_000);
    let notation = format!("sys.Label='l', a='{long}'");
    assert!(!changed(&notation, "SET b = a").exceeds_header_limit());
    assert!(
        changed(&notation, "SET b = a + a").exceeds_header_limit(),
        "one property"
    );
    assert!(
        changed(&notation, "SET b = a; SET c = a; SET d = a").exceeds_header_limit(),
        "all of them"
    );
    assert!(
        changed(
            &notation,
            "SET sys.Label = a; SET sys.To = a; SET sys.ReplyTo = a"
        )
        .exceeds_header_limit()
    );
}

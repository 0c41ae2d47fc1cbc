//! Messages: what is accepted is shown by every view and goes out as it came, bit for bit.

use bytes::Bytes;
use servicebus_broker::filter::{Action, Parameters, Rule, System};
use servicebus_broker::{
    BrokerProperties, Message, MessageError, PropertyChanges, SequenceNumber, Timestamp,
};
use servicebus_codec::{Descriptor, Reader, Writer};

use crate::world::{Ids, NOW, World};
use crate::{Input, value};

/// The code of the properties section; what stands before it belongs to the broker.
const PROPERTIES: u64 = 0x73;
const FOOTER: u64 = 0x78;

/// One message, or a batch of them.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let payload = Bytes::from(payload(&mut input));
    let _ = PropertyChanges::from_map(&payload);
    let mut ids = Ids::default();
    if let Ok(messages) = Message::parse_batch(&payload, &mut ids) {
        messages.iter().for_each(shown);
    }
    if let Ok(message) = Message::parse(payload.clone(), &mut ids) {
        shown(&message);
        same(&message, &payload);
        changed(message.clone());
        moved(message.clone());
        let mut world = World::new(vec![Rule::default_rule(Timestamp::from_millis(NOW))]);
        world.send_everywhere(&message);
    }
}

/// An encoded message, most sections well formed and in their order; or the input itself.
pub(crate) fn payload(input: &mut Input<'_>) -> Vec<u8> {
    if input.one_in(8) {
        return input.rest().to_vec();
    }
    let mut out = Vec::new();
    let mut sections = vec![
        0x70,
        0x71,
        0x72,
        0x73,
        0x74,
        input.pick(&[0x75, 0x76, 0x77, 0x77]),
        0x78,
    ];
    if input.one_in(4) {
        let (from, to) = (input.below(7), input.below(7));
        sections.swap(from, to);
    }
    let present = input.byte();
    for (place, code) in sections.into_iter().enumerate() {
        if present & (1 << place) != 0 || code == 0x75 {
            section(input, code, &mut out);
        }
    }
    if input.one_in(8) && !out.is_empty() {
        let at = input.below(out.len());
        out[at] = input.byte();
    }
    out
}

fn section(input: &mut Input<'_>, code: u8, out: &mut Vec<u8>) {
    match input.one_in(32) {
        true => Writer::new(out).long_descriptor(code.into()),
        false => Writer::new(out).descriptor(code),
    }
    if input.one_in(32) {
        return value::value(input, 3, out);
    }
    match code {
        0x70 => fields(input, 5, out),
        0x73 => fields(input, 15, out),
        0x75 => Writer::new(out).binary(input.bytes(32)),
        0x76 => value::list(input, 3, out),
        0x77 => value::value(input, 4, out),
        0x74 => value::map(input, 1, out),
        _ => value::map(input, 2, out),
    }
}

/// A list of fields of the types that a header or properties have, or of any others.
fn fields(input: &mut Input<'_>, most: usize, out: &mut Vec<u8>) {
    let mark = Writer::new(out).begin_list();
    let count = input.below(most);
    for _ in 0..count {
        match input.below(8) {
            0..=2 => Writer::new(out).null(),
            3 => Writer::new(out).string(&input.word(16)),
            4 => Writer::new(out).uint(input.u32()),
            5 => Writer::new(out).timestamp(i64::from_be_bytes(input.array())),
            6 => Writer::new(out).bool(input.one_in(2)),
            _ => value::value(input, 2, out),
        }
    }
    Writer::new(out).end(mark, count as u32);
}

/// What a receiver is told beside the message.
fn broker_properties() -> BrokerProperties {
    let now = Timestamp::from_millis(NOW);
    BrokerProperties {
        delivery_count: 1,
        time_to_live: Some(60_000),
        sequence_number: SequenceNumber(7),
        enqueued_sequence_number: None,
        enqueued_at: now,
        lock: Some((uuid::Uuid::nil(), now)),
        is_removed: false,
        state: Some(0),
    }
}

/// Every view of it can be made, and what goes out is a message again.
fn shown(message: &Message) {
    let _ = (
        message.id(),
        message.session_id(),
        message.partition_key(),
        message.via_partition_key(),
    );
    let _ = (
        message.scheduled_at(),
        message.time_to_live(),
        message.exceeds_header_limit(),
    );
    message
        .filter_view(&System::default())
        .expect("what is accepted is seen by filters");
    let bare = encode(message, &broker_properties());
    let _ = sections(&bare);
    let expiring = BrokerProperties {
        time_to_live: Some(1),
        ..broker_properties()
    };
    let _ = sections(&encode(message, &expiring));
}

fn encode(message: &Message, broker_properties: &BrokerProperties) -> Vec<u8> {
    let mut out = Vec::new();
    let tail = message
        .encode(broker_properties, 5_000, &mut out)
        .expect("what is accepted goes out");
    out.extend_from_slice(&tail);
    out
}

/// The contents of the sections with their codes.
fn sections(message: &[u8]) -> Vec<(u64, &[u8])> {
    let mut reader = Reader::new(message);
    let mut sections = Vec::new();
    while !reader.is_empty() {
        let descriptor = reader.descriptor().expect("a section");
        let begin = reader.position();
        reader.validate().expect("a whole section");
        let code = match descriptor {
            Descriptor::Code(code) => code,
            Descriptor::Symbol(name) => symbol(name),
        };
        sections.push((code, &message[begin..reader.position()]));
    }
    sections
}

fn symbol(name: &str) -> u64 {
    match name {
        "amqp:header:list" => 0x70,
        "amqp:delivery-annotations:map" => 0x71,
        "amqp:message-annotations:map" => 0x72,
        "amqp:properties:list" => PROPERTIES,
        "amqp:application-properties:map" => 0x74,
        "amqp:footer:map" => FOOTER,
        _ => 0x75,
    }
}

/// From the properties on, or behind them where a message id was added, it is what was sent, in the order of AMQP. The
/// keys of a footer may have become symbols, descriptors shorter, and decimals may have their exponents in another place.
fn same(message: &Message, sent: &[u8]) {
    let unchanged = BrokerProperties {
        time_to_live: message.time_to_live(),
        ..broker_properties()
    };
    let out = encode(message, &unchanged);
    let (mut sent, out) = (sections(sent), sections(&out));
    sent.sort_by_key(|(code, _)| *code);
    let has_id = |&(code, bytes): &(u64, &[u8])| code == PROPERTIES && has_message_id(bytes);
    let from = match sent.iter().any(has_id) {
        true => PROPERTIES,
        false => PROPERTIES + 1,
    };
    let bare = |all: &[(u64, &[u8])]| -> Vec<u8> {
        let kept = all.iter().filter(|(code, _)| (from..FOOTER).contains(code));
        kept.flat_map(|(_, bytes)| bytes.iter().copied()).collect()
    };
    let (mut before, mut after) = (bare(&sent), bare(&out));
    forget_exponents(&mut before, &mut after);
    assert_eq!(before, after, "the bare message changed");
    let footers = [sent, out].map(|all| {
        let footer = all.into_iter().find(|(code, _)| *code == FOOTER);
        footer.map(|(_, bytes)| bytes.len())
    });
    assert_eq!(footers[0], footers[1], "the footer changed");
}

/// Leaves out the byte that a decimal may have in either layout.
fn forget_exponents(before: &mut [u8], after: &mut [u8]) {
    const DECIMAL128: u8 = 0x94;
    for at in 1..before.len().min(after.len()) {
        if before[at - 1] == DECIMAL128 && after[at - 1] == DECIMAL128 {
            (before[at], after[at]) = (0, 0);
        }
    }
}

fn has_message_id(section: &[u8]) -> bool {
    let id = Reader::new(section)
        .fields()
        .and_then(|mut fields| fields.raw().map(|id| id.is_some()));
    id.unwrap_or(false)
}

/// An action can be applied to it, and what comes out is accepted again unless its headers have grown too large.
fn changed(mut message: Message) {
    let action =
        "SET sys.Label = 'x'; SET sys.To = 'y'; SET a = sys.MessageId; SET b = 1; REMOVE c";
    let action = Action::parse(action, Parameters::new()).expect("an action");
    let view = message
        .filter_view(&System::default())
        .expect("what is accepted is seen by filters");
    let Ok(edits) = action.edits(&view, &mut Ids::default()) else {
        return;
    };
    message
        .apply(&edits, &mut Ids::default())
        .expect("what is accepted can be changed");
    shown(&message);
    let again = Message::parse(
        encode(&message, &broker_properties()).into(),
        &mut Ids::default(),
    );
    assert!(
        message.exceeds_header_limit() || again.is_ok() || is_about_size(again.as_ref().err()),
        "what went out is refused: {again:?}"
    );
}

/// What a broker does with it beside: it is abandoned with properties, waits for its time, and goes on as a dead letter.
fn moved(mut message: Message) {
    let mut changes = PropertyChanges::new();
    changes.set_text("k", "v");
    message
        .change_properties(&changes)
        .expect("what is accepted can be changed");
    message.shift_to_namespace_time(1_000);
    message.set_dead_letter_source("q");
    shown(&message);
}

fn is_about_size(error: Option<&MessageError>) -> bool {
    matches!(
        error,
        Some(MessageError::HeadersTooLarge { .. } | MessageError::TooLong { .. })
    )
}

//! The notation of messages in `fixtures/filters` (its README has the table).

use std::time::Duration;

use servicebus_broker::filter::{
    Correlation, Encoded, Parameters, Properties, Sections, System, SystemProperty, Value,
};
use servicebus_broker::{IdSource, SequenceNumber, Timestamp};
use servicebus_codec::Writer;
use uuid::Uuid;

/// Predictable numbers that look random enough for GUIDs to differ.
#[derive(Debug, Default)]
pub(crate) struct Ids(u64);

impl IdSource for Ids {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// The contents of a notation: a message and the parameters of its rule.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) parameters: Parameters,
    application: Vec<u8>,
    properties: Vec<u8>,
    annotations: Vec<u8>,
    system: System<'static>,
}

impl Sample {
    /// The sections of the message in order.
    pub(crate) fn payload(&self) -> Vec<u8> {
        [&self.annotations[..], &self.properties, &self.application].concat()
    }

    pub(crate) fn properties(&self) -> Properties<'_> {
        let sections = Sections {
            header: &[],
            annotations: &self.annotations,
            properties: &self.properties,
            application: &self.application,
        };
        Properties::decode(&sections, &self.system).expect("the sample is well encoded")
    }
}

/// The names and encoded values of a notation.
pub(crate) fn entries(notation: &str) -> Vec<(String, Vec<u8>)> {
    split(notation)
        .into_iter()
        .map(|entry| {
            let (name, value) = entry
                .split_once('=')
                .unwrap_or_else(|| panic!("no = in {entry:?}"));
            (name.trim().to_owned(), encode(value.trim()))
        })
        .collect()
}

pub(crate) fn sample(notation: &str) -> Sample {
    let mut sample = Sample::default();
    let (mut user, mut annotations) = (Vec::new(), Vec::new());
    let mut fields: Vec<Option<Vec<u8>>> = vec![None; 13];
    for (name, value) in entries(notation) {
        if let Some(parameter) = name.strip_prefix('@') {
            sample
                .parameters
                .add(parameter, Encoded::from_amqp(&value).unwrap());
        } else if let Some(system) = name.strip_prefix("sys.") {
            let property =
                SystemProperty::from_name(system).unwrap_or_else(|| panic!("no sys.{system}"));
            match place(property) {
                Place::Field(index) => fields[index] = Some(value),
                Place::Annotation(name) => annotations.push((name.to_owned(), value)),
                Place::System => set_system(&mut sample.system, property, &value),
            }
        } else {
            user.push((name, value));
        }
    }
    sample.application = map(0x74, &user);
    sample.annotations = map(0x72, &annotations);
    sample.properties = list(0x73, &fields);
    sample
}

/// The correlation filter of a notation.
pub(crate) fn correlation(notation: &str) -> Correlation {
    let mut filter = Correlation::default();
    for (name, value) in entries(notation) {
        let encoded = Encoded::from_amqp(&value).unwrap();
        let field = match name.as_str() {
            "sys.ContentType" => &mut filter.content_type,
            "sys.CorrelationId" => &mut filter.correlation_id,
            "sys.Label" => &mut filter.label,
            "sys.MessageId" => &mut filter.message_id,
            "sys.ReplyTo" => &mut filter.reply_to,
            "sys.ReplyToSessionId" => &mut filter.reply_to_session_id,
            "sys.SessionId" => &mut filter.session_id,
            "sys.To" => &mut filter.to,
            _ => {
                filter.properties.push((name.into(), encoded));
                continue;
            }
        };
        let Value::Text(text) = encoded.value() else {
            panic!("{name} must be text")
        };
        *field = Some(text.into());
    }
    filter
}

enum Place {
    Field(usize),
    Annotation(&'static str),
    System,
}

fn place(property: SystemProperty) -> Place {
    match property.name() {
        "MessageId" => Place::Field(0),
        "To" => Place::Field(2),
        "Label" => Place::Field(3),
        "ReplyTo" => Place::Field(4),
        "CorrelationId" => Place::Field(5),
        "ContentType" => Place::Field(6),
        "SessionId" => Place::Field(10),
        "ReplyToSessionId" => Place::Field(12),
        "PartitionKey" => Place::Annotation("x-opt-partition-key"),
        "ViaPartitionKey" => Place::Annotation("x-opt-via-partition-key"),
        "ScheduledEnqueueTimeUtc" => Place::Annotation("x-opt-scheduled-enqueue-time"),
        _ => Place::System,
    }
}

fn set_system(system: &mut System<'static>, property: SystemProperty, encoded: &[u8]) {
    let value = Value::decode(encoded).unwrap();
    let instant = |ticks: i64| Some(Timestamp::from_millis(ticks / 10_000));
    match (property.name(), value) {
        ("SequenceNumber", Value::Signed(n)) => {
            system.sequence_number = Some(SequenceNumber(n as u64))
        }
        ("EnqueuedSequenceNumber", Value::Signed(n)) => {
            system.enqueued_sequence_number = Some(SequenceNumber(n as u64));
        }
        ("DeliveryCount", Value::Signed(n)) => system.delivery_count = n as u32,
        ("Size", Value::Signed(n)) => system.size = n as u64,
        ("EnqueuedTimeUtc", Value::Instant(ticks)) => system.enqueued_at = instant(ticks),
        ("ExpiresAtUtc", Value::Instant(ticks)) => system.expires_at = instant(ticks),
        ("TimeToLive", Value::Span(ticks)) => {
            system.time_to_live = Some(Duration::from_nanos(ticks as u64 * 100));
        }
        ("ForcePersistence", Value::Bool(flag)) => system.force_persistence = flag,
        ("DeadLetterSource", Value::Text(text)) => {
            system.dead_letter_source = Some(String::leak(text.into_owned()));
        }
        (name, value) => panic!("no notation for sys.{name} = {value:?}"),
    }
}

/// Splits at commas outside quotes. A quote opens after `=` or `:` and ends before a comma or the end.
fn split(notation: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut quoted = false;
    let characters: Vec<char> = notation.chars().collect();
    for (place, &c) in characters.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| characters[place]);
        let next = characters.get(place + 1).copied();
        match c {
            '\'' if !quoted && matches!(before, Some('=' | ':')) => quoted = true,
            '\'' if quoted && matches!(next, None | Some(',')) => quoted = false,
            ',' if !quoted => {
                entries.push(String::new());
                continue;
            }
            _ => {}
        }
        entries.last_mut().unwrap().push(c);
    }
    entries.retain(|entry| entry.trim() != "-" && !entry.trim().is_empty());
    entries
}

fn encode(value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    let quoted = |text: &str| {
        text.strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''))
            .map(str::to_owned)
    };
    if let Some(text) = quoted(value) {
        out.string(&text);
    } else if let Some((kind, rest)) = value.split_once(':') {
        match kind {
            "sym" => out.symbol(&quoted(rest).unwrap()),
            "char" => {
                let character = quoted(rest).unwrap().chars().next().unwrap();
                out.raw(&[0x73]);
                out.raw(&u32::from(character).to_be_bytes());
            }
            "uri" => {
                out.raw(&[0]);
                out.symbol("com.microsoft:uri");
                out.string(&quoted(rest).unwrap());
            }
            "guid" => out.uuid(rest.parse::<Uuid>().unwrap()),
            "bin" => out.binary(&hex(rest)),
            "at" => out.timestamp(rest.parse().unwrap()),
            "span" => {
                out.raw(&[0]);
                out.symbol("com.microsoft:timespan");
                out.long(rest.parse::<i64>().unwrap() * 10_000);
            }
            "dto" => {
                out.raw(&[0]);
                out.symbol("com.microsoft:datetime-offset");
                out.long(rest.parse::<i64>().unwrap() * 10_000 + 621_355_968_000_000_000);
            }
            _ => panic!("no such kind of value: {value}"),
        }
    } else {
        match value {
            "true" | "false" => out.bool(value == "true"),
            "null" => out.null(),
            "nan" => double(f64::NAN, &mut out),
            "inf" => double(f64::INFINITY, &mut out),
            _ => number(value, &mut out),
        }
    }
    bytes
}

fn number(value: &str, out: &mut Writer<'_>) {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &value[digits.len()..];
    let whole = || {
        digits
            .parse::<i64>()
            .unwrap_or_else(|_| panic!("no number: {value}"))
    };
    match suffix {
        "" if digits.contains('.') => double(digits.parse().unwrap(), out),
        "" => out.long(whole()),
        "i" => out.int(whole() as i32),
        "s" => {
            out.raw(&[0x61]);
            out.raw(&(whole() as i16).to_be_bytes());
        }
        "b" => out.raw(&[0x51, whole() as u8]),
        "ul" => out.ulong(digits.parse().unwrap()),
        "u" => out.uint(whole() as u32),
        "us" => out.ushort(whole() as u16),
        "ub" => out.ubyte(whole() as u8),
        "f" => {
            out.raw(&[0x72]);
            out.raw(&digits.parse::<f32>().unwrap().to_be_bytes());
        }
        "m" => {
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
            let significand: u128 = format!("{whole}{fraction}").parse().unwrap();
            let exponent = 6176 - fraction.len() as u128;
            out.raw(&[0x94]);
            out.raw(&(exponent << 113 | significand).to_be_bytes());
        }
        _ => panic!("no such suffix: {value}"),
    }
}

fn double(number: f64, out: &mut Writer<'_>) {
    out.raw(&[0x82]);
    out.raw(&number.to_be_bytes());
}

fn hex(digits: &str) -> Vec<u8> {
    let byte = |place| u8::from_str_radix(&digits[place..place + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn map(code: u8, entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    out.descriptor(code);
    let mark = out.begin_map();
    for (name, value) in entries {
        match code {
            0x72 => out.symbol(name),
            _ => out.string(name),
        }
        out.raw(value);
    }
    out.end(mark, entries.len() as u32 * 2);
    bytes
}

fn list(code: u8, fields: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    out.descriptor(code);
    let mark = out.begin_list();
    for field in fields {
        match field {
            Some(value) => out.raw(value),
            None => out.null(),
        }
    }
    out.end(mark, fields.len() as u32);
    bytes
}

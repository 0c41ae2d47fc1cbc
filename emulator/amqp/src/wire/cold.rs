//! Reads the performatives that occur a few times per connection, session or link, and rewrites the filter set of a source.
//!
//! [`Reader::validate`] first checks every body, because `serde_amqp` recurses and allocates by count. The body is then read
//! field by field: the source and target of an attach must be echoed byte for byte, and an odd property or filter (uamqp
//! writes the keys of an open as strings) must only lose that entry, not the connection or the link. Single property and
//! filter values do go through `serde_amqp`. Detach, end and close are a handle, a flag and an error, and must be understood
//! even if the error is odd.
//!
//! Session receivers need the rewritten filter: the granted session id replaces the requested one (spec/wire.md §0.5), while
//! the address and every other byte stay as sent.

use std::time::Duration;

use serde_amqp::Value;
use serde_amqp::descriptor::Descriptor::Code;
use servicebus_codec::{DecodeError, Descriptor, Fields, Reader, Writer};

use super::value::decode;
use super::{code, state, value};
use crate::error::Error;

/// Characters of a peer's product that are kept.
const MAX_PRODUCT: usize = 100;

/// The peer's `open` (AMQP 1.0 §2.7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerOpen {
    /// The peer's container id.
    pub container_id: String,
    /// Host that the peer connects to, sometimes with a port (spec/wire.md §1.4).
    pub hostname: Option<String>,
    /// How long this side may be silent, if the peer has a limit.
    pub idle_timeout: Option<Duration>,
    /// Highest channel that the peer accepts.
    pub channel_max: u16,
    /// Largest frame that the peer accepts, in bytes.
    pub max_frame_size: u32,
    /// Whether the peer described itself (product, version and so on).
    pub has_properties: bool,
    /// The property `product`.
    pub product: Option<String>,
    /// Whether the peer is a client of JMS 2.0: `com.microsoft:is-client-provider` is true.
    pub is_jms: bool,
    /// Seconds without use after which the queues, topics and subscriptions that such a client creates are deleted.
    pub idle_seconds: [Option<u64>; 3],
}

/// The fields of an attach that the engine needs (AMQP 1.0 §2.7.3).
#[derive(Debug)]
pub(crate) struct Attach {
    pub(crate) name: String,
    pub(crate) handle: u32,
    pub(crate) peer_receives: bool,
    pub(crate) snd_settle_mode: Option<u32>,
    pub(crate) rcv_settle_mode: Option<u32>,
    pub(crate) source: Option<Terminus>,
    pub(crate) target: Option<Terminus>,
    pub(crate) initial_delivery_count: u32,
    pub(crate) desired_capabilities: Vec<String>,
    pub(crate) properties: Vec<(String, Value)>,
}

/// A source, a target or a coordinator.
#[derive(Debug, Default)]
pub(crate) struct Terminus {
    /// As received, to be echoed.
    pub(crate) encoded: Box<[u8]>,
    pub(crate) coordinator: bool,
    pub(crate) address: Option<String>,
    pub(crate) terminus_lifetime: TerminusLifetime,
    /// `None` for a target.
    pub(crate) distribution_mode: Option<String>,
    /// Empty for a target.
    pub(crate) filter: Vec<(String, Value)>,
    pub(crate) capabilities: Vec<String>,
}

/// How long a terminus and its node last (AMQP 1.0 §3.5.3 to §3.5.10).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminusLifetime {
    /// Whether its state outlives the link.
    pub is_durable: bool,
    /// Whether a node must be created for the link.
    pub is_dynamic: bool,
    /// The code of the described `lifetime-policy` of such a node, or 0 if it is not a number; `None` without a policy.
    pub lifetime_policy: Option<u64>,
}

/// The fields of a begin that the engine needs (AMQP 1.0 §2.7.2).
#[derive(Debug)]
pub(crate) struct SessionBegin {
    pub(crate) is_answer: bool,
    pub(crate) next_outgoing_id: u32,
    pub(crate) incoming_window: u32,
    pub(crate) outgoing_window: u32,
    pub(crate) handle_max: u32,
}

pub(crate) fn open(body: &[u8]) -> Result<PeerOpen, DecodeError> {
    let mut fields = performative(body)?;
    let container_id = fields
        .text()?
        .ok_or(DecodeError::Missing {
            field: "container-id",
        })?
        .to_owned();
    let hostname = fields.text()?.map(str::to_owned);
    let max_frame_size = fields.u32()?.unwrap_or(u32::MAX);
    let channel_max = fields.u32()?.unwrap_or(u32::MAX);
    let idle = fields.u32()?.filter(|milliseconds| *milliseconds > 0);
    for _locales_and_capabilities in 0..4 {
        fields.raw()?;
    }
    let properties = fields.raw()?.map(entries).unwrap_or_default();
    Ok(PeerOpen {
        container_id,
        hostname,
        idle_timeout: idle.map(|milliseconds| Duration::from_millis(milliseconds.into())),
        channel_max: channel_max.try_into().unwrap_or(u16::MAX),
        // A peer may not announce less (AMQP 1.0 §2.7.1); one that does gets frames that every peer must take.
        max_frame_size: max_frame_size.max(512),
        // A client of JMS 2.0 declares that it is one (spec/jms.md).
        is_jms: find(&properties, "com.microsoft:is-client-provider") == Some(&Value::Bool(true)),
        idle_seconds: IDLE_SECONDS.map(|name| seconds(find(&properties, name)?)),
        product: find(&properties, "product").and_then(product),
        has_properties: !properties.is_empty(),
    })
}

/// Properties of an `open`: the idle times of entities that a client of JMS 2.0 creates.
const IDLE_SECONDS: [&str; 3] = [
    "com.microsoft:queue-auto-delete-on-idle-duration-in-seconds",
    "com.microsoft:topic-auto-delete-on-idle-duration-in-seconds",
    "com.microsoft:subscriber-auto-delete-on-idle-duration-in-seconds",
];

fn find<'p>(properties: &'p [(String, Value)], name: &str) -> Option<&'p Value> {
    let (_, value) = properties.iter().find(|(key, _)| key == name)?;
    Some(value)
}

/// Returns whole seconds; `None` if the value is anything else.
fn seconds(value: &Value) -> Option<u64> {
    if let Value::Long(seconds) = value {
        u64::try_from(*seconds).ok()
    } else if let Value::Int(seconds) = value {
        u64::try_from(*seconds).ok()
    } else {
        None
    }
}

/// Returns the library of a peer.
fn product(value: &Value) -> Option<String> {
    let product = if let Value::String(text) = value {
        text.as_str()
    } else if let Value::Symbol(name) = value {
        name.as_str()
    } else {
        return None;
    };
    Some(product.chars().take(MAX_PRODUCT).collect())
}

pub(crate) fn begin(body: &[u8]) -> Result<SessionBegin, DecodeError> {
    let mut fields = performative(body)?;
    let is_answer = fields.u32()?.is_some();
    let mut due = |field| fields.u32()?.ok_or(DecodeError::Missing { field });
    Ok(SessionBegin {
        is_answer,
        next_outgoing_id: due("next-outgoing-id")?,
        incoming_window: due("incoming-window")?,
        outgoing_window: due("outgoing-window")?,
        handle_max: fields.u32()?.unwrap_or(u32::MAX),
    })
}

/// Reads mechanism, initial response and host name.
pub(crate) fn sasl_init(body: &[u8]) -> Result<(String, Vec<u8>, Option<String>), DecodeError> {
    let mut fields = performative(body)?;
    let mechanism = fields
        .text()?
        .ok_or(DecodeError::Missing { field: "mechanism" })?
        .to_owned();
    let response = fields.binary()?.unwrap_or_default().to_vec();
    Ok((mechanism, response, fields.text()?.map(str::to_owned)))
}

pub(crate) fn attach(body: &[u8]) -> Result<Attach, DecodeError> {
    let mut fields = performative(body)?;
    let name = fields
        .text()?
        .ok_or(DecodeError::Missing { field: "name" })?
        .to_owned();
    let handle = fields
        .u32()?
        .ok_or(DecodeError::Missing { field: "handle" })?;
    let peer_receives = fields
        .bool()?
        .ok_or(DecodeError::Missing { field: "role" })?;
    let snd_settle_mode = fields.u32()?;
    let rcv_settle_mode = fields.u32()?;
    let source = fields.raw()?.map(terminus).transpose()?;
    let target = fields.raw()?.map(terminus).transpose()?;
    let _unsettled = fields.raw()?;
    let _incomplete_unsettled = fields.raw()?;
    let initial_delivery_count = fields.u32()?.unwrap_or(0);
    for _max_message_size_and_offered_capabilities in 0..2 {
        fields.raw()?;
    }
    let desired_capabilities = symbols(&mut fields)?;
    let properties = fields.raw()?.map(entries).unwrap_or_default();
    Ok(Attach {
        name,
        handle,
        peer_receives,
        snd_settle_mode,
        rcv_settle_mode,
        source,
        target,
        initial_delivery_count,
        desired_capabilities,
        properties,
    })
}

/// Reads the handle, whether the link is closed, and the error.
pub(crate) fn detach(body: &[u8]) -> Result<(u32, bool, Option<Error>), DecodeError> {
    let mut fields = performative(body)?;
    let handle = fields
        .u32()?
        .ok_or(DecodeError::Missing { field: "handle" })?;
    let closed = fields.bool()?.unwrap_or(false);
    let error = fields
        .raw()?
        .and_then(|encoded| state::read_error(encoded).ok());
    Ok((handle, closed, error))
}

/// Reads the error of an end or a close, if there is a valid one.
pub(crate) fn close_frame(body: &[u8]) -> Option<Error> {
    let error = performative(body).ok()?.raw().ok()??;
    state::read_error(error).ok()
}

/// Returns the fields of a performative after checking every value.
fn performative(body: &[u8]) -> Result<Fields<'_>, DecodeError> {
    Reader::new(body).validate()?;
    let mut reader = Reader::new(body);
    reader.descriptor()?;
    reader.fields()
}

fn terminus(encoded: &[u8]) -> Result<Terminus, DecodeError> {
    let mut reader = Reader::new(encoded);
    let coordinator = match reader.descriptor()? {
        Descriptor::Code(code) => code == 0x30,
        Descriptor::Symbol(name) => name == "amqp:coordinator:list",
    };
    let mut terminus = Terminus {
        encoded: encoded.into(),
        coordinator,
        ..Terminus::default()
    };
    if !coordinator {
        let mut fields = reader.fields()?;
        terminus.address = fields.value()?.as_text().map(str::to_owned);
        terminus.terminus_lifetime.is_durable =
            fields.value()?.as_i64().is_some_and(|state| state > 0);
        for _expiry_policy_and_timeout in 0..2 {
            fields.raw()?;
        }
        terminus.terminus_lifetime.is_dynamic =
            fields.value()? == servicebus_codec::Value::Bool(true);
        let node = fields.raw()?.map(entries).unwrap_or_default();
        terminus.terminus_lifetime.lifetime_policy = lifetime_policy(&node);
        if is_source(encoded)? {
            terminus.distribution_mode = fields.value()?.as_text().map(str::to_owned);
            terminus.filter = fields.raw()?.map(entries).unwrap_or_default();
            for _default_outcome_and_outcomes in 0..2 {
                fields.raw()?;
            }
        }
        terminus.capabilities = symbols(&mut fields)?;
    }
    Ok(terminus)
}

/// Returns whether a terminus is a source: a target has other types at the same positions.
fn is_source(encoded: &[u8]) -> Result<bool, DecodeError> {
    Ok(match Reader::new(encoded).descriptor()? {
        Descriptor::Code(descriptor) => descriptor == u64::from(code::SOURCE),
        Descriptor::Symbol(name) => name == "amqp:source:list",
    })
}

/// Returns the code of the lifetime policy of a dynamic node (AMQP 1.0 §3.5.10).
fn lifetime_policy(node: &[(String, Value)]) -> Option<u64> {
    let policy = find(node, "lifetime-policy")?;
    let code = if let Value::Described(described) = policy
        && let Code(code) = described.descriptor
    {
        code
    } else {
        0
    };
    Some(code)
}

/// Reads the next field as symbols: one, an array of them, or none. Anything else counts as none.
fn symbols(fields: &mut Fields<'_>) -> Result<Vec<String>, DecodeError> {
    let Some(encoded) = fields.raw()? else {
        return Ok(Vec::new());
    };
    let decoded = decode(encoded);
    let symbols = if let Some(Value::Symbol(one)) = decoded {
        vec![one]
    } else if let Some(Value::Array(many)) = decoded {
        let symbol = |value| {
            if let Value::Symbol(symbol) = value {
                Some(symbol)
            } else {
                None
            }
        };
        many.0.into_iter().filter_map(symbol).collect()
    } else {
        Vec::new()
    };
    Ok(symbols.into_iter().map(|symbol| symbol.0).collect())
}

/// Returns the entries of an encoded map whose keys are text and whose values the library can decode.
fn entries(encoded: &[u8]) -> Vec<(String, Value)> {
    let Ok(map) = Reader::new(encoded).map() else {
        return Vec::new();
    };
    let mut items = map.items;
    let mut all = Vec::new();
    while let (Ok(key), Ok(value)) = (items.value(), items.skip()) {
        if let (Some(key), Some(value)) = (key.as_text(), decode(value)) {
            all.push((key.to_owned(), value));
        }
    }
    all
}

/// Number of fields of a source (AMQP 1.0 §3.5.3).
const FIELDS: usize = 11;
const FILTER: usize = 7;
const ADDRESS: usize = 0;
/// Number of fields of a target (AMQP 1.0 §3.5.4).
const TARGET_FIELDS: usize = 7;
/// The durability of a terminus whose unsettled deliveries outlive the link (AMQP 1.0 §3.5.5).
const UNSETTLED_STATE: u32 = 2;

/// Returns the source with the values of `filter`, which are added or replace those of the same keys.
pub(crate) fn with_filter(
    source: &[u8],
    filter: &[(String, Value)],
) -> Result<Vec<u8>, DecodeError> {
    rewritten(source, FIELDS, FILTER, |writer, requested| {
        merged(writer, requested, filter)
    })
}

pub(crate) fn with_address(terminus: &[u8], address: &str) -> Result<Vec<u8>, DecodeError> {
    let count = match is_source(terminus)? {
        true => FIELDS,
        false => TARGET_FIELDS,
    };
    rewritten(terminus, count, ADDRESS, |writer, _| {
        writer.string(address);
        Ok(())
    })
}

/// Returns the terminus with one field as `write` encodes it, given the previous value.
fn rewritten(
    terminus: &[u8],
    count: usize,
    place: usize,
    write: impl Fn(&mut Writer<'_>, Option<&[u8]>) -> Result<(), DecodeError>,
) -> Result<Vec<u8>, DecodeError> {
    let is_source = is_source(terminus)?;
    let mut reader = Reader::new(terminus);
    reader.descriptor()?;
    let mut fields = reader.fields()?;
    let mut out = Vec::with_capacity(terminus.len() + 64);
    let mut writer = Writer::new(&mut out);
    writer.descriptor(if is_source {
        code::SOURCE
    } else {
        code::TARGET
    });
    let list = writer.begin_list();
    for index in 0..count {
        match fields.raw()? {
            field if index == place => write(&mut writer, field)?,
            Some(encoded) => writer.raw(encoded),
            None => writer.null(),
        }
    }
    writer.end(list, count as u32);
    Ok(out)
}

/// Returns the source of a subscription that the client did not describe: durable, with these capabilities.
pub(crate) fn subscription(address: &str, capabilities: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.descriptor(code::SOURCE);
    let list = writer.begin_list();
    writer.string(address);
    writer.uint(UNSETTLED_STATE);
    writer.symbol("never");
    (3..6).for_each(|_| writer.null());
    writer.symbol("copy");
    (7..10).for_each(|_| writer.null());
    writer.symbol_array(capabilities);
    writer.end(list, FIELDS as u32);
    out
}

fn merged(
    writer: &mut Writer<'_>,
    requested: Option<&[u8]>,
    filter: &[(String, Value)],
) -> Result<(), DecodeError> {
    let map = writer.begin_map();
    let mut count = 0;
    if let Some(requested) = requested {
        let requested = Reader::new(requested).map()?;
        let mut items = requested.items;
        for _ in 0..requested.count / 2 {
            let (key, value) = (items.skip()?, items.skip()?);
            let name = Reader::new(key).value()?.as_text();
            if filter
                .iter()
                .any(|(replaced, _)| Some(replaced.as_str()) == name)
            {
                continue;
            }
            writer.raw(key);
            writer.raw(value);
            count += 2;
        }
    }
    for (key, granted) in filter {
        writer.symbol(key);
        value::write(writer, granted);
        count += 2;
    }
    writer.end(map, count);
    Ok(())
}

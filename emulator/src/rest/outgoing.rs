//! Encodes the message of an HTTP request as an AMQP client would.

use bytes::Bytes;
use servicebus_codec::Writer;

use super::broker_properties::BrokerPropertiesHeader;
use super::value::PropertyValue;

const HEADER: u8 = 0x70;
const MESSAGE_ANNOTATIONS: u8 = 0x72;
const PROPERTIES: u8 = 0x73;
const APPLICATION_PROPERTIES: u8 = 0x74;
const DATA: u8 = 0x75;

/// The number of properties fields: the last is the reply-to group id.
const FIELDS: u32 = 13;
/// The end of the year 9999: later instants do not fit the types of SDKs (wire.md §7.2).
const LATEST: i64 = 253_402_300_799_999;

/// The message of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct OutgoingMessage {
    pub(crate) properties: BrokerPropertiesHeader,
    pub(crate) application: Vec<(String, PropertyValue)>,
    pub(crate) body: Bytes,
}

impl OutgoingMessage {
    /// Encodes the message. A time to live that does not fit its field becomes creation and expiry time (semantics §4),
    /// counted from `now`, the client's time in milliseconds.
    pub(crate) fn encode(&self, now: i64) -> Bytes {
        let mut encoded = Vec::with_capacity(self.body.len() + 512);
        let mut out = Writer::new(&mut encoded);
        self.write_header(&mut out);
        self.write_annotations(&mut out);
        self.write_properties(now, &mut out);
        self.write_application(&mut out);
        out.descriptor(DATA);
        out.binary(&self.body);
        encoded.into()
    }

    fn write_header(&self, out: &mut Writer<'_>) {
        let BrokerPropertiesHeader {
            durable,
            time_to_live,
            ..
        } = self.properties;
        if durable.is_none() && time_to_live.is_none() {
            return;
        }
        out.descriptor(HEADER);
        let list = out.begin_list();
        match durable {
            Some(flag) => out.bool(flag),
            None => out.null(),
        }
        out.null();
        match time_to_live {
            Some(milliseconds) => out.uint(u32::try_from(milliseconds).unwrap_or(u32::MAX)),
            None => out.null(),
        }
        out.end(list, 3);
    }

    fn write_annotations(&self, out: &mut Writer<'_>) {
        let properties = &self.properties;
        let keys = [
            ("x-opt-partition-key", &properties.partition_key),
            ("x-opt-via-partition-key", &properties.via_partition_key),
        ];
        let scheduled = properties.scheduled_at;
        if scheduled.is_none() && keys.iter().all(|(_, key)| key.is_none()) {
            return;
        }
        out.descriptor(MESSAGE_ANNOTATIONS);
        let map = out.begin_map();
        let mut entries = 0;
        for (name, key) in keys {
            if let Some(key) = key {
                out.symbol(name);
                out.string(key);
                entries += 1;
            }
        }
        if let Some(instant) = scheduled {
            out.symbol("x-opt-scheduled-enqueue-time");
            out.timestamp(instant);
            entries += 1;
        }
        out.end(map, entries * 2);
    }

    fn write_properties(&self, now: i64, out: &mut Writer<'_>) {
        let properties = &self.properties;
        let long = properties
            .time_to_live
            .filter(|&time| time > u64::from(u32::MAX));
        let expiry = long.map(|time| {
            let time = i64::try_from(time).unwrap_or(i64::MAX);
            now.saturating_add(time).min(LATEST)
        });
        let text = |field: &Option<String>, out: &mut Writer<'_>| match field {
            Some(text) => out.string(text),
            None => out.null(),
        };
        let instant = |field: Option<i64>, out: &mut Writer<'_>| match field {
            Some(instant) => out.timestamp(instant),
            None => out.null(),
        };
        out.descriptor(PROPERTIES);
        let list = out.begin_list();
        text(&properties.message_id, out);
        out.null();
        text(&properties.to, out);
        text(&properties.label, out);
        text(&properties.reply_to, out);
        text(&properties.correlation_id, out);
        match &properties.content_type {
            Some(content_type) => out.symbol(content_type),
            None => out.null(),
        }
        out.null();
        instant(expiry, out);
        instant(expiry.map(|_| now), out);
        text(&properties.session_id, out);
        out.null();
        text(&properties.reply_to_session_id, out);
        out.end(list, FIELDS);
    }

    fn write_application(&self, out: &mut Writer<'_>) {
        if self.application.is_empty() {
            return;
        }
        out.descriptor(APPLICATION_PROPERTIES);
        let map = out.begin_map();
        for (name, value) in &self.application {
            out.string(name);
            value.write(out);
        }
        out.end(map, self.application.len() as u32 * 2);
    }
}

//! Encodes deliveries: a new header and new annotations, then the message as it was sent.

use bytes::Bytes;
use servicebus_codec::{DecodeError, Writer};
use uuid::Uuid;

use super::properties::PropertiesSummary;
use super::{Message, MessageError, annotations, properties, sections};
use crate::ids::SequenceNumber;
use crate::time::Timestamp;

/// The properties that the broker writes on a delivered message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerProperties {
    /// Failed deliveries so far.
    pub delivery_count: u32,
    /// The shown time to live in milliseconds (decision D7).
    pub time_to_live: Option<u64>,
    /// The sequence number in its store.
    pub sequence_number: SequenceNumber,
    /// The sequence number where the message first entered, if that is another entity (observed 3).
    pub enqueued_sequence_number: Option<SequenceNumber>,
    /// When it was accepted.
    pub enqueued_at: Timestamp,
    /// The lock and its end; `None` for peeked messages and those removed on delivery.
    pub lock: Option<(Uuid, Timestamp)>,
    /// Whether it was removed on delivery.
    pub is_removed: bool,
    /// `x-opt-message-state`, if shown.
    pub state: Option<i32>,
}

impl Message {
    /// Appends everything before the first byte that is sent unchanged, and returns the rest, shared.
    ///
    /// `ahead` is how many milliseconds the namespace's clock is ahead of the client's: instants are written in the client's
    /// time (decision D20). Fails for a message with a [missing](Self::missing) part.
    pub fn encode(
        &self,
        broker_properties: &BrokerProperties,
        ahead: i64,
        out: &mut Vec<u8>,
    ) -> Result<Bytes, DecodeError> {
        match self.missing() {
            None => self.encode_beginning(broker_properties, ahead, out),
            Some(_) => Err(DecodeError::Truncated),
        }
    }

    fn encode_beginning(
        &self,
        broker_properties: &BrokerProperties,
        ahead: i64,
        out: &mut Vec<u8>,
    ) -> Result<Bytes, DecodeError> {
        let payload = &self.payload;
        let client_time = |instant: Timestamp| instant.as_millis().saturating_sub(ahead);
        let mut writer = Writer::new(out);
        let header = Header::parse(self.sections.header(payload))?;
        header.write(
            broker_properties.delivery_count,
            broker_properties.time_to_live,
            &mut writer,
        );

        let sent = self.sections.delivery_annotations(payload);
        // A received and deleted message has such a section even if it is empty (observed 4).
        if broker_properties.lock.is_some() || broker_properties.is_removed || !sent.is_empty() {
            annotations::write(
                sections::DELIVERY_ANNOTATIONS,
                sent,
                0,
                &mut writer,
                |out| {
                    let Some((token, _)) = broker_properties.lock else {
                        return 0;
                    };
                    out.symbol("x-opt-lock-token");
                    out.uuid(token);
                    1
                },
            )?;
        }
        let sent = self.annotations();
        annotations::write(
            sections::MESSAGE_ANNOTATIONS,
            sent,
            ahead,
            &mut writer,
            |out| {
                let source = self.dead_letter_source();
                if let Some(source) = source {
                    out.symbol(annotations::DEAD_LETTER_SOURCE);
                    out.string(source);
                }
                broker_properties.write_annotations(client_time, out) + u32::from(source.is_some())
            },
        )?;
        self.write_message(self.expiry(broker_properties.time_to_live), out)
    }

    /// Returns whether the sender wants it durable, which is the default.
    pub(crate) fn is_durable(&self) -> bool {
        let header = Header::parse(self.sections.header(&self.payload));
        header
            .ok()
            .and_then(|header| header.durable)
            .unwrap_or(true)
    }

    /// Returns the expiry instant that replaces the sender's: if its entity has given the message another time to live, that
    /// long after the sender's creation time, if set (observed 5).
    fn expiry(&self, time_to_live: Option<u64>) -> Option<i64> {
        let changed = time_to_live.filter(|_| time_to_live != self.time_to_live())?;
        properties::expiry_after(self.properties(), changed)
    }

    /// Appends everything before the body; leaves out body and footer.
    pub fn encode_without_body(
        &self,
        broker_properties: &BrokerProperties,
        ahead: i64,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        let tail = self.encode_beginning(broker_properties, ahead, out)?;
        let (_, body) = self.sections.application_range();
        let stored_body = self.payload.len() - body;
        out.extend_from_slice(&tail[..tail.len() - stored_body]);
        Ok(())
    }

    /// Appends the message as it would be sent again: without the broker's properties of deliveries.
    pub fn encode_as_sent(&self, out: &mut Vec<u8>) {
        let before = &self.payload[..self.sections.annotations_begin()];
        let content = self.content();
        for section in [
            before,
            self.annotations(),
            self.properties(),
            self.application_properties(),
            &content[..],
        ] {
            out.extend_from_slice(section);
        }
    }

    /// Appends the properties with the expiry instant and changed application properties; returns what follows.
    fn write_message(&self, expiry: Option<i64>, out: &mut Vec<u8>) -> Result<Bytes, DecodeError> {
        let (application_start, application_end) = self.sections.application_range();
        let mut untouched = self.sections.message_annotations_end();
        if expiry.is_some() {
            let section = properties::with_expiry(self.properties(), expiry)?;
            out.extend_from_slice(&section);
            untouched = application_start;
        } else if let Some(section) = self.replaced_properties() {
            out.extend_from_slice(section);
            untouched = application_start;
        }
        if let Some(application) = self.replaced_application() {
            out.extend_from_slice(&self.payload[untouched..application_start]);
            out.extend_from_slice(application);
            untouched = application_end;
        }
        Ok(self.payload.slice(untouched..))
    }
}

impl BrokerProperties {
    fn write_annotations(
        &self,
        client_time: impl Fn(Timestamp) -> i64,
        out: &mut Writer<'_>,
    ) -> u32 {
        out.symbol("x-opt-enqueued-time");
        out.timestamp(client_time(self.enqueued_at));
        out.symbol("x-opt-sequence-number");
        out.long(self.sequence_number.0 as i64);
        let mut entries = 2;
        if let Some(number) = self.enqueued_sequence_number {
            out.symbol("x-opt-enqueue-sequence-number");
            out.long(number.0 as i64);
            entries += 1;
        }
        if let Some((_, locked_until)) = self.lock {
            out.symbol("x-opt-locked-until");
            out.timestamp(client_time(locked_until));
            entries += 1;
        }
        if let Some(state) = self.state {
            out.symbol("x-opt-message-state");
            out.int(state);
            entries += 1;
        }
        entries
    }
}

/// The header as sent (AMQP 1.0 §3.2.1); the delivery count in it belongs to the broker and is not read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Header {
    durable: Option<bool>,
    first_acquirer: Option<bool>,
    priority: Option<u32>,
    time_to_live: Option<u32>,
}

impl Header {
    pub(crate) fn parse(section: &[u8]) -> Result<Self, DecodeError> {
        if section.is_empty() {
            return Ok(Self::default());
        }
        let mut fields = sections::content(section)?.fields()?;
        Ok(Self {
            durable: fields.bool()?,
            priority: fields.u32()?,
            time_to_live: fields.u32()?,
            first_acquirer: fields.bool()?,
        })
    }

    /// Returns the time to live in milliseconds. The field ends at 49.7 days; longer lifetimes have its maximum, and their
    /// creation and expiry times count (semantics §4). These times cannot shorten the lifetime, because clients compute them
    /// carelessly (wire.md §7.2).
    pub(crate) fn time_to_live(
        &self,
        properties: &PropertiesSummary,
    ) -> Result<Option<u64>, MessageError> {
        match (self.time_to_live, properties.lifetime) {
            (Some(0), _) => Err(MessageError::ZeroTimeToLive),
            (Some(u32::MAX), Some(lifetime)) => Ok(Some(lifetime.max(u64::from(u32::MAX)))),
            (time_to_live, _) => Ok(time_to_live.map(u64::from)),
        }
    }

    /// Appends the header of a delivery: fields that the sender did not set are null (observed 2).
    pub(crate) fn write(
        &self,
        delivery_count: u32,
        time_to_live: Option<u64>,
        out: &mut Writer<'_>,
    ) {
        out.descriptor(sections::HEADER as u8);
        let list = out.begin_list();
        optional(self.durable, out);
        match self.priority {
            Some(priority) => out.ubyte(u8::try_from(priority).unwrap_or(u8::MAX)),
            None => out.null(),
        }
        match time_to_live {
            Some(milliseconds) => out.uint(u32::try_from(milliseconds).unwrap_or(u32::MAX)),
            None => out.null(),
        }
        optional(self.first_acquirer, out);
        out.uint(delivery_count);
        out.end(list, 5);
    }
}

fn optional(flag: Option<bool>, out: &mut Writer<'_>) {
    match flag {
        Some(flag) => out.bool(flag),
        None => out.null(),
    }
}

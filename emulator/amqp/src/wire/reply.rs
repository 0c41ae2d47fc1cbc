//! Writes the performatives that answer a peer's, with all fields present.
//!
//! Written by hand instead of through `serde_amqp`, which omits trailing nulls and defaults: some clients index fields
//! without checking the length (spec/wire.md §0.7, §10.17).

use std::time::Duration;

use serde_amqp::Value;
use servicebus_codec::Writer;

use super::{code, frame, state, value};
use crate::config::Config;
use crate::error::Error;

/// The announced outgoing window. Only the peer's incoming window limits this side.
pub(crate) const OUTGOING_WINDOW: u32 = i32::MAX as u32;

/// Mechanisms in order of preference. .NET accepts only MSSBCBS; a client with a password must see PLAIN before ANONYMOUS,
/// and one without skips it (spec/wire.md §1.3).
const MECHANISMS: [&str; 4] = ["MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"];

pub(crate) fn sasl_mechanisms(out: &mut Vec<u8>) {
    list(out, frame::SASL, 0, code::SASL_MECHANISMS, 1, |writer| {
        writer.symbol_array(&MECHANISMS);
    });
}

/// Appends a SASL outcome: 0 is success, 1 an authentication failure, 2 any other failure (AMQP 1.0 §5.3.3.6).
pub(crate) fn sasl_outcome(out: &mut Vec<u8>, outcome: u8) {
    list(out, frame::SASL, 0, code::SASL_OUTCOME, 2, |writer| {
        writer.ubyte(outcome);
        writer.null();
    });
}

/// Capabilities that a client of JMS 2.0 is offered (spec/jms.md). Not the anonymous relay: without it each sender names its
/// target.
const OFFERED_TO_JMS: [&str; 2] = ["SHARED-SUBS", "DELAYED_DELIVERY"];

pub(crate) fn open(out: &mut Vec<u8>, config: &Config, is_to_jms: bool) {
    list(out, frame::AMQP, 0, code::OPEN, 10, |writer| {
        writer.string(&config.container_id);
        writer.null();
        writer.uint(config.max_frame_size);
        writer.ushort(config.channel_max);
        // Half of what is enforced (AMQP 1.0 §2.4.5), so that a heartbeat at the last moment arrives in time.
        writer.uint(milliseconds(config.idle_timeout / 2));
        (0..2).for_each(|_| writer.null());
        match is_to_jms {
            true => writer.symbol_array(&OFFERED_TO_JMS),
            false => writer.null(),
        }
        writer.null();
        let properties = writer.begin_map();
        writer.end(properties, 0);
    });
}

pub(crate) fn begin(out: &mut Vec<u8>, channel: u16, remote_channel: u16, config: &Config) {
    list(out, frame::AMQP, channel, code::BEGIN, 8, |writer| {
        writer.ushort(remote_channel);
        writer.uint(0);
        writer.uint(config.session_window);
        writer.uint(OUTGOING_WINDOW);
        writer.uint(config.handle_max);
        writer.null();
        writer.null();
        let properties = writer.begin_map();
        writer.end(properties, 0);
    });
}

/// This side's attach. The role is this side's: `receives` if the peer sends.
#[derive(Debug)]
pub(crate) struct Attach<'a> {
    pub(crate) name: &'a str,
    pub(crate) handle: u32,
    pub(crate) receives: bool,
    pub(crate) snd_settle_mode: u8,
    pub(crate) rcv_settle_mode: u8,
    /// Encoded, or null.
    pub(crate) source: Option<&'a [u8]>,
    pub(crate) target: Option<&'a [u8]>,
    pub(crate) max_message_size: u64,
    pub(crate) properties: &'a [(String, Value)],
}

pub(crate) fn attach(out: &mut Vec<u8>, channel: u16, attach: &Attach<'_>) {
    list(out, frame::AMQP, channel, code::ATTACH, 14, |writer| {
        writer.string(attach.name);
        writer.uint(attach.handle);
        writer.bool(attach.receives);
        writer.ubyte(attach.snd_settle_mode);
        writer.ubyte(attach.rcv_settle_mode);
        state::raw_or_null(writer, attach.source);
        state::raw_or_null(writer, attach.target);
        writer.null();
        writer.bool(false);
        // A null from this side breaks Python, .NET and fe2o3 on links that deliver (spec/wire.md §4.1).
        match attach.receives {
            true => writer.null(),
            false => writer.uint(0),
        }
        writer.ulong(attach.max_message_size);
        writer.null();
        writer.null();
        properties(writer, attach.properties);
    });
}

pub(crate) fn detach(
    out: &mut Vec<u8>,
    channel: u16,
    handle: u32,
    closed: bool,
    error: Option<&Error>,
) {
    list(out, frame::AMQP, channel, code::DETACH, 3, |writer| {
        writer.uint(handle);
        writer.bool(closed);
        state::write_error(writer, error);
    });
}

pub(crate) fn end(out: &mut Vec<u8>, channel: u16, error: Option<&Error>) {
    list(out, frame::AMQP, channel, code::END, 1, |writer| {
        state::write_error(writer, error);
    });
}

pub(crate) fn close(out: &mut Vec<u8>, error: Option<&Error>) {
    list(out, frame::AMQP, 0, code::CLOSE, 1, |writer| {
        state::write_error(writer, error);
    });
}

/// Appends a frame without a body as a heartbeat (AMQP 1.0 §2.4.5).
pub(crate) fn heartbeat(out: &mut Vec<u8>) {
    let start = frame::begin(out, frame::AMQP, 0);
    frame::end(out, start);
}

fn properties(writer: &mut Writer<'_>, entries: &[(String, Value)]) {
    let map = writer.begin_map();
    for (key, entry) in entries {
        writer.symbol(key);
        value::write(writer, entry);
    }
    writer.end(map, 2 * entries.len() as u32);
}

fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn list(
    out: &mut Vec<u8>,
    kind: u8,
    channel: u16,
    code: u8,
    count: u32,
    fields: impl FnOnce(&mut Writer<'_>),
) {
    let start = frame::begin(out, kind, channel);
    let mut writer = Writer::new(out);
    writer.descriptor(code);
    let mark = writer.begin_list();
    fields(&mut writer);
    writer.end(mark, count);
    frame::end(out, start);
}

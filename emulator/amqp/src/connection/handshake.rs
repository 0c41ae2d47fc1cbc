//! Protocol headers, SASL and open: everything before the first session (AMQP 1.0 §2.2, §2.4.1, §5.3).

use bytes::{Buf, BytesMut};

use super::{Connection, ConnectionState, Heartbeat};
use crate::error::{Error, Fault, condition};
use crate::event::Event;
use crate::wire::{code, cold, reply};

const AMQP_HEADER: [u8; 8] = *b"AMQP\x00\x01\x00\x00";
const SASL_HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";
/// The prefix of a SASL header.
const SASL_PROTOCOL: &[u8] = b"AMQP\x03";

/// Shortest interval of heartbeats, also for peers with shorter idle time-outs.
const HEARTBEAT_FLOOR: std::time::Duration = std::time::Duration::from_millis(100);

impl Connection {
    /// Accepts or refuses the credentials of [`Event::Sasl`]; refusing closes the connection.
    ///
    /// Call [`Connection::receive`] again afterwards: more input may be waiting.
    pub fn sasl_outcome(&mut self, accepted: bool) {
        if self.phase != ConnectionState::SaslPending {
            return;
        }
        reply::sasl_outcome(self.outbox.buffer(), if accepted { 0 } else { 1 });
        if accepted {
            self.phase = ConnectionState::Secured;
        } else {
            let error = Error::new(condition::UNAUTHORIZED_ACCESS, "authentication failed");
            self.finish(Some(error));
            self.phase = ConnectionState::Closed;
        }
    }

    /// Reads a protocol header. SASL is optional.
    pub(crate) fn header(&mut self, input: &mut BytesMut) -> bool {
        let Some(&header) = input.first_chunk::<8>() else {
            return false;
        };
        input.advance(header.len());
        let first = self.phase == ConnectionState::Header;
        match header {
            AMQP_HEADER => {
                self.outbox.buffer().extend_from_slice(&AMQP_HEADER);
                self.phase = ConnectionState::Opening;
            }
            SASL_HEADER if first => {
                self.outbox.buffer().extend_from_slice(&SASL_HEADER);
                reply::sasl_mechanisms(self.outbox.buffer());
                self.phase = ConnectionState::Sasl;
            }
            _ => {
                let ours = match first && header.starts_with(SASL_PROTOCOL) {
                    true => SASL_HEADER,
                    false => AMQP_HEADER,
                };
                self.outbox.buffer().extend_from_slice(&ours);
                let description = "the protocol header is not one of AMQP 1.0";
                let error = self.tracked(Error::new(condition::FRAMING_ERROR, description));
                self.finish(Some(error));
                self.phase = ConnectionState::Closed;
            }
        }
        true
    }

    pub(crate) fn on_sasl(&mut self, body: &[u8], performative: u8) -> Result<(), Fault> {
        if performative != code::SASL_INIT {
            return Err(Fault::framing("only sasl-init is due here"));
        }
        let (mechanism, response, hostname) =
            cold::sasl_init(body).map_err(|error| Fault::decoding("sasl-init", error))?;
        self.phase = ConnectionState::SaslPending;
        self.events.push_back(Event::Sasl {
            mechanism,
            response: response.into(),
            hostname,
        });
        Ok(())
    }

    pub(crate) fn on_open(&mut self, body: &[u8]) -> Result<(), Fault> {
        let open = cold::open(body).map_err(|error| Fault::decoding("open", error))?;
        reply::open(self.outbox.buffer(), &self.config, open.is_jms);
        self.phase = ConnectionState::Running;
        self.channel_max = self.config.channel_max.min(open.channel_max);
        self.outbox.max_frame_size = self.config.max_frame_size.min(open.max_frame_size) as usize;
        self.heartbeat = open.idle_timeout.map(|timeout| {
            let interval = (timeout / 2).max(HEARTBEAT_FLOOR);
            Heartbeat {
                interval,
                next: self.now + interval,
            }
        });
        self.events.push_back(Event::Opened(Box::new(open)));
        Ok(())
    }
}

//! The frames of one connection, put together to what was done on its links.
//!
//! Channels, handles and delivery ids name what belongs together and are forgotten. What both sides say at their own
//! time is recorded where it belongs: the outcome of a delivery with that delivery, an answer with its request.

use std::{collections::BTreeMap, sync::Arc};

use fe2o3_amqp::types::primitives::Value;
use servicebus_codec::{DecodeError, Descriptor, Reader};

use super::{
    Side,
    frames::Frame,
    link::{Link, Partial},
    message::{self, Sections},
    outcome,
    trace::Budget,
    value::{self, field, named, number, text},
};

/// What the service says of itself when a connection opens, without its name and the host's.
const OPEN_FIELDS: [&str; 10] = [
    "",
    "",
    "max-frame-size",
    "channel-max",
    "idle-time-out",
    "outgoing-locales",
    "incoming-locales",
    "offered-capabilities",
    "desired-capabilities",
    "properties",
];
/// The message format of a batch, which is one transfer.
const BATCH: u32 = 0x8001_3700;

/// An AMQP connection as the recorder sees it.
#[derive(Debug)]
pub(super) struct Exchange {
    budget: Arc<Budget>,
    /// What concerns the whole connection.
    own: Vec<String>,
    sessions: Vec<Session>,
    links: Vec<Link>,
    requests: Vec<Request>,
}

/// One AMQP session, by the numbers that both sides use.
#[derive(Debug, Default)]
struct Session {
    client_channel: Option<u16>,
    service_channel: Option<u16>,
    client_handles: BTreeMap<u32, usize>,
    service_handles: BTreeMap<u32, usize>,
    /// What the client sent and the service has not settled, by delivery id.
    sent: BTreeMap<u32, Unsettled>,
    /// What the service delivered and the client has not settled.
    delivered: BTreeMap<u32, Unsettled>,
}

/// A message whose outcome is due.
#[derive(Debug)]
struct Unsettled {
    link: usize,
    operation: usize,
    /// What the receiving client wants to become of it.
    wanted: Value,
}

/// A request without an answer.
#[derive(Debug)]
struct Request {
    session: usize,
    link: usize,
    operation: usize,
    id: Option<String>,
    reply_to: Option<String>,
}

impl Exchange {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            own: Vec::new(),
            sessions: Vec::new(),
            links: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Takes the next frame of a side.
    pub(super) fn frame(&mut self, side: Side, frame: &Frame) -> Result<(), DecodeError> {
        // An empty frame says that its sender lives.
        if frame.body.is_empty() {
            return Ok(());
        }
        let mut reader = Reader::new(&frame.body);
        let Descriptor::Code(code) = reader.descriptor()? else {
            return Ok(());
        };
        let fields = value::take_fields(&mut reader)?;
        match (code, side) {
            (0x40, Side::Service) => self.about("SASL mechanisms", field(&fields, 0)),
            (0x44, Side::Service) => self.about("SASL outcome", field(&fields, 0)),
            (0x10, Side::Service) => {
                let rendered = named(&OPEN_FIELDS[2..], fields.get(2..).unwrap_or_default());
                self.own.push(format!("opened: {rendered}"));
            }
            (0x11, side) => self.begin(side, frame.channel, &fields),
            (0x12, side) => self.attach(side, frame.channel, fields),
            (0x14, side) => self.transfer(side, frame.channel, fields, reader.rest()),
            (0x15, side) => self.disposition(side, frame.channel, &fields),
            (0x16, side) => self.detach(side, frame.channel, &fields),
            (0x17, side) => self.end(side, frame.channel, &fields),
            (0x18, Side::Service) => self.failed("closed", field(&fields, 0)),
            _ => {}
        }
        Ok(())
    }

    /// Says that the rest of the connection is not decoded.
    pub(super) fn lost(&mut self, why: &str) {
        self.own.push(format!("not decoded further: {why}"));
    }

    /// Renders what happened: on the connection, and on each link.
    pub(super) fn render(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        let own = ("connection".to_owned(), self.own.clone());
        let links = self.links.iter().map(|link| (link.title(), link.render()));
        std::iter::once(own).chain(links)
    }

    fn about(&mut self, what: &str, value: &Value) {
        self.own.push(format!("{what} {}", value::described(value)));
    }

    fn failed(&mut self, what: &str, error: &Value) {
        if *error != Value::Null && self.budget.take() {
            self.own
                .push(format!("{what} with {}", outcome::error(error)));
        }
    }

    fn begin(&mut self, side: Side, channel: u16, fields: &[Value]) {
        match (side, number(field(fields, 0))) {
            (Side::Client, _) if self.budget.take() => self.sessions.push(Session {
                client_channel: Some(channel),
                ..Session::default()
            }),
            (Side::Service, Some(remote)) => {
                let remote = u16::try_from(remote).ok();
                let begun = self.sessions.iter_mut().rev();
                let mut begun = begun.filter(|session| session.client_channel == remote);
                if let Some(session) = begun.next() {
                    session.service_channel = Some(channel);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, side: Side, channel: u16, fields: &[Value]) {
        let Some(session) = self.session(side, channel) else {
            return;
        };
        match side {
            Side::Client => self.sessions[session].client_channel = None,
            Side::Service => {
                self.sessions[session].service_channel = None;
                self.failed("session ended", field(fields, 0));
            }
        }
    }

    fn attach(&mut self, side: Side, channel: u16, fields: Vec<Value>) {
        let (Some(session), Some(handle)) =
            (self.session(side, channel), number(field(&fields, 1)))
        else {
            return;
        };
        match side {
            Side::Client if self.budget.take() => {
                self.links.push(Link::new(fields));
                let link = self.links.len() - 1;
                self.sessions[session].client_handles.insert(handle, link);
            }
            Side::Client => {}
            Side::Service => {
                let name = text(field(&fields, 0)).unwrap_or_default();
                let receives = *field(&fields, 2) != Value::Bool(true);
                let mut requester = self.sessions[session].client_handles.values().copied();
                let found = requester.find(|&link| {
                    let link = &self.links[link];
                    link.name == name && link.receives == receives && !link.is_answered()
                });
                if let Some(link) = found {
                    self.links[link].answered(&fields);
                    self.sessions[session].service_handles.insert(handle, link);
                }
            }
        }
    }

    fn detach(&mut self, side: Side, channel: u16, fields: &[Value]) {
        let (Some(session), Some(handle)) = (self.session(side, channel), number(field(fields, 0)))
        else {
            return;
        };
        let session = &mut self.sessions[session];
        match side {
            Side::Client => drop(session.client_handles.remove(&handle)),
            Side::Service => {
                if let Some(link) = session.service_handles.remove(&handle) {
                    self.links[link].ended(field(fields, 2));
                }
            }
        }
    }

    fn transfer(&mut self, side: Side, channel: u16, fields: Vec<Value>, payload: &[u8]) {
        let (Some(session), Some(handle)) =
            (self.session(side, channel), number(field(&fields, 0)))
        else {
            return;
        };
        let handles = match side {
            Side::Client => &self.sessions[session].client_handles,
            Side::Service => &self.sessions[session].service_handles,
        };
        let Some(&link) = handles.get(&handle) else {
            return;
        };
        let Some(whole) = self.links[link].frame(fields, payload) else {
            return;
        };
        match (side, self.links[link].is_of_requests()) {
            (Side::Client, false) => self.sent(session, link, &whole),
            (Side::Client, true) => self.requested(session, link, &whole),
            (Side::Service, false) => self.delivered(session, link, &whole),
            (Side::Service, true) => self.answered(session, link, &whole),
        }
    }

    fn sent(&mut self, session: usize, link: usize, whole: &Partial) {
        let transfer = &whole.transfer;
        let what = match number(field(transfer, 3)) {
            Some(BATCH) => "sent a batch",
            _ => "sent",
        };
        let state = match field(transfer, 7) {
            Value::Null => String::new(),
            state => format!(" {}", outcome::state(state)),
        };
        self.unsettled(
            Side::Client,
            session,
            link,
            transfer,
            format!("{what}{state}"),
        );
    }

    fn requested(&mut self, session: usize, link: usize, whole: &Partial) {
        let sections = Sections::read(&whole.bytes);
        let operation = sections.application_property("operation");
        let name = sections.application_property("name");
        let what = [Some("request"), operation, name].into_iter().flatten();
        let what = Vec::from_iter(what).join(" ");
        let unsettled = self.unsettled(Side::Client, session, link, &whole.transfer, what);
        if let Some(operation) = unsettled {
            self.requests.push(Request {
                session,
                link,
                operation,
                id: sections.message_id(),
                reply_to: sections.reply_to(),
            });
        }
    }

    fn delivered(&mut self, session: usize, link: usize, whole: &Partial) {
        let transfer = &whole.transfer;
        let tag = match field(transfer, 2) {
            Value::Binary(tag) => tag.len(),
            _ => 0,
        };
        let is_settled = *field(transfer, 4) == Value::Bool(true);
        let what = format!(
            "delivered{} with a tag of {tag} bytes, format {}: {}",
            if is_settled { " settled" } else { "" },
            number(field(transfer, 3)).unwrap_or_default(),
            message::described(&whole.bytes)
        );
        self.unsettled(Side::Service, session, link, transfer, what);
    }

    fn answered(&mut self, session: usize, link: usize, whole: &Partial) {
        let sections = Sections::read(&whole.bytes);
        let (answer, id) = (&self.links[link], sections.correlation_id());
        let is_asked = |request: &Request| {
            let requester = &self.links[request.link];
            let own = answer.own_address();
            let expected = request.reply_to.as_deref();
            request.session == session
                && request.id == id
                && requester.address() == answer.address()
                && expected.is_none_or(|expected| is_told(expected, own, &answer.name))
        };
        let rendered = sections.described_answer();
        match self.requests.iter().position(is_asked) {
            Some(at) => {
                let request = self.requests.remove(at);
                self.links[request.link].then(request.operation, rendered);
            }
            None if self.budget.take() => {
                self.links[link].operation(format!("an answer to no request: {rendered}"));
            }
            None => {}
        }
    }

    /// Writes an operation down, to which an outcome may come.
    fn unsettled(
        &mut self,
        side: Side,
        session: usize,
        link: usize,
        transfer: &[Value],
        what: String,
    ) -> Option<usize> {
        if !self.budget.take() {
            return None;
        }
        let operation = self.links[link].operation(what);
        if *field(transfer, 4) != Value::Bool(true)
            && let Some(id) = number(field(transfer, 1))
        {
            let session = &mut self.sessions[session];
            let unsettled = match side {
                Side::Client => &mut session.sent,
                Side::Service => &mut session.delivered,
            };
            let wanted = Value::Null;
            unsettled.insert(
                id,
                Unsettled {
                    link,
                    operation,
                    wanted,
                },
            );
        }
        Some(operation)
    }

    fn disposition(&mut self, side: Side, channel: u16, fields: &[Value]) {
        let (Some(session), Some(first)) = (self.session(side, channel), number(field(fields, 1)))
        else {
            return;
        };
        let last = number(field(fields, 2)).unwrap_or(first).max(first);
        let is_of_receiver = *field(fields, 0) == Value::Bool(true);
        let is_settled = *field(fields, 3) == Value::Bool(true);
        let session = &mut self.sessions[session];
        let unsettled = match (side, is_of_receiver) {
            (Side::Service, true) => &mut session.sent,
            (Side::Client, true) | (Side::Service, false) => &mut session.delivered,
            (Side::Client, false) => return,
        };
        let state = field(fields, 4);
        let meant = Vec::from_iter(unsettled.range(first..=last).map(|(id, _)| *id));
        for id in meant {
            let Some(delivery) = unsettled.get_mut(&id) else {
                continue;
            };
            let link = &mut self.links[delivery.link];
            let rendered = match (side, is_of_receiver) {
                // That a request came in says its answer.
                (_, true) if link.is_of_requests() && outcome::is_accepted(state) => None,
                // Some clients are told an outcome again, as often as time allows (decision D31).
                (Side::Service, true) if *state == delivery.wanted => None,
                (Side::Service, true) => Some(outcome::state(state)),
                // The peer may end before this is sent, and does not wait for the answer.
                (Side::Client, _) => None,
                (Side::Service, _) if outcome::confirms(&delivery.wanted, state) => None,
                (Side::Service, _) => Some(format!(
                    "the client wanted {}; {}",
                    outcome::state(&delivery.wanted),
                    outcome::state(state)
                )),
            };
            if let Some(rendered) = rendered {
                link.then(delivery.operation, rendered);
            }
            delivery.wanted = state.clone();
            if is_settled {
                unsettled.remove(&id);
            }
        }
    }

    fn session(&self, side: Side, channel: u16) -> Option<usize> {
        self.sessions.iter().rposition(|session| {
            let own = match side {
                Side::Client => session.client_channel,
                Side::Service => session.service_channel,
            };
            own == Some(channel)
        })
    }
}

/// Whether an answer goes where it was asked for: to the address that the receiving client gave itself, or to the
/// name of its link.
fn is_told(expected: &str, address: Option<&str>, name: &str) -> bool {
    let is = |text: &str| expected == format!("{:?}", Value::String(text.to_owned()));
    address.is_some_and(is) || is(name)
}

#[cfg(test)]
mod tests;

//! Attaches and detaches links (AMQP 1.0 §2.6.3 to §2.6.6). The owner decides about an attach, now or later; until then the
//! peer's transfers and flows are accepted, but nothing is written on the link.

use super::{Connection, announce};
use crate::attach::{AttachReply, AttachRequest};
use crate::error::{Error, Fault, condition};
use crate::event::Event;
use crate::ids::{LinkId, LinkRole};
use crate::link::{Echo, Incoming, Link, LinkState, Outgoing, Side};
use crate::session::Session;
use crate::wire::flow::LinkPart;
use crate::wire::{cold, flow, reply};

/// Maximum number of links on all sessions of a connection. Far more than any client has, and still affordable.
const LINKS_PER_CONNECTION: usize = 20_000;
/// Longest link name in bytes. Those of Rust's client exceed 255.
const NAME_LIMIT: usize = 4_096;
/// Bytes of the shortest answer to an attach without the link's name, rounded up.
const ANSWER_OVERHEAD: usize = 64;
/// Largest message on a link that is not accepted yet.
const PROVISIONAL_LIMIT: u64 = 1 << 20;
/// "No limit" as a number that JavaScript can read (spec/wire.md §3.1).
const LARGEST_MESSAGE: u64 = (1 << 53) - 1;

impl Connection {
    pub(crate) fn on_attach(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let Some(session) = self.sessions.live(channel)? else {
            return Ok(());
        };
        let attach = cold::attach(body).map_err(|error| Fault::decoding("attach", error))?;
        let least = attach.name.len() + ANSWER_OVERHEAD;
        if least > self.outbox.max_frame_size {
            let text = too_large(least, self.outbox.max_frame_size);
            return Err(Fault::session(condition::FRAME_SIZE_TOO_SMALL, text));
        }
        let looked_at = free_handle(session, attach.handle, &mut self.link_count)?;
        let initial_delivery_count = attach.initial_delivery_count;
        let handle = attach.handle;
        let (session, windows) = (session.id, session.windows_at_begin);
        let split = AttachRequest::split(attach, session, windows, body.len());
        let (request, echo) = split.map_err(|field| {
            let description = format!("{field} has no meaning");
            Fault::session(condition::INVALID_FIELD, description)
        })?;
        self.spend(looked_at);
        self.generation = self.generation.wrapping_add(1);
        let id = LinkId::new(self.generation, channel, handle);
        self.close_stolen_link(channel, &request);
        let link = Link::new(id, &request, echo, initial_delivery_count);
        if let Some(session) = self.sessions.on(channel) {
            session.insert(link);
            self.link_count += 1;
        }
        match self.attach_error(&request) {
            Some(error) => {
                let error = self.tracked(error);
                self.refuse_attach(id, error);
            }
            None => self.events.push_back(Event::Attach {
                link: id,
                attach: Box::new(request),
            }),
        }
        Ok(())
    }

    /// Accepts an attach: answers it, and grants credit to a sender.
    pub fn accept_attach(&mut self, link: LinkId, answer: AttachReply) {
        let Some(session) = self.sessions.of_mut(link) else {
            return;
        };
        let Some(found) = session.link_by_id(link) else {
            return;
        };
        let LinkState::Attaching(echo) = &found.stage else {
            return;
        };
        let max = self.outbox.max_frame_size;
        let out = self.outbox.buffer();
        let start = out.len();
        let limit = answer_attach(out, found, echo, &answer);
        let size = out.len() - start;
        if size > max {
            out.truncate(start);
            let error = Error::new(condition::FRAME_SIZE_TOO_SMALL, too_large(size, max));
            let error = self.tracked(error);
            return self.drop_link(link.channel(), link.handle(), error);
        }
        found.stage = LinkState::Attached;
        if let Some(part) = grant(found, limit, self.config.incoming_credit) {
            let session = session.flow(self.config.session_window);
            flow::write(self.outbox.buffer(), link.channel(), session, Some(part));
        } else if found.outgoing().is_some_and(|o| o.credit > 0 || o.drain) {
            announce(&mut self.events, found);
        }
    }

    /// Refuses an attach: answers with a link that has neither source nor target, and closes it with the error.
    pub fn refuse_attach(&mut self, link: LinkId, error: Error) {
        if self.is_attaching(link) {
            self.detach(link, Some(error));
        }
    }

    fn is_attaching(&mut self, link: LinkId) -> bool {
        let session = self.sessions.of_mut(link);
        let found = session.and_then(|session| session.link_by_id(link));
        found.is_some_and(|found| matches!(found.stage, LinkState::Attaching(_)))
    }

    /// Closes an older link of the same name and direction, whose link is stolen (spec/wire.md §10.20).
    fn close_stolen_link(&mut self, channel: u16, request: &AttachRequest) {
        let Some(session) = self.sessions.on(channel) else {
            return;
        };
        if let Some(old) = session.link_named(request.role(), request.name()) {
            let old = old.id;
            let text = format!(
                "The link with identifier {} has been closed due to link stealing.",
                request.name()
            );
            let error = self.tracked(Error::new(condition::LINK_STOLEN, text));
            self.detach(old, Some(error));
            self.events.push_back(Event::Detached {
                link: old,
                closed: false,
            });
        }
    }

    /// Returns why an attach breaks the protocol or a limit.
    fn attach_error(&self, request: &AttachRequest) -> Option<Error> {
        if self.link_count > LINKS_PER_CONNECTION {
            let description = format!("a connection has at most {LINKS_PER_CONNECTION} links");
            return Some(Error::new(condition::RESOURCE_LIMIT_EXCEEDED, description));
        }
        if request.name().len() > NAME_LIMIT {
            let description = format!("link names have at most {NAME_LIMIT} bytes");
            return Some(Error::new(condition::INVALID_FIELD, description));
        }
        None
    }
}

/// Frees a handle for a new link. Python reuses the handle of a refused link without having answered the detach
/// (spec/wire.md §0.6).
fn free_handle(session: &mut Session, handle: u32, link_count: &mut usize) -> Result<usize, Fault> {
    if handle > session.handle_max {
        // As the service does, which does not close the connection (AMQP 1.0 §2.7.2).
        let description = format!(
            "Cannot allocate more handles to the current session or connection. The maximum number of handles allowed \
             is {}. Please free up resources and try again.",
            session.handle_max
        );
        return Err(Fault::session(
            condition::RESOURCE_LIMIT_EXCEEDED,
            description,
        ));
    }
    match session.link(handle) {
        None => Ok(0),
        Some(link) if link.is_detaching() => {
            let gone = session.remove(handle);
            *link_count -= 1;
            Ok(gone.map_or(0, |mut link| session.forget(&mut link)))
        }
        Some(_) => Err(Fault::session(
            condition::HANDLE_IN_USE,
            format!("handle {handle} is in use"),
        )),
    }
}

/// Returns why an attach is not answered.
fn too_large(size: usize, max: usize) -> String {
    format!(
        "the answer to the attach takes {size} bytes; frames to this peer have at most {max} bytes"
    )
}

/// Writes the answer to an accepted attach; returns the largest message of the link.
fn answer_attach(out: &mut Vec<u8>, link: &Link, echo: &Echo, answer: &AttachReply) -> u64 {
    let mut attach = attach_answer(link, echo);
    attach.properties = &answer.properties;
    attach.max_message_size = match answer.max_message_size {
        0 if attach.receives => LARGEST_MESSAGE,
        size => size,
    };
    let own = match attach.receives {
        true => &mut attach.target,
        false => &mut attach.source,
    };
    let rewritten = rewritten(*own, answer);
    *own = rewritten.as_deref().or(*own);
    reply::attach(out, link.id.channel(), &attach);
    attach.max_message_size
}

/// Returns the terminus on this side, if the answer adds something to it.
fn rewritten(own: Option<&[u8]>, answer: &AttachReply) -> Option<Vec<u8>> {
    match (own, &answer.address, &answer.subscription) {
        (None, _, Some((topic, capabilities))) => Some(cold::subscription(topic, capabilities)),
        (Some(own), Some(address), _) => cold::with_address(own, address).ok(),
        (Some(own), None, _) if !answer.filter.is_empty() => {
            cold::with_filter(own, &answer.filter).ok()
        }
        _ => None,
    }
}

/// Writes the answer to an attach that is closed at once, with neither source nor target. go-amqp takes an answer with one
/// of them for an accepted link, and the detach after it for a lost connection (spec/observed.md 12).
pub(crate) fn answer_without_termini(out: &mut Vec<u8>, link: &Link, echo: &Echo) {
    let attach = reply::Attach {
        source: None,
        target: None,
        ..attach_answer(link, echo)
    };
    reply::attach(out, link.id.channel(), &attach);
}

/// Returns the answer to an attach, before the owner's settings.
fn attach_answer<'a>(link: &'a Link, echo: &'a Echo) -> reply::Attach<'a> {
    reply::Attach {
        name: &link.name,
        handle: link.id.handle(),
        receives: matches!(link.side, Side::Incoming(_)),
        snd_settle_mode: echo.snd_settle_mode,
        rcv_settle_mode: echo.rcv_settle_mode,
        source: echo.source.as_deref(),
        target: echo.target.as_deref(),
        max_message_size: 0,
        properties: &[],
    }
}

/// Grants the first credit of a link whose peer sends.
fn grant(link: &mut Link, limit: u64, credit: u32) -> Option<LinkPart> {
    let handle = link.id.handle();
    let incoming = link.incoming()?;
    incoming.limit = limit;
    incoming.credit = credit;
    Some(LinkPart {
        handle,
        delivery_count: incoming.delivery_count,
        link_credit: credit,
        drain: false,
    })
}

impl Link {
    /// Creates a link that the owner has not decided about.
    fn new(id: LinkId, request: &AttachRequest, echo: Echo, initial_delivery_count: u32) -> Self {
        Self {
            id,
            name: request.name().into(),
            stage: LinkState::Attaching(Box::new(echo)),
            side: match request.role() {
                LinkRole::Receiver => Side::Outgoing(Outgoing::default()),
                LinkRole::Sender => Side::Incoming(Incoming {
                    delivery_count: initial_delivery_count,
                    credit: 0,
                    limit: PROVISIONAL_LIMIT,
                    partial: None,
                }),
            },
            is_flow_pending: false,
            attach_size: request.encoded_size(),
        }
    }
}

impl Connection {
    /// Closes a link from this side, without an [`Event::Detached`].
    pub fn detach(&mut self, link: LinkId, error: Option<Error>) {
        let Some(session) = self.sessions.of_mut(link) else {
            return;
        };
        let Some(found) = session.link_by_id(link) else {
            return;
        };
        if found.is_detaching() {
            return;
        }
        self.reassembly -= found.drop_partial();
        answer_before_detach(self.outbox.buffer(), found);
        found.stage = LinkState::Detaching;
        session.discard_backlog(link);
        self.outbox.with_error(error.as_ref(), |out, error| {
            reply::detach(out, link.channel(), link.handle(), true, error);
        });
    }

    pub(crate) fn on_detach(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let detach = cold::detach(body).map_err(|error| Fault::decoding("detach", error));
        let (handle, closed, _error) = detach?;
        // An unknown link needs no detach (spec/observed.md 70): fe2o3-amqp detaches a refused link twice.
        let Some(session) = self.sessions.on(channel) else {
            return Ok(());
        };
        let Some(mut link) = session.remove(handle) else {
            return Ok(());
        };
        let looked_at = session.forget(&mut link);
        self.link_count -= 1;
        self.reassembly -= link.reassembling();
        self.spend(looked_at);
        if link.is_detaching() {
            return Ok(());
        }
        let out = self.outbox.buffer();
        answer_before_detach(out, &link);
        reply::detach(out, channel, handle, closed, None);
        self.events.push_back(Event::Detached {
            link: link.id,
            closed,
        });
        Ok(())
    }

    /// Closes a link because of an error of its peer.
    pub(crate) fn drop_link(&mut self, channel: u16, handle: u32, error: Error) {
        let link = self.sessions.on(channel).and_then(|s| s.link(handle));
        let Some(id) = link.filter(|link| !link.is_detaching()).map(|link| link.id) else {
            return;
        };
        self.detach(id, Some(error));
        self.events.push_back(Event::Detached {
            link: id,
            closed: false,
        });
    }
}

/// Answers the attach of a link that closes before the owner has decided: a detach alone would have a handle that the peer
/// does not know.
fn answer_before_detach(out: &mut Vec<u8>, link: &Link) {
    if let LinkState::Attaching(echo) = &link.stage {
        answer_without_termini(out, link, echo);
    }
}

/// Returns the fault for an unknown handle, in the words of the service (spec/observed.md 70).
pub(crate) fn unattached(channel: u16, handle: u32) -> Fault {
    Fault::session(
        condition::UNATTACHED_HANDLE,
        format!("The link handle '{handle}' cannot be found in session '{channel}'."),
    )
}

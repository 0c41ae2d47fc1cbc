//! Session windows and link credit in both directions (AMQP 1.0 §2.5.6, §2.6.7).

use std::mem;

use super::attach::unattached;
use super::{Connection, PendingFlow, announce};
use crate::error::Fault;
use crate::ids;
use crate::ids::LinkId;
use crate::link::{Incoming, Link, Outgoing, Side};
use crate::session::Session;
use crate::wire::flow::{self, Flow, LinkPart};

impl Connection {
    pub(crate) fn on_flow(&mut self, channel: u16, body: &[u8]) -> Result<(), Fault> {
        let flow = flow::read(body).map_err(|error| Fault::decoding("flow", error))?;
        let Some(session) = self.sessions.live(channel)? else {
            return Ok(());
        };
        let shut = session.remote_window == 0;
        session.set_remote_window(flow.next_incoming_id, flow.incoming_window);
        if shut && session.remote_window > 0 {
            self.window_opened(channel);
        }
        let Some(session) = self.sessions.on(channel) else {
            return Ok(());
        };
        let Some(handle) = flow.handle else {
            if flow.echo {
                request_session_flow(&mut self.pending_flows, channel, session);
            }
            return Ok(());
        };
        let link = session
            .link(handle)
            .ok_or_else(|| unattached(channel, handle))?;
        if link.is_detaching() {
            return Ok(());
        }
        let attach_answer = self.config.incoming_credit / 2;
        let is_due = match &mut link.side {
            Side::Outgoing(outgoing) => {
                apply_receiver_flow(outgoing, &flow, self.credits_while_draining)
            }
            Side::Incoming(incoming) => apply_sender_flow(incoming, &flow, attach_answer),
        };
        announce(&mut self.events, link);
        if is_due {
            request_link_flow(&mut self.pending_flows, link);
        }
        Ok(())
    }

    /// Writes pending output: the open range of dispositions, and refills of credit and windows. Call it before
    /// [`Connection::output`].
    pub fn flush(&mut self) {
        self.outbox.output();
        let mut pending_flows = mem::take(&mut self.pending_flows);
        for flow in pending_flows.drain(..) {
            match flow {
                PendingFlow::Session(channel) => self.send_session_flow(channel),
                PendingFlow::Link(link) => self.send_link_flow(link),
            }
        }
        self.pending_flows = pending_flows;
    }

    /// Counts credit that crosses the answer to a drain from that answer, which AMQP 1.0 §2.6.7 does not allow.
    ///
    /// fe2o3-amqp does not wait for the answer to its drain, and does not count its credit as used up when the answer comes:
    /// its next receive would wait for ever.
    pub fn allow_credit_while_draining(&mut self) {
        self.credits_while_draining = true;
    }

    /// Reports that no more messages are available on a link. If the peer drains it, its credit is used up without
    /// deliveries (AMQP 1.0 §2.6.7, spec/wire.md §4.3); otherwise this has no effect.
    pub fn drained(&mut self, link: LinkId) {
        let Some(session) = self.sessions.of_mut(link) else {
            return;
        };
        // The peer must get an interrupted delivery whole before it learns that there are no more.
        if session.backlog.is_some() {
            return;
        }
        let Some(found) = session.link_by_id(link).filter(|found| found.is_attached()) else {
            return;
        };
        let Some(outgoing) = found.outgoing().filter(|outgoing| outgoing.drain) else {
            return;
        };
        outgoing.delivery_count = outgoing.delivery_count.wrapping_add(outgoing.credit);
        outgoing.drained_credit = outgoing.credit;
        outgoing.credit = 0;
        outgoing.drain = false;
        let part = LinkPart {
            handle: link.handle(),
            delivery_count: outgoing.delivery_count,
            link_credit: 0,
            drain: true,
        };
        let session = session.flow(self.config.session_window);
        flow::write(self.outbox.buffer(), link.channel(), session, Some(part));
    }

    /// Continues the deliveries that the session window has delayed.
    fn window_opened(&mut self, channel: u16) {
        self.resume(channel);
        let Some(session) = self.sessions.on(channel) else {
            return;
        };
        if session.backlog.is_some() || session.remote_window == 0 {
            return;
        }
        let links = session.links_mut();
        let count = links.len();
        for link in links {
            if link
                .outgoing()
                .is_some_and(|outgoing| outgoing.credit > 0 || outgoing.drain)
            {
                announce(&mut self.events, link);
            }
        }
        self.spend(count);
    }

    fn send_session_flow(&mut self, channel: u16) {
        let Some(session) = self
            .sessions
            .on(channel)
            .filter(|session| session.is_flow_pending)
        else {
            return;
        };
        let session = session.flow(self.config.session_window);
        flow::write(self.outbox.buffer(), channel, session, None);
    }

    fn send_link_flow(&mut self, id: LinkId) {
        let Some(session) = self.sessions.of_mut(id) else {
            return;
        };
        let Some(link) = session.link_by_id(id) else {
            return;
        };
        link.is_flow_pending = false;
        if !link.is_attached() {
            return;
        }
        let (delivery_count, link_credit) = match &mut link.side {
            Side::Incoming(incoming) => {
                incoming.credit = self.config.incoming_credit;
                (incoming.delivery_count, incoming.credit)
            }
            Side::Outgoing(outgoing) => (outgoing.delivery_count, outgoing.credit),
        };
        let part = LinkPart {
            handle: id.handle(),
            delivery_count,
            link_credit,
            drain: false,
        };
        let session = session.flow(self.config.session_window);
        flow::write(self.outbox.buffer(), id.channel(), session, Some(part));
    }
}

/// Makes the next flush announce the session's window.
pub(crate) fn request_session_flow(
    pending_flows: &mut Vec<PendingFlow>,
    channel: u16,
    session: &mut Session,
) {
    if !session.is_flow_pending {
        session.is_flow_pending = true;
        pending_flows.push(PendingFlow::Session(channel));
    }
}

/// Makes the next flush announce the link's credit.
pub(crate) fn request_link_flow(pending_flows: &mut Vec<PendingFlow>, link: &mut Link) {
    if !link.is_flow_pending {
        link.is_flow_pending = true;
        pending_flows.push(PendingFlow::Link(link.id));
    }
}

/// Applies a receiver's credit; returns whether the flow asks for an answer. The owner answers a drain.
fn apply_receiver_flow(outgoing: &mut Outgoing, flow: &Flow, may_cross: bool) -> bool {
    if let Some(credit) = flow.link_credit {
        // A flow without a count precedes the peer's knowledge of the attach, in which the count was zero.
        let base = flow.delivery_count.unwrap_or(0);
        let crossed = may_cross
            && outgoing.drained_credit > 0
            && !flow.drain
            && base
                == outgoing
                    .delivery_count
                    .wrapping_sub(outgoing.drained_credit);
        if crossed {
            outgoing.credit = credit;
        } else {
            outgoing.drained_credit = 0;
            outgoing.credit = ids::remaining(base, credit, outgoing.delivery_count);
        }
    }
    outgoing.drain = flow.drain;
    flow.echo && !flow.drain
}

/// Applies a sender's count; returns whether a flow is due. Its link-credit is not a grant: Python writes numbers of its own
/// there (spec/wire.md §3.1).
fn apply_sender_flow(incoming: &mut Incoming, flow: &Flow, attach_answer: u32) -> bool {
    if let Some(count) = flow.delivery_count {
        incoming.credit = ids::remaining(incoming.delivery_count, incoming.credit, count);
        incoming.delivery_count = count;
    }
    flow.echo || incoming.credit <= attach_answer
}

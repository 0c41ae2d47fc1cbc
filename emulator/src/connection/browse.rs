//! Browsing receivers: they get copies of the messages in a store, or a session without its lock.
//!
//! Messages that arrive behind the last copy are sent when the client sends something again: the broker has no receiver that
//! it could wake.

use std::sync::Arc;

use serde_amqp::Value;
use servicebus_amqp::{AttachRequest, Delivery as Frame, LinkId, SenderSettleMode};
use servicebus_broker::filter::{SqlFilter, System, Truth};
use servicebus_broker::{
    BrokerProperties, IdSource, Peeked, SequenceNumber, SessionName, SubQueue, Tier,
};

use super::account::{HANDLED_AT_ONCE, OUTPUT_HIGH};
use super::links::Link;
use super::peer::ClientConnection;
use crate::durable::MissingBodies;
use crate::namespace::SharedEntity;
use crate::nodes::{Condition, ServiceError, SessionRequest};

/// Link property: the session is browsed without its lock (spec/observed.md 62).
const PEEK_MODE: &str = "com.microsoft:peek-mode";
/// Messages copied under one lock.
const LOOK: usize = 64;
/// `x-opt-message-state` of messages that are neither deferred nor scheduled.
const ACTIVE: Option<i32> = Some(0);

/// A browsing link.
#[derive(Debug)]
pub(crate) struct Browser {
    pub(crate) name: Box<str>,
    pub(crate) entity: Arc<SharedEntity>,
    pub(crate) kind: SubQueue,
    view: View,
    settled: bool,
    drain: bool,
}

/// The view of a browser.
#[derive(Debug)]
enum View {
    /// Copies of the messages from this sequence number on; only those that match the selector, if there is one.
    Copies(SequenceNumber, Option<Box<SqlFilter>>),
    /// A session, through requests to `$management` only.
    Session {
        name: SessionName,
        /// The entry of the source's filter.
        filter: (String, Value),
    },
    /// None: a JMS client ends its durable subscription.
    Ended {
        /// The address of the topic.
        topic: String,
        capabilities: &'static [&'static str],
    },
}

impl Browser {
    /// Creates a browser for `distribution-mode` copy (AMQP 1.0 §3.5.5), which premium namespaces support (spec/observed.md
    /// 64).
    pub(crate) fn of_copies(
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
        tier: Tier,
        selector: Option<SqlFilter>,
    ) -> Result<Link, ServiceError> {
        if tier != Tier::Premium {
            let text = format!(
                "The receiver '{}' has the distribution mode 'copy', which only namespaces of the premium tier support.",
                attach.name()
            );
            return Err(ServiceError::new(Condition::NotImplemented, text));
        }
        let view = View::Copies(SequenceNumber(0), selector.map(Box::new));
        Ok(Self::link(entity, kind, attach, view))
    }

    /// Returns whether the client wants to browse a session.
    pub(crate) fn is_wanted(attach: &AttachRequest) -> bool {
        attach.property(PEEK_MODE) == Some(&Value::Bool(true))
    }

    /// Creates a browser of a session that any receiver may hold (spec/observed.md 62).
    pub(crate) fn of_session(
        entity: &Arc<SharedEntity>,
        attach: &AttachRequest,
        request: &SessionRequest,
    ) -> Result<Link, ServiceError> {
        let Some(name) = &request.session else {
            let text = format!(
                "A receiver of '{}' with {PEEK_MODE} must name the session that it browses.",
                entity.path
            );
            return Err(ServiceError::new(Condition::ArgumentError, text));
        };
        let view = View::Session {
            name: name.clone(),
            filter: request.granted(name, None),
        };
        Ok(Self::link(entity, SubQueue::Active, attach, view))
    }

    /// Creates the link that names a durable JMS subscription to end it.
    pub(crate) fn of_ended(
        subscription: &Arc<SharedEntity>,
        attach: &AttachRequest,
        capabilities: &'static [&'static str],
    ) -> Link {
        let topic = subscription.path.top_level().to_string();
        let view = View::Ended {
            topic,
            capabilities,
        };
        Self::link(subscription, SubQueue::Active, attach, view)
    }

    /// Returns the durable subscription that is deleted when the client closes the link.
    pub(crate) fn ends(&self) -> Option<&Arc<SharedEntity>> {
        matches!(self.view, View::Ended { .. }).then_some(&self.entity)
    }

    /// Returns what the answer has of that subscription.
    pub(crate) fn ended(&self) -> Option<(String, &'static [&'static str])> {
        match &self.view {
            View::Ended {
                topic,
                capabilities,
            } => Some((topic.clone(), *capabilities)),
            View::Copies(..) | View::Session { .. } => None,
        }
    }

    fn link(
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        attach: &AttachRequest,
        view: View,
    ) -> Link {
        Link::Browser(Self {
            name: attach.name().into(),
            entity: Arc::clone(entity),
            kind,
            view,
            settled: attach.sender_settle_mode() == SenderSettleMode::Settled,
            drain: false,
        })
    }

    /// Returns the entries of the source's filter for the answer.
    pub(crate) fn filter(&self) -> Vec<(String, Value)> {
        match &self.view {
            View::Copies(..) | View::Ended { .. } => Vec::new(),
            View::Session { filter, .. } => vec![filter.clone()],
        }
    }

    /// Returns whether the browser shows a message.
    fn selects(&self, seen: &Peeked, ids: &mut dyn IdSource) -> bool {
        let View::Copies(_, Some(selector)) = &self.view else {
            return true;
        };
        let known = &seen.broker_properties;
        let properties = seen.message.filter_view(&System {
            sequence_number: Some(known.sequence_number),
            enqueued_sequence_number: known.enqueued_sequence_number,
            enqueued_at: Some(known.enqueued_at),
            delivery_count: known.delivery_count,
            size: seen.message.size(),
            force_persistence: true,
            ..System::default()
        });
        // An accepted message decodes.
        properties.is_ok_and(|properties| selector.evaluate(&properties, ids) == Ok(Truth::True))
    }

    /// Returns whether it browses this session.
    pub(crate) fn sees(&self, session: &SessionName) -> bool {
        matches!(&self.view, View::Session { name, .. } if name == session)
    }
}

impl ClientConnection {
    /// Records that a browser waits for the answer to its drain.
    pub(crate) fn drain_browser(&mut self, link: LinkId, drain: bool) {
        if let Some(Link::Browser(browser)) = self.links.get_mut(link) {
            browser.drain = drain;
        }
    }

    /// Sends copies to browsers within their credit and the room in the output.
    pub(crate) fn serve_browsers(&mut self) {
        let is_browser = |link: &Link| matches!(link, Link::Browser(_));
        let links = self.links.iter().filter(|(_, link)| is_browser(link));
        let links: Vec<LinkId> = links.map(|(id, _)| id).collect();
        let mut looks = HANDLED_AT_ONCE;
        for link in links {
            while self.show_more(link, &mut looks) {}
        }
    }

    /// Sends more copies on one link; returns whether more may follow. Each message uses one of `looks`; when none is left,
    /// the next turn continues.
    fn show_more(&mut self, link: LinkId, looks: &mut usize) -> bool {
        if self.engine.output_len() >= OUTPUT_HIGH || *looks == 0 {
            self.turn.is_interrupted = true;
            return false;
        }
        let (Some(namespace), Some(Link::Browser(browser))) =
            (&self.client.namespace, self.links.get_mut(link))
        else {
            return false;
        };
        let credit = self.engine.credit(link) as usize;
        let granted = self.engine.link_credit(link) as usize;
        let mut missing = MissingBodies::default();
        let mut seen = match &browser.view {
            View::Copies(from, _) if credit > 0 => {
                namespace.operate(&browser.entity, &mut self.client.caller, |entity, cx| {
                    let seen = entity.peek(cx, browser.kind, *from, LOOK, None);
                    missing =
                        MissingBodies::of(namespace.store(), seen.iter().map(|seen| &seen.message));
                    seen
                })
            }
            View::Copies(..) | View::Session { .. } | View::Ended { .. } => Vec::new(),
        };
        let is_end = seen.len() < LOOK;
        let costs = seen.iter().map(|seen| seen.message.evaluation_cost());
        *looks = looks.saturating_sub(costs.sum());
        let ids = self.client.caller.ids();
        let active = |(_, seen): &(usize, &Peeked)| {
            seen.broker_properties.state == ACTIVE && browser.selects(seen, ids)
        };
        let active = seen.iter().enumerate().filter(active);
        let active: Vec<usize> = active.map(|(at, _)| at).collect();
        // Messages beyond the credit or the room are read again later.
        let mut room = (OUTPUT_HIGH - self.engine.output_len()) as u64;
        let fits = |at: &&usize| {
            let fits = room > 0;
            room = room.saturating_sub(seen[**at].message.size());
            fits
        };
        let fitting = active.iter().take(credit).take_while(fits).count();
        let shown = &active[..fitting];
        let (ahead, settled) = (namespace.clock.ahead(), browser.settled);
        let places = seen.iter_mut().enumerate();
        let whole = places.filter(|(at, _)| shown.binary_search(at).is_ok());
        missing.fill(whole.map(|(_, seen)| &mut seen.message));
        let mut show = |at: &&usize| self.show(link, &seen[**at], ahead, settled);
        let sent = shown.iter().take_while(&mut show).count();
        let Some(Link::Browser(browser)) = self.links.get_mut(link) else {
            return false;
        };
        let looked_at = match active.len() > sent {
            true => shown[..sent].last().map_or(0, |at| at + 1),
            false => seen.len(),
        };
        if let (View::Copies(from, _), Some(last)) = (&mut browser.view, looked_at.checked_sub(1)) {
            *from = SequenceNumber(seen[last].broker_properties.sequence_number.0 + 1);
        }
        let nothing_more = is_end && active.len() == sent;
        // While the session's window is closed nothing was looked at.
        let is_done = nothing_more && credit > 0 || sent == granted;
        if is_done && std::mem::take(&mut browser.drain) {
            self.engine.drained(link);
        }
        credit > sent && sent == fitting && !nothing_more
    }

    /// Sends a copy; returns false if the session's window has closed, after which it must be sent again when it opens.
    fn show(&mut self, link: LinkId, seen: &Peeked, ahead: i64, settled: bool) -> bool {
        let broker_properties = BrokerProperties {
            state: None,
            ..seen.broker_properties
        };
        self.outbound.scratch.clear();
        // An accepted message was validated completely.
        let Ok(tail) = seen
            .message
            .encode(&broker_properties, ahead, &mut self.outbound.scratch)
        else {
            return true;
        };
        let mut tag = [0; 16];
        tag[8..].copy_from_slice(&broker_properties.sequence_number.0.to_be_bytes());
        let frame = Frame {
            tag,
            settled,
            message_format: 0,
            head: &self.outbound.scratch,
            tail,
        };
        self.engine.deliver(link, frame).is_some()
    }
}

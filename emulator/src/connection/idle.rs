//! Closes idle links and connections after some time, if the namespace is set to do as the service does (`"IdleTimeouts":
//! "service"`), in real time (decision D19, spec/newest.md 9).

use std::collections::BTreeMap;
use std::time::Duration;

use servicebus_amqp::{Event, LinkId};
use servicebus_broker::IdleTimeouts;

use super::faults::link_of;
use super::links::{Link, Node};
use super::peer::ClientConnection;
use crate::nodes::{Condition, ServiceError};

/// A link without traffic is detached after this time.
const LINK: Duration = Duration::from_secs(600);
/// A connection that never had a link other than those to `$cbs` is closed after this time.
const NEVER_LINKED: Duration = Duration::from_secs(60);
/// A connection without links is closed this long after its last one.
const UNLINKED: Duration = Duration::from_secs(300);

/// When a connection and its links were last used. Empty where the namespace has no idle time-outs.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    links: BTreeMap<LinkId, Duration>,
    /// Since when there is no link other than those to `$cbs`.
    unlinked: Option<Duration>,
    had_links: bool,
}

impl Idle {
    /// Returns how long a connection may be without links.
    fn limit(&self) -> Duration {
        match self.had_links {
            true => UNLINKED,
            false => NEVER_LINKED,
        }
    }

    /// Returns when the next idle time ends.
    pub(crate) fn due(&self) -> Option<Duration> {
        let links = self.links.values().map(|&last| last + LINK);
        let unlinked = self.unlinked.map(|since| since + self.limit());
        links.chain(unlinked).min()
    }
}

impl ClientConnection {
    fn has_idle_timeouts(&self) -> bool {
        let namespace = self.client.namespace.as_ref();
        let settings = namespace.map(|namespace| namespace.config.settings);
        settings.is_some_and(|settings| settings.idle_timeouts == IdleTimeouts::Service)
    }

    /// Records a client's operation on a link as its use.
    pub(crate) fn record_use(&mut self, event: &Event, now: Duration) {
        if let Some(link) = link_of(event) {
            self.record_use_of(link, now);
        }
    }

    /// Records a delivery on a link, or a request in its name, as its use.
    pub(crate) fn record_use_of(&mut self, link: LinkId, now: Duration) {
        if self.has_idle_timeouts() {
            self.idle.links.insert(link, now);
        }
    }

    /// Closes everything whose idle time is over.
    pub(crate) fn end_idle(&mut self, now: Duration) {
        if !self.has_idle_timeouts() {
            return;
        }
        let used = std::mem::take(&mut self.idle.links);
        let counted = self
            .links
            .iter()
            .filter_map(|(id, link)| Some((id, timer(link)?)));
        let counted: Vec<_> = counted.collect();
        for &(id, timer) in &counted {
            let last = used.get(&id).copied().unwrap_or(now);
            match last + LINK <= now {
                true => self.detach_idle(id, timer),
                false => drop(self.idle.links.insert(id, last)),
            }
        }
        if !counted.is_empty() {
            self.idle.unlinked = None;
            self.idle.had_links = true;
            return;
        }
        let since = *self.idle.unlinked.get_or_insert(now);
        let limit = self.idle.limit();
        if since + limit <= now {
            self.close_idle(limit);
        }
    }

    fn detach_idle(&mut self, id: LinkId, timer: &str) {
        let half = match timer {
            PUBLISHER => "publisher",
            CONSUMER => "consumer",
            _ => "controller",
        };
        let name = self.engine.link_name(id).unwrap_or_default();
        let refusal = ServiceError::force_detached(
            name,
            &format!("{half}(link{})", u64::from(id)),
            &format!("{timer}.IdleTimerExpired: Idle timeout: 00:10:00."),
        );
        self.detach_for(id, &refusal);
    }

    fn close_idle(&mut self, limit: Duration) {
        let text = format!(
            "The connection was closed by container '{}' because it did not have any active links in the past {} \
             milliseconds.",
            self.engine.container_id(),
            limit.as_millis()
        );
        let refusal = ServiceError::new(Condition::ConnectionForced, text);
        let error = self.client.refuse(&refusal, None);
        self.engine.close(Some(error));
    }
}

/// The service's monitors of a link that sends to it, and of one that receives from it.
const PUBLISHER: &str = "AmqpMessagePublisher";
const CONSUMER: &str = "AmqpMessageConsumer";

/// Returns the service's monitor of a link; `None` for links without idle time: to `$cbs`, and detached ones.
fn timer(link: &Link) -> Option<&'static str> {
    match link {
        Link::Sender(_) => Some(PUBLISHER),
        Link::Receiver(_) | Link::Waiting(_) | Link::Browser(_) => Some(CONSUMER),
        Link::Requests(requests) => controls(&requests.node),
        Link::Replies(replies) => controls(&replies.node),
        Link::Coordinator(_) => Some("AmqpControlProtocolClient"),
        Link::Detached(_) => None,
    }
}

fn controls(node: &Node) -> Option<&'static str> {
    matches!(node, Node::Management(..)).then_some("AmqpControlProtocolClient")
}

//! Attaches of JMS 2.0 clients (spec/jms.md): entities that are created on the first attach, subscriptions by the client's
//! name for them, temporary queues and topics, and the end of a durable subscription. Other links attach as for any client.
//!
//! Used only for clients that declare themselves as such, and only in premium namespaces.

use std::sync::Arc;
use std::time::Duration;

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_amqp::{AttachRequest, LinkId, LinkRole};
use servicebus_broker::filter::{Filter, SqlFilter};
use servicebus_broker::{ClientAffinity, EntityKind, EntityPath, SubQueue};

use super::attach::Resolved;
use super::browse::Browser;
use super::client::Client;
use super::links::Link;
use super::peer::ClientConnection;
use crate::auth::Claim;
use crate::namespace::{SharedEntity, SubscriptionRequest, check_claim};
use crate::nodes::{Address, Condition, Destination, ServiceError, SessionRequest, no_namespace};

/// Capabilities of a terminus: the kind of node, and the kind of subscription.
const QUEUE: &str = "queue";
const TOPIC: &str = "topic";
const TEMPORARY_TOPIC: &str = "temporary-topic";
const SHARED: &str = "shared";
const GLOBAL: &str = "global";
/// The filter against a client's own messages, which the service ignores.
const NO_LOCAL: (u64, &str) = (0x0000_468c_0000_0003, "apache.org:no-local-filter:list");
const SELECTOR: (u64, &str) = (0x0000_468c_0000_0004, "apache.org:selector-filter:string");
/// The lifetime policy delete-on-close (AMQP 1.0 §3.5.10), the only supported one.
const DELETE_ON_CLOSE: u64 = 0x2b;
/// Idle times from which an entity is never deleted: a hundred years.
const FOR_EVER: u64 = 100 * 365 * 24 * 60 * 60;

impl ClientConnection {
    pub(crate) fn resolve_for_jms(&mut self, link: LinkId, attach: &AttachRequest) -> Resolved {
        if attach.is_coordinator() {
            return self.resolve(attach);
        }
        let nowhere = |refusal| (refusal, None);
        if attach.terminus_lifetime().is_dynamic {
            return self.attach_temporary(link, attach).map_err(nowhere);
        }
        if attach.role() == LinkRole::Receiver && !attach.has_source() {
            return self.end_subscription(attach).map_err(nowhere);
        }
        let address = Address::parse(attach.address().unwrap_or_default());
        if address.destination != Destination::Store(SubQueue::Active) {
            return self.resolve(attach);
        }
        let entity = self.find_or_create(&address, attach).map_err(nowhere)?;
        let resolved = check_kind(entity.kind, attach).and_then(|()| match attach.role() {
            LinkRole::Receiver if entity.kind == EntityKind::Topic => {
                self.subscribe(link, &entity, attach)
            }
            LinkRole::Receiver | LinkRole::Sender => {
                self.resolve_store(&entity, SubQueue::Active, attach)
            }
        });
        resolved.map_err(|refusal| (refusal, Some(entity)))
    }

    /// Attaches a link with a temporary queue or topic, which is deleted with it.
    fn attach_temporary(
        &mut self,
        link: LinkId,
        attach: &AttachRequest,
    ) -> Result<Link, ServiceError> {
        let policy = attach.terminus_lifetime().lifetime_policy;
        if policy.is_some_and(|policy| policy != DELETE_ON_CLOSE) {
            let text = format!(
                "The link '{}' asks for a node with another lifetime policy than delete-on-close, which is the one that \
                 the service has.",
                attach.name()
            );
            return Err(ServiceError::new(Condition::NotImplemented, text));
        }
        let kind = match attach.has_capability(TEMPORARY_TOPIC) || attach.has_capability(TOPIC) {
            true => EntityKind::Topic,
            false => EntityKind::Queue,
        };
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        self.client.check_claim("", Claim::Manage)?;
        let scope = namespace.create_temporary(kind, self.client.caller.ids())?;
        let entity = Arc::clone(&scope.entity);
        let resolved = self.resolve_store(&entity, SubQueue::Active, attach)?;
        self.links.keep(link, scope);
        Ok(resolved)
    }

    /// Attaches a receiver without source that names a durable subscription; closing the link ends the subscription.
    fn end_subscription(&self, attach: &AttachRequest) -> Result<Link, ServiceError> {
        let is_global = attach.desires(GLOBAL);
        let name = subscription_name(attach.name(), is_global || attach.desires(SHARED));
        let client_id = self.client.client_id(is_global);
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        self.client.check_any_claim("")?;
        let subscription = namespace.durable_subscription(name, client_id)?;
        self.client
            .check_claim(subscription.path.as_str(), Claim::Manage)?;
        let is_shared = namespace.read(&subscription, |entity| {
            let client = entity.description().client.as_ref();
            client.is_some_and(|client| client.is_shared)
        });
        let capabilities: &[&str] = match (is_shared, is_global) {
            (_, true) => &[TOPIC, SHARED, GLOBAL],
            (true, false) => &[TOPIC, SHARED],
            (false, false) => &[TOPIC],
        };
        Ok(Browser::of_ended(&subscription, attach, capabilities))
    }

    /// Attaches a consumer of a topic: the link and the client determine its subscription.
    fn subscribe(
        &mut self,
        link: LinkId,
        topic: &Arc<SharedEntity>,
        attach: &AttachRequest,
    ) -> Result<Link, ServiceError> {
        self.check_filters(attach)?;
        // Only the topic in the subscription's path counts.
        self.check_crossing(attach.session(), topic)?;
        let request = self.client.subscription_request(&topic.path, attach)?;
        let selector = self.client.selector(attach)?;
        let now = self.client.shared.real.unix_seconds();
        let Client {
            namespace,
            caller,
            grants,
            host,
            ..
        } = &mut self.client;
        let namespace = namespace.as_ref().ok_or_else(no_namespace)?;
        let may_manage = |path: &EntityPath| {
            let held = namespace.granted(grants, path.as_str(), now);
            check_claim(held, Claim::Manage, host, path.as_str())
        };
        let scope = namespace.subscribe(request, may_manage, caller.ids())?;
        let subscription = Arc::clone(&scope.entity);
        // One that was declared or created by administration may have other rules than the selector.
        let selects = namespace.read(&subscription, |entity| {
            let client = entity.description().client.as_ref();
            client.is_some_and(|client| client.selector.is_some())
        });
        let selector = selector.filter(|_| !selects);
        let receiver = self.open_receiver(&subscription, SubQueue::Active, attach, selector);
        self.links.keep(link, scope);
        Ok(Link::Receiver(receiver))
    }

    /// Finds the entity at an address, or creates it if the client names its kind.
    fn find_or_create(
        &self,
        address: &Address,
        attach: &AttachRequest,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let refusal = match self.client.find(address) {
            Ok(found) => return Ok(found),
            Err(refusal) => refusal,
        };
        let kind = match (attach.has_capability(QUEUE), attach.has_capability(TOPIC)) {
            (true, _) => EntityKind::Queue,
            (false, true) => EntityKind::Topic,
            (false, false) => return Err(refusal),
        };
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        let is_subscription =
            EntityPath::of_address(&address.entity).is_some_and(|path| path.topic().is_some());
        if refusal.condition != Condition::NotFound || is_subscription {
            return Err(refusal);
        }
        let path = address.entity.parse::<EntityPath>().map_err(|error| {
            let text = format!(
                "'{}' cannot be the name of an entity: it {error}.",
                address.entity
            );
            ServiceError::new(Condition::ArgumentError, text)
        })?;
        self.client.check_claim(path.as_str(), Claim::Manage)?;
        self.check_attach_to_new(kind, &path, attach)?;
        namespace.create_on_attach(kind, &path, self.client.idle(kind))
    }

    /// Refuses an attach that the created queue or topic would refuse, before it is created.
    fn check_attach_to_new(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        attach: &AttachRequest,
    ) -> Result<(), ServiceError> {
        check_kind(kind, attach)?;
        self.client.check_entity_type(kind, attach)?;
        if attach.role() == LinkRole::Sender {
            self.client.check_claim(path.as_str(), Claim::Send)?;
            return self.client.destination(attach).map(drop);
        }
        self.check_filters(attach)?;
        match kind {
            EntityKind::Topic => {
                let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
                let request = self.client.subscription_request(path, attach)?;
                namespace.check_new_subscription(&request)
            }
            EntityKind::Queue | EntityKind::Subscription => {
                self.client.check_claim(path.as_str(), Claim::Listen)?;
                self.client.selector(attach)?;
                match SessionRequest::read(attach, path) {
                    Ok(None) => Ok(()),
                    Ok(Some(_)) | Err(_) => Err(ServiceError::receives_no_sessions()),
                }
            }
        }
    }
}

impl Client {
    /// Returns the subscription that a consumer of a topic asks for, within its rights.
    fn subscription_request<'a>(
        &self,
        topic: &'a EntityPath,
        attach: &'a AttachRequest,
    ) -> Result<SubscriptionRequest<'a>, ServiceError> {
        self.check_claim(topic.as_str(), Claim::Listen)?;
        let selector = self.selector(attach)?;
        let is_durable = attach.terminus_lifetime().is_durable;
        let is_shared = attach.has_capability(SHARED);
        let client_id = self.client_id(attach.has_capability(GLOBAL));
        let is_named = is_durable || is_shared;
        Ok(SubscriptionRequest {
            topic,
            name: is_named.then(|| subscription_name(attach.name(), is_shared)),
            affinity: ClientAffinity {
                client_id: client_id.into(),
                is_durable,
                is_shared,
                selector: Some(selector_text(attach).unwrap_or_default().trim().into()),
            },
            filter: selector.map_or(Filter::True, Filter::Sql),
            idle: self.idle(EntityKind::Subscription),
            may_manage: self.check_claim(topic.as_str(), Claim::Manage),
            host: self.host.clone(),
        })
    }

    /// Returns the selector of a JMS receiver; `None` if it receives every message.
    pub(crate) fn selector(
        &self,
        attach: &AttachRequest,
    ) -> Result<Option<SqlFilter>, ServiceError> {
        let text = selector_text(attach).filter(|text| self.is_jms && !text.trim().is_empty());
        let parsed = text.map(SqlFilter::selector).transpose();
        parsed.map_err(|error| {
            let text = format!(
                "The selector cannot be understood: {error}.\n{}",
                error.excerpt()
            );
            ServiceError::new(Condition::ArgumentError, text)
        })
    }

    /// Returns the client identifier, which subscriptions that all clients share do not have.
    fn client_id(&self, is_global: bool) -> &str {
        match is_global {
            true => "",
            false => &self.container_id,
        }
    }

    /// Returns the idle time of an entity that the client creates.
    fn idle(&self, kind: EntityKind) -> Option<Duration> {
        let seconds = self.idle_seconds[kind as usize];
        let seconds = seconds.filter(|seconds| (1..FOR_EVER).contains(seconds));
        seconds.map(Duration::from_secs)
    }
}

pub(crate) fn is_jms_filter(filter: &Described<Value>) -> bool {
    is_described_as(filter, NO_LOCAL)
        || is_described_as(filter, SELECTOR) && matches!(filter.value, Value::String(_))
}

/// Returns the text of a receiver's selector.
fn selector_text(attach: &AttachRequest) -> Option<&str> {
    let mut filters = attach.described_filters();
    let (_, filter) = filters.find(|(_, filter)| is_described_as(filter, SELECTOR))?;
    if let Value::String(text) = &filter.value {
        Some(text)
    } else {
        None
    }
}

fn is_described_as(filter: &Described<Value>, (number, name): (u64, &str)) -> bool {
    match &filter.descriptor {
        Descriptor::Code(code) => *code == number,
        Descriptor::Name(own) => own.as_str() == name,
    }
}

/// Checks that an entity is of the kind that the client expects. To JMS the address of a subscription is that of a queue.
fn check_kind(kind: EntityKind, attach: &AttachRequest) -> Result<(), ServiceError> {
    let is_taken_for = |name| attach.has_capability(name);
    match kind {
        EntityKind::Queue if is_taken_for(TOPIC) => {
            Err(ServiceError::other_entity_type("Topic", "Queue"))
        }
        EntityKind::Topic if is_taken_for(QUEUE) => {
            Err(ServiceError::other_entity_type("Queue", "Topic"))
        }
        EntityKind::Queue | EntityKind::Topic | EntityKind::Subscription => Ok(()),
    }
}

/// Returns the subscription's name in that of a link. A client has several links to a shared one, with different suffixes:
/// `|2`, `|global`, `|global2`, `|volatile1`, `|global-volatile1`.
fn subscription_name(link: &str, is_shared: bool) -> &str {
    let Some((name, ending)) = link.rsplit_once('|').filter(|_| is_shared) else {
        return link;
    };
    let ending = ending.trim_end_matches(|digit: char| digit.is_ascii_digit());
    match ending {
        "" | "global" | "volatile" | "global-volatile" => name,
        _ => link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_of_a_link_name_is_not_part_of_the_subscription_name() {
        for (link, is_shared, name) in [
            ("sub", false, "sub"),
            ("sub", true, "sub"),
            ("sub|2", true, "sub"),
            ("sub|global", true, "sub"),
            ("sub|global2", true, "sub"),
            ("sub|volatile1", true, "sub"),
            ("sub|global-volatile12", true, "sub"),
            ("a|b|volatile1", true, "a|b"),
            ("a|b", true, "a|b"),
            ("sub|2", false, "sub|2"),
        ] {
            assert_eq!(subscription_name(link, is_shared), name, "{link}");
        }
    }
}

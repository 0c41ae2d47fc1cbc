//! Plain functions by which `tests/fuzz` reaches private parts: from the input of a client to its response.

use servicebus_broker::{Context, Entity, EntityPath, SubQueue, Tier};

use crate::config::{ConfigError, NamespaceConfig};
use crate::nodes::{
    Management, Reply, ReplyMessages, Request, ServiceError, change_refusal, enumerate_rules,
    is_about_rules, rule_change, spelling,
};

pub use crate::admin::fuzz::{read_entity_again, read_rule_again};
pub use crate::rest::fuzz::{Mapped, body_of_batch, message_of_request, shown};

/// The host of the namespace.
const HOST: &str = "localhost";

/// Parses a namespace's configuration from a request body.
pub fn namespace_of_request(
    name: &str,
    text: &str,
    tier: Tier,
) -> Result<NamespaceConfig, ConfigError> {
    NamespaceConfig::parse_as(name, text, tier, &|_| false)
}

/// Answers a request to a store's `$management` node with an encoded message; `None` where the request is not a message or
/// is about rules.
pub fn manage(
    request: &[u8],
    entity: &mut Entity,
    kind: SubQueue,
    cx: &mut Context<'_>,
) -> Option<Vec<u8>> {
    let request = Request::parse(request).ok()?;
    if is_about_rules(&request) {
        return None;
    }
    let mut shown = None;
    let performed = Management {
        request: &request,
        entity,
        cx,
        kind,
        ahead: 0,
        host: HOST,
        receiver_id: servicebus_broker::ReceiverId(1),
        requested_by: None,
        browses: false,
        destination: None,
        transaction: None,
        store: None,
        largest_reply: usize::MAX,
        reply_messages: &mut shown,
    }
    .perform();
    let performed = performed.and_then(|done| shown.map_or(Ok(done), ReplyMessages::reply));
    Some(encoded(performed, &request))
}

/// Answers a request about the rules of a subscription, which belong to its topic.
pub fn manage_rules(
    request: &[u8],
    topic: &mut Entity,
    subscription: &EntityPath,
    cx: &mut Context<'_>,
) -> Option<Vec<u8>> {
    let request = Request::parse(request).ok()?;
    let performed = rule_change(&request, cx.now).and_then(|change| match change {
        Some(change) => {
            let changed = topic.change_rule(cx, subscription, change);
            let refusal = |error| change_refusal(&error, subscription, "fuzz", HOST);
            changed.map(|()| Reply::done()).map_err(refusal)
        }
        None => enumerate_rules(&request, topic.rules_of(subscription), 0),
    });
    Some(encoded(performed, &request))
}

fn encoded(performed: Result<Reply, ServiceError>, request: &Request) -> Vec<u8> {
    let reply = performed.unwrap_or_else(|refusal| Reply::Refused {
        condition: refusal.condition,
        text: refusal.text,
    });
    reply.encode(request, spelling::MANAGEMENT)
}

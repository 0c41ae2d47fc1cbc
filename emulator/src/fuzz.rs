//! What `tests/fuzz` reaches of the parts that are private: plain functions, from what a client sent to what it is
//! answered.

use servicebus_broker::{Context, EntityPath, Mailbox, StoreKind, Tier};

use crate::config::{ConfigError, NamespaceConfig};
use crate::nodes::{Management, Refusal, Reply, Request, Rules, is_about_rules, spelling};

pub use crate::admin::fuzz::{read_entity_again, read_rule_again};
pub use crate::rest::fuzz::{Mapped, body_of_batch, message_of_request, shown};

/// The host of the namespace.
const HOST: &str = "localhost";

/// Reads the configuration of a namespace as a request declares it.
pub fn namespace_of_request(
    name: &str,
    text: &str,
    tier: Tier,
) -> Result<NamespaceConfig, ConfigError> {
    NamespaceConfig::parse_as(name, text, tier, &|_| false)
}

/// Answers a request to the `$management` node of a store with an encoded message; none where the request is no message,
/// or is about rules.
pub fn manage(
    request: &[u8],
    mailbox: &mut Mailbox,
    kind: StoreKind,
    cx: &mut Context<'_>,
) -> Option<Vec<u8>> {
    let request = Request::parse(request).ok()?;
    if is_about_rules(&request) {
        return None;
    }
    let performed = Management {
        request: &request,
        mailbox,
        cx,
        kind,
        ahead: 0,
        host: HOST,
        consumer: servicebus_broker::ConsumerId(1),
        asked_by: None,
        browses: false,
        destination: None,
        transaction: None,
    }
    .perform();
    Some(encoded(performed, &request))
}

/// Answers a request about the rules of a subscription, which stand with its topic.
pub fn manage_rules(
    request: &[u8],
    topic: &mut Mailbox,
    subscription: &EntityPath,
    cx: &mut Context<'_>,
) -> Option<Vec<u8>> {
    let request = Request::parse(request).ok()?;
    let performed = Rules {
        request: &request,
        topic,
        cx,
        subscription,
        host: HOST,
        namespace: "fuzz",
        ahead: 0,
    }
    .perform();
    Some(encoded(performed, &request))
}

fn encoded(performed: Result<Reply, Refusal>, request: &Request) -> Vec<u8> {
    let reply = performed.unwrap_or_else(|refusal| Reply::Refused {
        condition: refusal.condition,
        text: refusal.text,
    });
    reply.encode(request, spelling::MANAGEMENT)
}

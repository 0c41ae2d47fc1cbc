//! The accepted tokens of a connection, and the consequences for its links when they expire.
//!
//! Tokens expire by the real clock (decision D19). A connection without an accepted token in time is closed; a link is
//! detached when no token of the connection gives its right any longer.

use std::sync::Arc;
use std::time::Duration;

use serde_amqp::Value;
use servicebus_amqp::{Event, LinkId};
use servicebus_broker::{EntityPath, SubQueue};

use super::links::{Link, Node, Requests, Waiting};
use super::peer::ClientConnection;
use crate::auth::sas::claimed_key_name;
use crate::auth::{Acceptance, Claim, Grant, Grants};
use crate::clock::RealClock;
use crate::namespace::{Attempt, Namespace, SharedEntity};
use crate::nodes::{Address, Condition, Reply, Request, ServiceError, put_token};

/// When the tokens must be checked again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TokenState {
    /// No token was accepted yet; this is the deadline, counted from the start of the real clock.
    Pending(Duration),
    /// The end of the next token, if any expires.
    Accepted(Option<TokenEnd>),
}

/// When a token expires.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenEnd {
    /// Seconds since the Unix epoch.
    at: i64,
    /// When to check the wall clock, counted from the start of the real clock: wall time is not read in every turn.
    check_at: Duration,
}

impl TokenState {
    fn until(end: Option<i64>, real: &RealClock) -> Self {
        Self::Accepted(end.map(|at| TokenEnd {
            at,
            check_at: real.check_at(at),
        }))
    }

    /// Returns when to check it, counted from the start of the real clock.
    pub(crate) fn due(self) -> Option<Duration> {
        match self {
            Self::Pending(until) => Some(until),
            Self::Accepted(end) => end.map(|end| end.check_at),
        }
    }

    /// Returns whether it has expired when it is due; otherwise it is due later.
    fn has_ended(&mut self, real: &RealClock) -> bool {
        match self {
            Self::Pending(until) => *until <= real.elapsed(),
            Self::Accepted(None) => false,
            Self::Accepted(Some(end)) => {
                end.check_at = real.check_at(end.at);
                end.at <= real.unix_seconds()
            }
        }
    }
}

impl ClientConnection {
    pub(crate) fn on_sasl(&mut self, mechanism: &str, response: &[u8], hostname: Option<&str>) {
        if let Some(host) = hostname {
            self.client.choose_by_host(host);
        }
        let accepted = match mechanism {
            "ANONYMOUS" | "MSSBCBS" | "EXTERNAL" => true,
            "PLAIN" => self.accept_plain(response),
            _ => false,
        };
        if mechanism == "MSSBCBS" {
            self.engine.repeat_outcomes();
        }
        self.engine.sasl_outcome(accepted);
    }

    fn accept_plain(&mut self, response: &[u8]) -> bool {
        let chosen = self.client.namespace.clone();
        let Some(namespace) = chosen.or_else(|| self.client.shared.namespaces.of_plain(response))
        else {
            return false;
        };
        let now = self.client.shared.real.unix_seconds();
        match namespace.with_policy(None, |policy| policy.accept_plain_at(response, now)) {
            Ok(acceptance) => {
                if self.client.namespace.is_none() {
                    self.client.set_namespace(namespace);
                }
                tracing::debug!(
                    connection = self.client.id.0,
                    key = acceptance.key_name,
                    "signed in"
                );
                if let Some(name) = &acceptance.key_name {
                    self.set_party(name);
                }
                self.grant(acceptance);
                true
            }
            Err(error) => {
                tracing::warn!(connection = self.client.id.0, %error, "SASL PLAIN was refused");
                let attempt = Attempt {
                    operation: "sign in".into(),
                    number: None,
                };
                let (client, text) = (self.client.caller.client, error.to_string());
                let refusal = (Condition::Unauthorized.symbol(), &*text);
                namespace.record_refused_attempt(client, None, &attempt, refusal);
                false
            }
        }
    }

    /// Records the key in a token as the party of the connection, unless it has one: to faults the name matters more than
    /// whether the token is valid.
    pub(crate) fn record_party(&mut self, request: &Request) {
        if self.client.party.is_none()
            && let Value::String(token) = &request.body
        {
            let name = claimed_key_name(token);
            name.iter().for_each(|name| self.set_party(name));
        }
    }

    fn set_party(&mut self, name: &str) {
        let party = Arc::from(name);
        self.client.wake_handle.set_party(&party);
        self.client.party = Some(party);
    }

    /// Validates a token that the client puts, and grants its rights.
    pub(crate) fn take_token(
        &mut self,
        namespace: Arc<Namespace>,
        request: &Request,
    ) -> Result<Reply, ServiceError> {
        let (acceptance, reply) = self.validate_token(&namespace, request)?;
        // Not before: a client with an invalid token has not chosen.
        self.choose(namespace, request);
        // Faults that are set later match on it.
        self.record_party(request);
        let claimed = request.property("name").map(crate::auth::path_of_audience);
        let claimed = Address::parse(&claimed.unwrap_or_default());
        self.grant(acceptance);
        self.check_claimed(&claimed)?;
        Ok(reply)
    }

    /// Determines the namespace by a token that will be accepted, before faults are matched: they are those of that
    /// namespace.
    pub(crate) fn choose_by_token(&mut self, event: &Event) {
        let Event::Transfer(transfer) = event else {
            return;
        };
        if self.client.namespace.is_some() || !self.is_cbs(transfer.link) {
            return;
        }
        let Some(request) = self.request_in(&transfer.payload) else {
            return;
        };
        let Value::String(token) = &request.body else {
            return;
        };
        let namespace = self.client.shared.namespaces.of_token(token);
        if let Some(namespace) = namespace.filter(|namespace| namespace.faults.any())
            && self.validate_token(&namespace, &request).is_ok()
        {
            self.choose(namespace, &request);
        }
    }

    fn validate_token(
        &self,
        namespace: &Namespace,
        request: &Request,
    ) -> Result<(Acceptance, Reply), ServiceError> {
        let now = self.client.shared.real.unix_seconds();
        let audience = request.property("name").map(crate::auth::audience_path);
        namespace.with_policy(audience.as_deref(), |policy| {
            put_token(request, policy, now)
        })
    }

    fn choose(&mut self, namespace: Arc<Namespace>, request: &Request) {
        if self.client.namespace.is_none() {
            self.client.set_namespace(namespace);
            self.record_party(request);
            self.check_jms();
            self.connection_opened(self.client.shared.real.elapsed());
        }
    }

    /// Refuses a token for an entity that does not exist, so that the client learns of it before it attaches
    /// (spec/observed.md 13).
    fn check_claimed(&self, claimed: &Address) -> Result<(), ServiceError> {
        let Some(namespace) = &self.client.namespace else {
            return Ok(());
        };
        if claimed.entity.is_empty() || claimed.entity.starts_with('$') {
            return Ok(());
        }
        let path = EntityPath::of_address(&claimed.entity);
        match path.and_then(|path| namespace.entity(&path)) {
            Some(_) => Ok(()),
            None => Err(ServiceError::not_found(&self.client.host, &claimed.entity)),
        }
    }

    /// Grants the rights of an accepted token.
    pub(crate) fn grant(&mut self, acceptance: Acceptance) {
        let grant = Grant {
            claims: acceptance.claims,
            expires_at: acceptance.expires_at,
            of_entity: acceptance.of_entity,
        };
        self.client.grants.put(acceptance.audience_path, grant);
        // The token that it replaces may have expired sooner: the check is then in vain, but cheaper than visiting all
        // tokens.
        let sooner = match self.client.token_state {
            TokenState::Accepted(Some(sooner)) => sooner.at.min(grant.expires_at),
            TokenState::Accepted(None) | TokenState::Pending(_) => grant.expires_at,
        };
        self.client.token_state = TokenState::until(Some(sooner), &self.client.shared.real);
    }

    /// Acts on tokens that have expired, or never came.
    pub(crate) fn follow_tokens(&mut self, now: Duration) {
        let is_due = self.client.token_state.due().is_some_and(|due| due <= now);
        if !is_due || !self.client.token_state.has_ended(&self.client.shared.real) {
            return;
        }
        if let TokenState::Pending(_) = self.client.token_state {
            self.client.token_state = TokenState::Accepted(None);
            self.close_unauthenticated();
            return;
        }
        self.detach_unauthorized();
        self.expect_end();
    }

    /// Expires all tokens of the connection, as if their time were over.
    pub(crate) fn expire_tokens(&mut self) {
        self.client.grants = Grants::default();
        self.detach_unauthorized();
        self.expect_end();
    }

    fn detach_unauthorized(&mut self) {
        let ended: Vec<_> = self
            .links
            .iter()
            .filter_map(|(id, link)| self.lacks_right(id, link))
            .collect();
        for (link, entity, kind, refusal) in ended {
            self.detach_refused(link, &refusal, (&entity, kind));
            self.links.insert(link, Link::Detached(refusal));
        }
        self.forget_detached();
    }

    fn close_unauthenticated(&mut self) {
        let within = self.client.shared.options.step_timeout.as_secs_f64();
        let text = match (self.client.is_open(), self.engine.is_opened()) {
            (true, true) => return,
            (true, false) => format!("The connection was not opened within {within} s."),
            (false, _) => {
                format!("The connection has put no token that was accepted within {within} s.")
            }
        };
        let error = self
            .client
            .refuse(&ServiceError::new(Condition::Unauthorized, text), None);
        self.engine.close(Some(error));
    }

    fn expect_end(&mut self) {
        let real = &self.client.shared.real;
        let end = self.client.grants.next_end(real.unix_seconds());
        self.client.token_state = TokenState::until(end, real);
    }

    /// Returns a link whose right has expired. Links to `$cbs` stay: new tokens come over them.
    fn lacks_right(
        &self,
        id: LinkId,
        link: &Link,
    ) -> Option<(LinkId, Arc<SharedEntity>, SubQueue, ServiceError)> {
        let (entity, kind, proved) = match link {
            Link::Sender(sender) => {
                let path = sender.entity.store_path(SubQueue::Active);
                (
                    &sender.entity,
                    SubQueue::Active,
                    self.client.check_claim(&path, Claim::Send),
                )
            }
            Link::Receiver(receiver) | Link::Waiting(Waiting { receiver, .. }) => {
                let path = receiver.entity.store_path(receiver.kind);
                let proved = self.client.check_claim(&path, Claim::Listen);
                (&receiver.entity, receiver.kind, proved)
            }
            Link::Browser(browser) => {
                let path = browser.entity.store_path(browser.kind);
                let proved = self.client.check_claim(&path, Claim::Listen);
                (&browser.entity, browser.kind, proved)
            }
            Link::Requests(Requests {
                node: Node::Management(entity, kind),
                ..
            }) => {
                let path = entity.management_path(*kind);
                (entity, *kind, self.client.check_any_claim(&path))
            }
            Link::Replies(replies) => match &replies.node {
                Node::Management(entity, kind) => {
                    let path = entity.management_path(*kind);
                    (entity, *kind, self.client.check_any_claim(&path))
                }
                Node::Cbs => return None,
            },
            Link::Requests(Requests {
                node: Node::Cbs, ..
            })
            | Link::Coordinator(_)
            | Link::Detached(_) => return None,
        };
        let refusal = proved.err()?;
        let name = self.engine.link_name(id).unwrap_or_default();
        let refusal = ServiceError::force_detached(name, "RenewToken", &refusal.text);
        Some((id, Arc::clone(entity), kind, refusal))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::clock::RECHECK;
    use crate::clock::tests::put_by_hand;

    #[tokio::test(start_paused = true)]
    async fn a_token_expires_when_a_suspended_machine_resumes() {
        let (put, real) = put_by_hand();
        let mut token_state = TokenState::until(Some(real.unix_seconds() + 3600), &real);
        assert_eq!(token_state.due(), Some(RECHECK));
        tokio::time::advance(RECHECK).await;
        assert!(!token_state.has_ended(&real));
        assert_eq!(token_state.due(), Some(2 * RECHECK));
        tokio::time::advance(RECHECK).await;
        put.store(3_600_000, Ordering::Relaxed);
        assert!(token_state.has_ended(&real));
    }
}

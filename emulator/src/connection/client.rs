//! The client of a connection: its namespace, its accepted tokens and its rights, and the errors for missing rights.
//!
//! How client libraries introduce themselves, and which of them needs what (seen with the versions that `tests/sdks` pins,
//! unless another source is named).
//!
//! | library | SASL | `channel-max` | idle time-out | properties | windows of `begin` | needs |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | fe2o3-amqp 0.14 under azservicebus | ANONYMOUS | 255 | 30 s | none | 2,048 both | outcomes are repeated; credit that crosses the answer to a drain counts |
//! | fe2o3-amqp since 0.17 (its source) | ANONYMOUS | 255 | none | none | 5,000 both | the same, but outcomes only before 0.18.2 |
//! | fe2o3-amqp 0.14 under the official Rust client (as it was described: its crate speaks REST here) | ANONYMOUS | 255 | none | none | 2,048 both | the same |
//! | go-amqp | ANONYMOUS | none | 30 s | `MSGolangClient` | 5,000 both | refused attaches without termini |
//! | pyamqp | ANONYMOUS | 65,535 | none | `azsdk-python-servicebus` | 65,536 both | |
//! | rhea | ANONYMOUS | none | 60 s | `MSJSClient` | 2,048 in, 4,294,967,295 out | |
//! | proton-j, under Java's SDK | ANONYMOUS | 65,535 | 30 s | `azure-messaging-servicebus` | 2,147,483,647 both | close frames with a status; attaches wait for their token |
//! | Proton | PLAIN | 32,767 | none | none | 2,147,483,647 both | |
//! | Microsoft's for .NET (7.20.1) | MSSBCBS | 8,191 | 30 s | `Messaging.ServiceBus` | 4,294,967,295 in (5,000 for `$cbs`), 5,000 out | every outcome twice |
//!
//! Libraries are known by what they always write, not by an option that an application can set: one that is taken for
//! another waits a millisecond, one that is not known would hang.

use std::sync::Arc;

use serde_amqp::Value;
use servicebus_amqp::{AttachRequest, Error, PeerOpen};
use servicebus_broker::{EntityKind, EntityPath, SubQueue, Tier};

use super::identifiers::Identifiers;
use super::peer::ClientConnection;
use super::tokens::TokenState;
use crate::auth::{Claim, Claims, Grants, TokenCheck};
use crate::namespace::{Attempt, Caller, Namespace, SharedEntity, check_claim, system_tracker};
use crate::nodes::{Address, Condition, Destination, ServiceError, no_namespace};
use crate::router::{ConnectionId, WakeHandle};
use crate::shared::Shared;

/// The product of a library that attaches to `$management` before it puts the token for it.
const JAVA: &str = "azure-messaging-servicebus";
/// Link property: the entity to which messages are forwarded from the entity that they are sent to.
const DESTINATION: &str = "com.microsoft:transfer-destination-address";
/// Link property: the kind of entity that the client expects at the address (spec/observed.md 60).
const ENTITY_TYPE: &str = "com.microsoft:entity-type";
/// Kinds of entities by the clients' numbers, with the names in the service's error.
const ENTITY_TYPES: [&str; 3] = ["Queue", "Topic", "Subscriber"];

/// The client of a connection.
pub(crate) struct Client {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ConnectionId,
    pub(crate) wake_handle: Arc<WakeHandle>,
    /// Determined once (interfaces.md); until then only `$cbs` may be attached.
    pub(crate) namespace: Option<Arc<Namespace>>,
    pub(crate) caller: Caller,
    pub(crate) grants: Grants,
    pub(crate) token_state: TokenState,
    /// Whether a token was refused, which is logged once.
    pub(crate) is_token_refused: bool,
    /// The host name that the client asked for.
    pub(crate) host: String,
    /// The name of the first key that the client used.
    pub(crate) party: Option<Arc<str>>,
    /// The client's container id; empty before its `open`.
    pub(crate) container_id: String,
    /// The client's library, if known.
    pub(crate) product: Option<String>,
    /// The transport of the connection.
    pub(crate) transport: &'static str,
    pub(crate) is_jms: bool,
    /// Seconds without use after which the queues, topics and subscriptions of a JMS 2.0 client are deleted.
    pub(crate) idle_seconds: [Option<u64>; 3],
    pub(crate) identifiers: Identifiers,
    /// The attempted operation, for the record if it is refused.
    pub(crate) attempt: Attempt,
}

impl Client {
    /// Creates a client of which nothing is known yet.
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let id = shared.next_connection();
        Self {
            caller: Caller::new(id, shared.options.seed),
            token_state: TokenState::Pending(shared.real.elapsed() + shared.options.step_timeout),
            id,
            is_token_refused: false,
            wake_handle: Arc::default(),
            namespace: None,
            grants: Grants::default(),
            host: String::from("localhost"),
            party: None,
            container_id: String::new(),
            product: None,
            transport: "tcp",
            is_jms: false,
            idle_seconds: [None; 3],
            identifiers: Identifiers::default(),
            attempt: Attempt::default(),
            shared,
        }
    }

    /// Sets the namespace: from here on its idle state includes this connection, and its timeline knows the client's name.
    pub(crate) fn set_namespace(&mut self, namespace: Arc<Namespace>) {
        namespace.router.enter(self.id, &self.wake_handle);
        self.wake_handle.connecting();
        if !self.container_id.is_empty() {
            namespace.name_client(self.caller.client, &self.container_id);
        }
        self.namespace = Some(namespace);
    }

    pub(crate) fn choose_by_host(&mut self, host: &str) {
        if self.namespace.is_none()
            && let Some(namespace) = self.shared.namespaces.of_host(host)
        {
            self.set_namespace(namespace);
        }
    }

    pub(crate) fn find(&self, address: &Address) -> Result<Arc<SharedEntity>, ServiceError> {
        let Some(namespace) = &self.namespace else {
            let text = "No namespace is chosen yet: put a token at $cbs first.";
            return Err(ServiceError::new(Condition::Unauthorized, text));
        };
        // Checked first: a client without a token must not learn which names exist.
        self.check_any_claim(&address.path())?;
        let entity = namespace.reach(&address.entity, &self.host)?;
        entity.check_not_broken(&self.host)?;
        Ok(entity)
    }

    /// Returns the forwarding target of a link's messages (wire.md §8). It must exist when the link is attached (decision
    /// D3).
    pub(crate) fn destination(
        &self,
        attach: &AttachRequest,
    ) -> Result<Option<EntityPath>, ServiceError> {
        let written = match attach.property(DESTINATION) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(written)) => written.as_str(),
            Some(_) => {
                let text =
                    format!("{DESTINATION} must be a string: the address of a queue or topic.");
                return Err(ServiceError::new(Condition::ArgumentError, text));
            }
        };
        let address = Address::parse(written);
        if address.destination != Destination::Store(SubQueue::Active) {
            let text =
                format!("Messages cannot be sent on to '{written}': only to a queue or topic.");
            return Err(ServiceError::new(Condition::NotAllowed, text));
        }
        let entity = self.find(&address)?;
        self.check_claim(entity.path.as_str(), Claim::Send)?;
        entity.check_is_sent_to(SubQueue::Active)?;
        Ok(Some(entity.path.clone()))
    }

    pub(crate) fn check_claim(&self, path: &str, claim: Claim) -> Result<(), ServiceError> {
        check_claim(self.claims_at(path), claim, &self.host, path)
    }

    pub(crate) fn check_any_claim(&self, path: &str) -> Result<(), ServiceError> {
        match self.claims_at(path) == Claims::NONE {
            true => {
                let needed = "Send or Listen";
                Err(ServiceError::unauthorized(needed, &self.host, path))
            }
            false => Ok(()),
        }
    }

    /// Returns the rights at an address; none before the namespace is known.
    fn claims_at(&self, path: &str) -> Claims {
        let now = self.shared.real.unix_seconds();
        let namespace = self.namespace.as_ref();
        namespace.map_or(Claims::NONE, |namespace| {
            namespace.granted(&self.grants, path, now)
        })
    }

    pub(crate) fn tier(&self) -> Tier {
        let namespace = self.namespace.as_ref();
        namespace.map_or_else(Tier::default, |namespace| namespace.config.settings.tier)
    }

    /// Returns whether the namespace requires no tokens at all.
    pub(crate) fn is_open(&self) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_some_and(|namespace| namespace.config.token_check == TokenCheck::None)
    }

    /// Returns whether the client may put the token for a link to `$management` after its attach.
    pub(crate) fn attaches_early(&self) -> bool {
        self.product.as_deref() == Some(JAVA)
    }

    /// Checks the kind of entity that a client expects; a value that is not an int is ignored (spec/observed.md 60).
    pub(crate) fn check_entity_type(
        &self,
        kind: EntityKind,
        attach: &AttachRequest,
    ) -> Result<(), ServiceError> {
        let Some(Value::Int(expected)) = attach.property(ENTITY_TYPE) else {
            return Ok(());
        };
        let is = match kind {
            EntityKind::Queue => 0,
            EntityKind::Topic => 1,
            EntityKind::Subscription => 2,
        };
        let client = usize::try_from(*expected)
            .ok()
            .and_then(|expected| ENTITY_TYPES.get(expected));
        match client {
            Some(client) if *client != ENTITY_TYPES[is] => {
                Err(ServiceError::other_entity_type(client, ENTITY_TYPES[is]))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether messages can be received from a store of an entity now.
    pub(crate) fn check_receiving(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
    ) -> Result<(), ServiceError> {
        let namespace = self.namespace.as_ref().ok_or_else(no_namespace)?;
        namespace.check_receiving(entity, kind, &self.host)
    }

    /// Returns whether a store requires sessions.
    pub(crate) fn requires_session(&self, entity: &SharedEntity, kind: SubQueue) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_some_and(|namespace| namespace.requires_session(entity, kind))
    }

    /// Returns the error for a lock whose entity is gone.
    pub(crate) fn lock_gone(&self, entity: &SharedEntity, kind: SubQueue) -> ServiceError {
        match self.requires_session(entity, kind) {
            true => ServiceError::session_lock_lost(),
            false => ServiceError::lock_lost(),
        }
    }

    /// Turns a refusal into an AMQP error with a tracking id, and puts it into log and timeline.
    pub(crate) fn refuse(
        &mut self,
        refusal: &ServiceError,
        place: Option<(&SharedEntity, SubQueue)>,
    ) -> Error {
        let text = self.track(refusal, place);
        refusal.error(text)
    }

    /// Returns the text of a refusal with its tracking id (decision D29).
    pub(crate) fn track(
        &mut self,
        refusal: &ServiceError,
        place: Option<(&SharedEntity, SubQueue)>,
    ) -> String {
        let text = self.track_quietly(refusal, place);
        let condition = refusal.condition;
        self.record(condition.symbol(), condition.may_retry(), &text, place);
        text
    }

    /// Does the same for a refusal that the record has in another form.
    pub(crate) fn track_quietly(
        &mut self,
        refusal: &ServiceError,
        place: Option<(&SharedEntity, SubQueue)>,
    ) -> String {
        let system = system_tracker(self.namespace.as_deref(), place);
        let tracking = self.shared.tracking_id(self.caller.ids());
        refusal.tracked(tracking, &system, self.shared.real.now())
    }

    /// Puts a refusal into log and timeline.
    pub(crate) fn record(
        &mut self,
        condition: &str,
        may_retry: bool,
        text: &str,
        place: Option<(&SharedEntity, SubQueue)>,
    ) {
        tracing::info!(
            connection = self.id.0,
            condition,
            may_retry,
            text,
            "refused"
        );
        if let Some(namespace) = &self.namespace {
            let attempt = std::mem::take(&mut self.attempt);
            let refusal = (condition, text);
            namespace.record_refused_attempt(self.caller.client, place, &attempt, refusal);
        }
    }
}

/// The `channel-max` of fe2o3-amqp, which no other known library announces.
const CHANNEL_MAX_OF_FE2O3: u16 = 255;
/// The incoming and outgoing window in its every `begin`, up to 0.16; those of later versions are also go-amqp's.
const WINDOWS_OF_FE2O3: (u32, u32) = (2048, 2048);

/// Returns whether the `open` is that of a library that loses outcomes (decision D31).
pub(crate) fn opens_as_fe2o3(open: &PeerOpen) -> bool {
    open.channel_max == CHANNEL_MAX_OF_FE2O3
}

/// Returns whether the windows of a session are those of that library.
pub(crate) fn begins_as_fe2o3(windows: (u32, u32)) -> bool {
    windows == WINDOWS_OF_FE2O3
}

impl ClientConnection {
    /// Adapts the connection to a client whose library was recognised.
    pub(crate) fn adapt_to_fe2o3(&mut self) {
        self.engine.allow_credit_while_draining();
        if self.client.shared.options.outcome_delay {
            self.outcomes.repeat();
        }
    }

    /// Refuses JMS 2.0 clients where the namespace does not support them (spec/observed.md 72).
    pub(crate) fn check_jms(&mut self) {
        if self.client.is_jms
            && self.client.namespace.is_some()
            && self.client.tier() != Tier::Premium
        {
            let error = self.client.refuse(&ServiceError::needs_premium(), None);
            self.engine.close(Some(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of the table: library, `channel-max`, windows, and whether `open` and `begin` show that it is fe2o3-amqp.
    type Row = (&'static str, u16, (u32, u32), (bool, bool));

    const NEITHER: (bool, bool) = (false, false);
    const KNOWN: [Row; 9] = [
        ("azservicebus", 255, (2048, 2048), (true, true)),
        ("fe2o3-amqp 0.17", 255, (5000, 5000), (true, false)),
        ("official Rust client", 255, (2048, 2048), (true, true)),
        ("go-amqp", u16::MAX, (5000, 5000), NEITHER),
        ("pyamqp", u16::MAX, (65_536, 65_536), NEITHER),
        ("rhea", u16::MAX, (2048, u32::MAX), NEITHER),
        (
            "proton-j",
            u16::MAX,
            (2_147_483_647, 2_147_483_647),
            NEITHER,
        ),
        ("Proton", 32_767, (2_147_483_647, 2_147_483_647), NEITHER),
        ("Microsoft's for .NET", 8191, (u32::MAX, 5000), NEITHER),
    ];

    fn open(channel_max: u16) -> PeerOpen {
        PeerOpen {
            container_id: "client".into(),
            hostname: None,
            idle_timeout: None,
            channel_max,
            max_frame_size: 65_536,
            has_properties: false,
            product: None,
            is_jms: false,
            idle_seconds: [None; 3],
        }
    }

    #[test]
    fn each_library_is_recognized_by_open_or_begin() {
        for (library, channel_max, windows, is_fe2o3) in KNOWN {
            let opens = opens_as_fe2o3(&open(channel_max));
            assert_eq!((opens, begins_as_fe2o3(windows)), is_fe2o3, "{library}");
        }
    }
}

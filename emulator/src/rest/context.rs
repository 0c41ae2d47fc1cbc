//! One request while it is answered: on whose behalf, at which entity.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::request::Parts;
use servicebus_broker::{EntityPath, SubQueue};

use super::access;
use super::carrier::Carrier;
use super::rejection::{Rejection, Tracked};
use super::route::Route;
use crate::auth::Claim;
use crate::kept::Kept;
use crate::namespace::{Caller, Namespace, SharedEntity, system_tracker};
use crate::nodes::{Destination, ServiceError, send_refusal};
use crate::router::{ConnectionId, WakeHandle};
use crate::shared::Shared;

/// What requests are called in the record.
const CLIENT: &str = "HTTP";

/// A request, which counts as a connection of its own for as long as it lasts.
pub(super) struct RequestContext {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ConnectionId,
    pub(super) bell: Arc<WakeHandle>,
    pub(super) caller: Caller,
    /// What the client calls the namespace.
    pub(super) host: String,
    /// The names of its headers as they were sent, by their lower case.
    pub(super) names: HashMap<String, String>,
    pub(super) carrier: Carrier,
    namespace: Option<Arc<Namespace>>,
    place: Option<(Arc<SharedEntity>, SubQueue)>,
}

/// Where a request does what it asks for.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) namespace: Arc<Namespace>,
    pub(super) entity: Arc<SharedEntity>,
    pub(super) kind: SubQueue,
}

impl RequestContext {
    /// None where the request did not come on a connection that carries what it has to know.
    pub(super) fn begin(shared: Arc<Shared>, parts: &Parts) -> Option<Self> {
        let carrier = parts.extensions.get::<Carrier>()?.clone();
        let id = shared.next_connection();
        Some(Self {
            caller: Caller::new(id, shared.options.seed),
            shared,
            id,
            bell: Arc::default(),
            host: access::host(parts),
            names: carrier.heads.names(),
            carrier,
            namespace: None,
            place: None,
        })
    }

    /// Finds the place of the request, if its token gives a right there and `claim` is among its rights. A stranger does
    /// not learn which names exist.
    pub(super) fn enter(
        &mut self,
        route: &Route,
        parts: &Parts,
        claim: Claim,
    ) -> Result<Place, Rejection> {
        let namespace = access::namespace(&self.shared, &self.host, parts)?;
        let unix_seconds = self.shared.real.unix_seconds();
        let claims = access::claims(&namespace, route, parts, unix_seconds)?;
        if !claims.contains(claim) {
            let path = route.address.path();
            let refusal = ServiceError::unauthorized(claim.name(), &self.host, &path);
            return Err(Rejection::unauthorized(
                40100,
                "Unauthorized",
                &refusal.text,
            ));
        }
        if let Some(kept) = parts.extensions.get::<Kept>() {
            kept.allow(namespace.config.settings.tier.max_large_message_size());
        }
        let written = &route.address.entity;
        let found = EntityPath::of_address(written).and_then(|path| namespace.entity(&path));
        if namespace.client_name(self.caller.client).is_none() {
            namespace.name_client(self.caller.client, CLIENT);
        }
        self.namespace = Some(Arc::clone(&namespace));
        let Destination::Store(kind) = route.address.destination else {
            return Err(ServiceError::not_found(&self.host, &route.address.path()).into());
        };
        let entity = found.ok_or_else(|| ServiceError::not_found(&self.host, written))?;
        self.place = Some((Arc::clone(&entity), kind));
        if let Some(broken) = entity.broken() {
            return Err(send_refusal(&broken, &self.host).into());
        }
        Ok(Place {
            namespace,
            entity,
            kind,
        })
    }

    /// Has these names in the head of the answer written as they are here.
    pub(super) fn write_names(&self, names: Vec<String>) {
        self.carrier.heads.write(names);
    }

    /// That the entity is not there, or not any more.
    pub(super) fn not_found(&self, entity: &SharedEntity) -> Rejection {
        ServiceError::not_found(&self.host, entity.path.as_str()).into()
    }

    /// Gives a refusal its tracking id, into the log and the timeline (decision D29).
    pub(super) fn refuse(&mut self, rejection: &Rejection) -> Tracked {
        let place = self.place.as_ref().map(|(entity, kind)| (&**entity, *kind));
        let system = system_tracker(self.namespace.as_deref(), place);
        let tracking = self.shared.tracking_id(self.caller.ids());
        let refusal = &rejection.refusal;
        let detail = refusal.tracked(tracking, &system, self.shared.real.now());
        let (condition, may_retry) = (refusal.condition.symbol(), refusal.condition.may_retry());
        tracing::info!(
            request = self.id.0,
            condition,
            may_retry,
            text = detail,
            "refused"
        );
        if let Some(namespace) = &self.namespace {
            namespace.note_refusal(self.caller.client, place, condition, &detail);
        }
        Tracked {
            rejection: rejection.clone(),
            detail,
        }
    }
}

impl Place {
    /// The address of the store.
    pub(super) fn address(&self) -> String {
        format!("{}{}", self.entity.path, self.kind.suffix())
    }

    /// How far the namespace's clock is ahead of the client's, in milliseconds.
    pub(super) fn ahead(&self) -> i64 {
        self.namespace.clock.read().ahead
    }
}

impl Drop for RequestContext {
    fn drop(&mut self) {
        if let Some(namespace) = &self.namespace {
            namespace.router.leave(self.id);
            namespace.turns.notify_waiters();
        }
    }
}

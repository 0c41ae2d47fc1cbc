//! The context of one request: its client and its entity.
//!
//! Errors have a status of the documentation, and `<Error><Code>…</Code><Detail>…</Detail></Error>`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use servicebus_broker::SubQueue;
use tokio::sync::watch;

use super::Route;
use super::heads::Heads;
use crate::auth::{Claim, audience_path};
use crate::body_account::BodyAccount;
use crate::namespace::{Caller, Namespace, SharedEntity, check_claim, system_tracker};
use crate::nodes::{Condition, Destination, ServiceError};
use crate::router::{ConnectionId, WakeHandle};
use crate::service_http;
use crate::service_http::{TokenRefusal, XML, error_body};
use crate::shared::Shared;

/// The name of requests in the record.
const CLIENT: &str = "HTTP";

/// The properties of a request's connection: an extension of every request.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionInfo {
    /// The original case of header names.
    pub(crate) heads: Heads,
    /// Whether it uses TLS.
    pub(crate) is_secured: bool,
    /// Changes when the emulator stops.
    pub(crate) stop: watch::Receiver<bool>,
}

/// A request, which counts as a connection of its own while it lasts.
pub(crate) struct RequestContext {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ConnectionId,
    pub(crate) wake_handle: Arc<WakeHandle>,
    pub(crate) caller: Caller,
    /// The client's name of the namespace.
    pub(crate) host: String,
    /// The header names as sent, by their lower case.
    pub(crate) names: HashMap<String, String>,
    pub(crate) connection_info: ConnectionInfo,
    namespace: Option<Arc<Namespace>>,
    target: Option<(Arc<SharedEntity>, SubQueue)>,
}

/// The entity and store of a request.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) entity: Arc<SharedEntity>,
    pub(crate) kind: SubQueue,
}

impl RequestContext {
    /// Begins a request; `None` if its connection has no extension.
    pub(crate) fn begin(shared: Arc<Shared>, parts: &Parts) -> Option<Self> {
        let connection_info = parts.extensions.get::<ConnectionInfo>()?.clone();
        let id = shared.next_connection();
        Some(Self {
            caller: Caller::new(id, shared.options.seed),
            shared,
            id,
            wake_handle: Arc::new(WakeHandle::of_request()),
            host: service_http::host(parts).to_owned(),
            names: connection_info.heads.names(),
            connection_info,
            namespace: None,
            target: None,
        })
    }

    /// Finds the entity of the request, if its token has `claim` there. A client without rights does not learn which names
    /// exist.
    pub(crate) fn enter(
        &mut self,
        route: &Route,
        parts: &Parts,
        claim: Claim,
    ) -> Result<Target, Rejection> {
        let namespace = service_http::namespace(&self.shared, parts).ok_or_else(|| {
            let text =
                "The namespace cannot be determined from host name or key name; it could not be found.";
            ServiceError::new(Condition::Unauthorized, text)
        })?;
        let unix_seconds = self.shared.real.unix_seconds();
        // A token may have been signed for the address, or for the request's own URL.
        let (path, url) = (
            route.address.path(),
            format!("http://host{}", parts.uri.path()),
        );
        let resources = [&*path, &audience_path(&url)];
        let claims = service_http::claims(&namespace, parts, Some(&path), &resources, unix_seconds);
        let claims = claims.map_err(|refusal| Rejection::of_token(&refusal))?;
        check_claim(claims, claim, &self.host, &path)
            .map_err(|refusal| Rejection::unauthorized(40100, "Unauthorized", &refusal.text))?;
        if let Some(account) = parts.extensions.get::<BodyAccount>() {
            account.set_largest_message(namespace.config.settings.tier.max_large_message_size());
        }
        let written = &route.address.entity;
        if namespace.client_name(self.caller.client).is_none() {
            namespace.name_client(self.caller.client, CLIENT);
        }
        self.namespace = Some(Arc::clone(&namespace));
        let Destination::Store(kind) = route.address.destination else {
            return Err(ServiceError::not_found(&self.host, &route.address.path()).into());
        };
        let entity = namespace.reach(written, &self.host)?;
        self.target = Some((Arc::clone(&entity), kind));
        entity.check_not_broken(&self.host)?;
        Ok(Target {
            namespace,
            entity,
            kind,
        })
    }

    /// Sets the case of these names in the head of the response.
    pub(crate) fn write_names(&self, names: Vec<String>) {
        self.connection_info.heads.write(names);
    }

    /// Returns the error that the entity does not exist, or no longer.
    pub(crate) fn not_found(&self, entity: &SharedEntity) -> Rejection {
        ServiceError::not_found(&self.host, entity.path.as_str()).into()
    }

    /// Adds the tracking id to an error, and puts it into log and timeline (decision D29).
    pub(crate) fn refuse(&mut self, rejection: &Rejection) -> TrackedRejection {
        let target = self
            .target
            .as_ref()
            .map(|(entity, kind)| (&**entity, *kind));
        let system = system_tracker(self.namespace.as_deref(), target);
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
            namespace.record_refusal(self.caller.client, target, condition, &detail);
        }
        TrackedRejection {
            rejection: rejection.clone(),
            detail,
        }
    }
}

impl Target {
    /// Returns how many milliseconds the namespace's clock is ahead of the client's.
    pub(crate) fn ahead(&self) -> i64 {
        self.namespace.clock.ahead()
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

impl ConnectionInfo {
    /// Returns the scheme of this connection's URLs.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.is_secured { "https" } else { "http" }
    }
}

const LOCK_LOST: [Condition; 2] = [Condition::MessageLockLost, Condition::SessionLockLost];

/// An error with its HTTP status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) refusal: ServiceError,
    allow: Option<&'static str>,
}

/// An error whose text has its tracking id.
#[derive(Debug)]
pub(crate) struct TrackedRejection {
    pub(crate) rejection: Rejection,
    pub(crate) detail: String,
}

impl Rejection {
    pub(crate) fn new(status: StatusCode, condition: Condition, text: impl Into<String>) -> Self {
        Self {
            status,
            refusal: ServiceError::new(condition, text),
            allow: None,
        }
    }

    /// Returns the error for an invalid request.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        ServiceError::new(Condition::ArgumentError, text).into()
    }

    /// Returns the error for a token without access. The service documents `sub_code` and `name` for each reason.
    pub(crate) fn unauthorized(sub_code: u32, name: &str, text: &str) -> Self {
        let text = format!(
            "SubCode={sub_code}. {name}: {}.",
            text.trim_end_matches('.')
        );
        ServiceError::new(Condition::Unauthorized, text).into()
    }

    /// Returns the error for a token without rights: the words of its reason are one name here.
    pub(crate) fn of_token(refusal: &TokenRefusal) -> Self {
        if let Some(text) = refusal.expiry() {
            return ServiceError::new(Condition::Unauthorized, text).into();
        }
        let name = refusal.name.split(' ').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        let text = match &refusal.error {
            Some(error) => error.to_string(),
            None => "The authorization header was not found, or is not text".to_owned(),
        };
        Self::unauthorized(refusal.sub_code, &String::from_iter(name), &text)
    }

    /// Returns the error for a request that still waits when the emulator stops.
    pub(crate) fn stopping() -> Self {
        let text = "The emulator is stopping.";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Condition::ConnectionForced,
            text,
        )
    }

    /// Adds the allowed methods.
    pub(crate) fn with_allow(self, methods: &'static str) -> Self {
        Self {
            allow: Some(methods),
            ..self
        }
    }
}

impl From<ServiceError> for Rejection {
    /// Uses the status of a `$management` reply with the same condition, except where the documentation of the runtime
    /// operations differs: 410 for a missing entity, 404 for a lost lock.
    fn from(refusal: ServiceError) -> Self {
        let status = if refusal.condition == Condition::NotFound {
            StatusCode::GONE
        } else if LOCK_LOST.contains(&refusal.condition) {
            StatusCode::NOT_FOUND
        } else {
            let status = u16::try_from(refusal.condition.status());
            let status = status
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok());
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        };
        Self {
            status,
            refusal,
            allow: None,
        }
    }
}

impl IntoResponse for TrackedRejection {
    fn into_response(self) -> Response {
        let Self { rejection, detail } = self;
        let status = rejection.status;
        let body = error_body(status.as_str(), &detail);
        let mut response = (status, [(CONTENT_TYPE, XML)], body).into_response();
        if let Some(methods) = rejection.allow {
            let methods = HeaderValue::from_static(methods);
            response.headers_mut().insert(ALLOW, methods);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_the_documented_http_statuses() {
        for (condition, status) in [
            (Condition::NotFound, 410),
            (Condition::MessageLockLost, 404),
            (Condition::SessionLockLost, 404),
            (Condition::Unauthorized, 401),
            (Condition::NotAllowed, 400),
            (Condition::DecodeError, 400),
            (Condition::InternalError, 500),
            (Condition::EntityDisabled, 400),
            (Condition::MessageSizeExceeded, 403),
            (Condition::ResourceLimitExceeded, 403),
            (Condition::ServerBusy, 503),
        ] {
            let rejection = Rejection::from(ServiceError::new(condition, "no"));
            assert_eq!(rejection.status.as_u16(), status, "{condition:?}");
        }
    }
}

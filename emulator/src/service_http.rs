//! What a request to one of the service's two HTTP APIs says, entities by `admin` and messages by `rest`: which namespace it
//! is for, what its token gives, and how it is told that something is refused.

use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::request::Parts;

use crate::auth::{Claims, TokenError};
use crate::namespace::{Namespace, NoRights};
use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;
use crate::xml::Writer;

const BEARER: &str = "Bearer ";
/// The media type of refusals, of answers without a body and of messages that brought none (recorded at the service).
pub(crate) const XML: &str = "application/xml; charset=utf-8";

/// Why a token gives nothing, as the service numbers and names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenRefusal {
    pub(crate) sub_code: u32,
    pub(crate) name: &'static str,
    /// What is wrong; none where there is no token.
    pub(crate) error: Option<TokenError>,
}

/// Host and port as the client wrote them.
pub(crate) fn authority(parts: &Parts) -> &str {
    let named = || parts.headers.get(HOST)?.to_str().ok();
    let in_uri = parts.uri.authority().map(|own| own.as_str());
    in_uri.or_else(named).unwrap_or("localhost")
}

/// What the client calls the namespace, without a port.
pub(crate) fn host(parts: &Parts) -> &str {
    let host = authority(parts);
    let without_port = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    without_port.map_or(host, |(host, _)| host)
}

/// The namespace of a request: by the way that it came, else by its host name, else by the key that its token names.
pub(crate) fn namespace(shared: &Shared, parts: &Parts) -> Option<Arc<Namespace>> {
    let unknown = Arc::<ConnectionOrigin>::default();
    let origin = parts.extensions.get().unwrap_or(&unknown);
    let host = host(parts);
    shared.namespaces.of_request(origin, host, token(parts))
}

/// The rights that a request's token gives at one of the `resources`, see [`Namespace::rights`].
pub(crate) fn claims(
    namespace: &Namespace,
    parts: &Parts,
    entity: Option<&str>,
    resources: &[&str],
    unix_seconds: i64,
) -> Result<Claims, TokenRefusal> {
    let rights = namespace.rights(token(parts), entity, resources, unix_seconds);
    rights.map_err(TokenRefusal::of)
}

/// The body of a refusal; characters that XML has no form for are replaced.
pub(crate) fn error_body(status: &str, detail: &str) -> String {
    let mut out = Writer::new();
    out.open("Error", &[]);
    out.element("Code", status);
    out.element("Detail", detail);
    out.close("Error");
    out.finish()
}

/// The token without the name of its kind; a shared access signature has that in it.
pub(crate) fn token(parts: &Parts) -> Option<&str> {
    let written = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let prefix = written.get(..BEARER.len());
    match prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(BEARER)) {
        true => Some(written[BEARER.len()..].trim()),
        false => Some(written),
    }
}

impl TokenRefusal {
    /// How the service tells that the token has expired, where it has (observed 67).
    pub(crate) fn expiry(&self) -> Option<String> {
        let expired = self.error.as_ref();
        let expired = expired.filter(|error| matches!(error, TokenError::Expired { .. }));
        expired.map(|error| format!("{error}. SubCode={}.", self.sub_code))
    }

    fn of(refused: NoRights) -> Self {
        let NoRights::Refused(error) = refused else {
            return Self {
                sub_code: 40102,
                name: "Missing token",
                error: None,
            };
        };
        let (sub_code, name) = match error {
            TokenError::Malformed(_) => (40105, "Malformed token"),
            TokenError::UnknownKey(_)
            | TokenError::BadSignature(_)
            | TokenError::WrongPassword(_) => (40103, "Invalid signature"),
            TokenError::Expired { .. } => (40106, "Expired token"),
            TokenError::Audience { .. } => (40104, "Invalid audience"),
            TokenError::JwtRefused => (40100, "Unauthorized"),
        };
        Self {
            sub_code,
            name,
            error: Some(error),
        }
    }
}

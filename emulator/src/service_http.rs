//! What the service's two HTTP APIs share, `admin` for entities and `rest` for messages: the namespace of a request, the
//! rights of its token, and the form of an error.

use std::error::Error as _;
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::request::Parts;
use http_body_util::LengthLimitError;

use crate::auth::{Claims, TokenError};
use crate::namespace::{Namespace, NoRights};
use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;
use crate::xml::Writer;

const BEARER: &str = "Bearer ";
/// The media type of errors, of responses without a body, and of messages that were sent without one (recorded at the
/// service).
pub(crate) const XML: &str = "application/xml; charset=utf-8";

/// Why a token gives no rights, with the service's numbers and names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenRefusal {
    pub(crate) sub_code: u32,
    pub(crate) name: &'static str,
    /// The error of the token; `None` where the request has no token.
    pub(crate) error: Option<TokenError>,
}

/// Returns host and port as the client wrote them.
pub(crate) fn authority(parts: &Parts) -> &str {
    let named = || parts.headers.get(HOST)?.to_str().ok();
    let in_uri = parts.uri.authority().map(|own| own.as_str());
    in_uri.or_else(named).unwrap_or("localhost")
}

/// Returns the host of the request without a port.
pub(crate) fn host(parts: &Parts) -> &str {
    let host = authority(parts);
    let without_port = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    without_port.map_or(host, |(host, _)| host)
}

/// Finds the namespace of a request: by its connection, else by its host name, else by the key name in its token.
pub(crate) fn namespace(shared: &Shared, parts: &Parts) -> Option<Arc<Namespace>> {
    let unknown = Arc::<ConnectionOrigin>::default();
    let origin = parts.extensions.get().unwrap_or(&unknown);
    let host = host(parts);
    shared.namespaces.of_request(origin, host, token(parts))
}

/// Returns the rights of the request's token at one of the `resources`, see [`Namespace::rights`].
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

/// Reads a body of at most `limit` bytes; an error has the status and the text of the response.
pub(crate) async fn read_at_most(limit: usize, body: Body) -> Result<Bytes, (StatusCode, String)> {
    let read = to_bytes(body, limit).await;
    read.map_err(|error| match error.source() {
        Some(source) if source.is::<LengthLimitError>() => {
            let text = format!("The body is larger than {limit} bytes.");
            (StatusCode::PAYLOAD_TOO_LARGE, text)
        }
        _ => {
            let text = "The body ended before all of its bytes had come.";
            (StatusCode::BAD_REQUEST, text.to_owned())
        }
    })
}

/// Renders the body of an error; replaces characters that XML cannot represent.
pub(crate) fn error_body(status: &str, detail: &str) -> String {
    let mut out = Writer::new();
    out.open("Error", &[]);
    out.element("Code", status);
    out.element("Detail", detail);
    out.close("Error");
    out.finish()
}

/// Returns the token without its scheme; a shared access signature includes the scheme.
pub(crate) fn token(parts: &Parts) -> Option<&str> {
    let written = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let prefix = written.get(..BEARER.len());
    match prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(BEARER)) {
        true => Some(written[BEARER.len()..].trim()),
        false => Some(written),
    }
}

impl TokenRefusal {
    /// Returns the service's message for an expired token, if this one has expired (observed 67).
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

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, stream};

    use super::*;

    #[test]
    fn a_truncated_body_is_not_reported_as_too_large() {
        let status = |body: Body| {
            let read = read_at_most(5, body).now_or_never().expect("it is there");
            read.map_err(|(status, _)| status)
        };
        assert_eq!(status(Body::from("whole")), Ok(Bytes::from("whole")));
        assert_eq!(
            status(Body::from("longer")),
            Err(StatusCode::PAYLOAD_TOO_LARGE)
        );
        let cut = [
            Ok(Bytes::from("cut")),
            Err(std::io::Error::other("the connection ended")),
        ];
        let cut = Body::from_stream(stream::iter(cut));
        assert_eq!(status(cut), Err(StatusCode::BAD_REQUEST));
    }
}

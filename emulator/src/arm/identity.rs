//! Tokens for clients that use a managed identity or a directory, and the metadata of the directory.
//!
//! A token gives access to what the control API manages, so that beyond this machine both ways require the control token: in
//! the header `X-IDENTITY-HEADER`, which clients read from `IDENTITY_HEADER`, and as the secret of a service principal.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{Answer, Refusal, is_local};
use crate::auth::issued_token::{LIFETIME, issue};
use crate::service_http::{authority, read_at_most};
use crate::shared::Shared;

const IDENTITY_HEADER: HeaderName = HeaderName::from_static("x-identity-header");
/// The default audience of a token: Azure Resource Manager.
const MANAGEMENT: &str = "https://management.azure.com/";
/// Maximum size of a token request's form, in bytes.
const MAX_FORM: usize = 64 * 1024;
/// Longest audience that is repeated in a token, in bytes.
const MAX_AUDIENCE: usize = 1024;

/// Returns a token by managed identity, in the protocol of App Service.
pub(crate) fn managed(shared: &Shared, head: &Parts) -> Result<Answer, Refusal> {
    let header = head.headers.get(IDENTITY_HEADER);
    let Some(shown) = header.and_then(|shown| shown.to_str().ok()) else {
        let text =
            "the header X-IDENTITY-HEADER is missing, which clients take from IDENTITY_HEADER";
        return Err(Refusal::unauthorized("unauthorized", text));
    };
    check(shared, head, shown, "the value of IDENTITY_HEADER")?;
    let query = head.uri.query().unwrap_or_default();
    let resource = parameter(query.as_bytes(), "resource").unwrap_or_default();
    if resource.is_empty() || resource.len() > MAX_AUDIENCE {
        let text = format!("the parameter resource must have 1 to {MAX_AUDIENCE} bytes");
        return Err(Refusal::bad_request("invalid_request", text));
    }
    let now = shared.real.unix_seconds();
    let token = issue(&resource, now).map_err(Refusal::no_random_numbers)?;
    Ok(Answer::ok(json!({
        "access_token": token,
        "expires_on": (now + LIFETIME).to_string(),
        "resource": resource,
        "token_type": "Bearer",
    })))
}

/// Returns a token of the directory, for a service principal of any name.
pub(crate) async fn token(shared: &Shared, head: &Parts, body: Body) -> Result<Answer, Refusal> {
    let refused = |(status, text)| Refusal::new(status, "invalid_request", text);
    let form = read_at_most(MAX_FORM, body).await.map_err(refused)?;
    let field = |name| parameter(&form, name).unwrap_or_default();
    check(shared, head, &field("client_secret"), "the secret")?;
    let fields = [field("scope"), field("resource")];
    let audience = fields.iter().find(|named| !named.is_empty());
    let audience = audience.map_or(MANAGEMENT, |scope| scope.trim_end_matches(".default"));
    let audience = audience.get(..MAX_AUDIENCE).unwrap_or(audience);
    let token = issue(audience, shared.real.unix_seconds());
    Ok(Answer::ok(json!({
        "token_type": "Bearer",
        "expires_in": LIFETIME,
        "ext_expires_in": LIFETIME,
        "access_token": token.map_err(Refusal::no_random_numbers)?,
    })))
}

/// Requires the control token from clients beyond this machine.
fn check(shared: &Shared, head: &Parts, shown: &str, what: &str) -> Result<(), Refusal> {
    if is_local(shared, head) {
        return Ok(());
    }
    match &shared.access.token {
        Some(token) if token.is(shown) => Ok(()),
        Some(_) => {
            let text = format!(
                "clients beyond loopback get a token where {what} is that of --control-token"
            );
            Err(Refusal::unauthorized("unauthorized", text))
        }
        None => {
            let text = "tokens are given to this machine alone; start the emulator with --control-token to give them to others";
            Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "no-control-token",
                text,
            ))
        }
    }
}

/// Returns the endpoints of a cloud, which are all here.
pub(crate) fn metadata(head: &Parts) -> Answer {
    let here = format!("https://{}", authority(head));
    let directory = format!("{here}/adfs");
    let cloud = json!({
        "name": "ServiceBusEmulator",
        "portal": here,
        "resourceManager": here,
        "authentication": {
            "loginEndpoint": directory,
            "audiences": [MANAGEMENT, here],
            "tenant": "common",
            "identityProvider": "AAD",
        },
        "graph": here,
        "graphAudience": here,
        "microsoftGraphResourceId": here,
        "media": here,
        "batch": here,
        "suffixes": {},
    });
    Answer::ok(match head.uri.query() {
        // The newest format is one cloud, the one before a list of clouds.
        Some(query) if query.contains("2022-09-01") => cloud,
        _ => Value::Array(vec![cloud]),
    })
}

/// Returns the endpoints of a directory.
pub(crate) fn open_id(head: &Parts) -> Answer {
    let directory = format!("https://{}/adfs", authority(head));
    Answer::ok(json!({
        "issuer": directory,
        "authorization_endpoint": format!("{directory}/oauth2/v2.0/authorize"),
        "token_endpoint": format!("{directory}/oauth2/v2.0/token"),
        "device_authorization_endpoint": format!("{directory}/oauth2/v2.0/devicecode"),
        "jwks_uri": format!("{directory}/discovery/keys"),
        "tenant_region_scope": null,
        "response_types_supported": ["code", "id_token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["HS256"],
    }))
}

/// Returns the value of a parameter of a query or a form.
pub(crate) fn parameter(encoded: &[u8], name: &str) -> Option<String> {
    let text = str::from_utf8(encoded).ok()?;
    let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    let mut pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    // Go encodes the `$` of names too.
    let is_it = |own: &str| decoded(own).is_some_and(|own| own.eq_ignore_ascii_case(name));
    let (_, value) = pairs.find(|(own, _)| is_it(own))?;
    decoded(&value.replace('+', " "))
}

//! Requests for resources: their authorization, their namespace, and pages of lists.

use std::ops::RangeInclusive;
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use serde_json::{Value, json};
use servicebus_config::ControlToken;
use servicebus_config::descriptions::Instant;
use tokio::time::timeout;
use uuid::Uuid;

use super::entities::bad_request;
use super::identity::parameter;
use super::route::{is_version, segments};
use super::{Answer, Refusal, is_local, member};
use crate::auth::{Jwt, TokenCheck, TokenError, verify_issued};
use crate::config::Arm;
use crate::namespace::Namespace;
use crate::service_http::{authority, read_at_most};
use crate::shared::Shared;

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// The default and maximum number of resources in a page.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;
/// The maximum number of resources before a page.
const MAX_SKIP: usize = i32::MAX as usize;
/// Longest name of a resource group, in characters.
const MAX_GROUP_NAME: usize = 90;
/// The index of the namespace's name in a path.
pub(crate) const NAMESPACE: usize = 7;

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) head: &'a Parts,
    /// The parts of the path, as written and in lower case.
    pub(crate) path: Vec<String>,
    pub(crate) lower: Vec<String>,
    /// Null without a body.
    pub(crate) body: Value,
}

/// Answers a request for resources.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    head: &Parts,
    body: Body,
) -> Result<Answer, Refusal> {
    check_version(head)?;
    let path = segments(head.uri.path());
    let lower = path.iter().map(|part| part.to_ascii_lowercase()).collect();
    let mut call = Call {
        shared,
        head,
        path,
        lower,
        body: Value::Null,
    };
    call.authorize()?;
    call.check_scope()?;
    call.body = call.read(body).await?;
    call.answer().await
}

/// Returns the namespace in a path.
pub(crate) fn named(shared: &Shared, path: &[String]) -> Option<Arc<Namespace>> {
    shared.namespaces.named(path.get(NAMESPACE)?)
}

/// Checks the version. Any date of the calendar is valid; versions of the administration API have no day.
fn check_version(head: &Parts) -> Result<(), Refusal> {
    let query = head.uri.query().unwrap_or_default();
    match parameter(query.as_bytes(), "api-version") {
        Some(version) if is_version(&version) && Instant::read(&version[..10]).is_some() => Ok(()),
        Some(version) => {
            let text = format!(
                "The api-version '{version}' is invalid. The supported versions are dates, as in 2024-01-01."
            );
            Err(Refusal::bad_request("InvalidApiVersionParameter", text))
        }
        None => {
            let text =
                "The api-version query parameter (?api-version=) is required for all requests.";
            Err(Refusal::bad_request("MissingApiVersionParameter", text))
        }
    }
}

impl Call<'_> {
    pub(crate) fn namespace(&self) -> Result<Arc<Namespace>, Refusal> {
        let namespace = named(self.shared, &self.path).ok_or_else(|| {
            let text = format!(
                "The Resource 'Microsoft.ServiceBus/namespaces/{}' under resource group '{}' was not found.",
                self.path[NAMESPACE], self.path[3]
            );
            Refusal::new(StatusCode::NOT_FOUND, "ResourceNotFound", text)
        })?;
        if namespace.config.arm == Arm::Off {
            let text = format!(
                "The namespace '{}' is not served here: \"Arm\" of its configuration is \"off\".",
                namespace.name()
            );
            return Err(Refusal::new(
                StatusCode::FORBIDDEN,
                "AuthorizationFailed",
                text,
            ));
        }
        Ok(namespace)
    }

    fn authorize(&self) -> Result<(), Refusal> {
        let failed = |text: String| Refusal::unauthorized("AuthenticationFailed", text);
        let header = self.head.headers.get(AUTHORIZATION);
        let header = header
            .and_then(|header| header.to_str().ok())
            .unwrap_or_default();
        let token = header.split_once(' ').filter(|(scheme, token)| {
            scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()
        });
        let Some((_, token)) = token else {
            return Err(failed("Authentication failed. The 'Authorization' header is missing or has no bearer token.".to_owned()));
        };
        let now = self.shared.real.unix_seconds();
        match verify_issued(token.trim(), now) {
            Ok(Some(_)) => return Ok(()),
            Err(error @ (TokenError::BadSignature(_) | TokenError::Expired { .. })) => {
                return Err(failed(format!("Authentication failed: {error}.")));
            }
            _ => {}
        }
        if !is_local(self.shared, self.head) {
            let is_shown = |control: &ControlToken| control.is_shown_by(header);
            return match &self.shared.access.token {
                Some(control) if is_shown(control) => Ok(()),
                Some(_) => Err(failed("Beyond loopback the token must be the control token, or one that was given for it.".to_owned())),
                None => {
                    let text = "Resources are served to this machine alone; start the emulator with --control-token to serve them to others.";
                    Err(Refusal::new(StatusCode::FORBIDDEN, "AuthorizationFailed", text))
                }
            };
        }
        match named(self.shared, &self.path) {
            Some(namespace) if !accepts_any(&namespace) => {
                let accepted = namespace
                    .with_policy(None, |policy| policy.accept_token(token.trim(), "", now));
                accepted
                    .map(drop)
                    .map_err(|error| failed(format!("Authentication failed: {error}.")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Accepts any subscription and any group whose names are valid.
    fn check_scope(&self) -> Result<(), Refusal> {
        let part = |index, above| match self.lower.get(index - 1) {
            Some(own) if own == above => self.path.get(index),
            _ => None,
        };
        if let Some(id) = part(1, "subscriptions").filter(|id| Uuid::try_parse(id).is_err()) {
            let text = format!(
                "The provided subscription identifier '{id}' is malformed or invalid; allowed: a GUID."
            );
            return Err(Refusal::bad_request("InvalidSubscriptionId", text));
        }
        let is_legal = |name: &String| {
            let mut characters = name.chars();
            (1..=MAX_GROUP_NAME).contains(&name.encode_utf16().count())
                && !name.ends_with('.')
                && characters.all(|c| c.is_alphanumeric() || "-_.()".contains(c))
        };
        match part(3, "resourcegroups").filter(|name| !is_legal(name)) {
            None => Ok(()),
            Some(name) => {
                let text = format!(
                    "The provided resource group name '{name}' is invalid; allowed: 1 to {MAX_GROUP_NAME} letters, digits, \
                     '-', '.', '(', ')' and '_', and no '.' at the end."
                );
                Err(Refusal::bad_request("InvalidResourceGroup", text))
            }
        }
    }

    async fn read(&self, body: Body) -> Result<Value, Refusal> {
        let step_timeout = self.shared.options.step_timeout;
        let bytes = timeout(step_timeout, read_at_most(MAX_BODY, body))
            .await
            .map_err(|_| {
                let text = format!(
                    "The body did not come within {} s.",
                    step_timeout.as_secs_f64()
                );
                Refusal::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", text)
            })?;
        let bytes = bytes.map_err(|(status, text)| {
            let code = match status {
                StatusCode::PAYLOAD_TOO_LARGE => "RequestContentTooLarge",
                _ => "InvalidRequestContent",
            };
            Refusal::new(status, code, text)
        })?;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(Value::Null);
        }
        let body: Value =
            serde_json::from_slice(&bytes).map_err(|error| invalid_content(&error.to_string()))?;
        let properties = member(&body, "properties").unwrap_or(&Value::Null);
        match body.is_object() && (properties.is_object() || properties.is_null()) {
            true => Ok(body),
            false => Err(invalid_content(
                "it and its 'properties' must be JSON objects",
            )),
        }
    }

    /// Returns the id of the resource in the path.
    pub(crate) fn id(&self) -> String {
        self.id_of(self.path.len())
    }

    /// Returns the id that the first parts of the path form.
    pub(crate) fn id_of(&self, parts: usize) -> String {
        let mut id = String::new();
        for (index, part) in self.path[..parts].iter().enumerate() {
            let usual = match self.lower[index].as_str() {
                "resourcegroups" if index == 2 => "resourceGroups",
                "microsoft.servicebus" if index == 5 => "Microsoft.ServiceBus",
                _ => part,
            };
            id.push('/');
            // Names of entities contain slashes, also where a client encoded them.
            id.push_str(&usual.replace('/', "~"));
        }
        id
    }

    /// Returns a page of a list, with the address of the next one.
    pub(crate) fn page<T>(&self, all: &[T], show: impl Fn(&T) -> Value) -> Result<Answer, Refusal> {
        let query = self.head.uri.query().unwrap_or_default().as_bytes();
        let number = |name, usual: usize, allowed: RangeInclusive<usize>| {
            let Some(written) = parameter(query, name) else {
                return Ok(usual);
            };
            let parsed = written.parse().ok();
            parsed
                .filter(|number| allowed.contains(number))
                .ok_or_else(|| {
                    let (least, most) = allowed.into_inner();
                    bad_request(&format!(
                        "The query parameter '{name}' is '{written}'; allowed: {least} to {most}."
                    ))
                })
        };
        let skip = number("$skip", 0, 0..=MAX_SKIP)?;
        let top = number("$top", PAGE, 1..=MAX_PAGE)?;
        let end = skip.saturating_add(top);
        let shown: Vec<Value> = all.iter().skip(skip).take(top).map(show).collect();
        let mut page = json!({ "value": shown });
        if end < all.len() {
            let version = parameter(query, "api-version").unwrap_or_default();
            let (host, path) = (authority(self.head), self.head.uri.path());
            page["nextLink"] =
                format!("https://{host}{path}?api-version={version}&$skip={end}&$top={top}").into();
        }
        Ok(Answer::ok(page))
    }
}

/// Returns the refusal of a body.
pub(crate) fn invalid_content(reason: &str) -> Refusal {
    let text =
        format!("The request content was invalid and could not be deserialized: '{reason}'.");
    Refusal::bad_request("InvalidRequestContent", text)
}

/// Returns whether any token is accepted: test credentials need not issue JSON web tokens.
fn accepts_any(namespace: &Namespace) -> bool {
    namespace.config.token_check == TokenCheck::None || namespace.jwt == Jwt::Accept
}

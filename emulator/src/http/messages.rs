//! The messages of a queue, a subscription or a dead-letter queue: listed, searched, and read one by one.
//!
//! An entity is locked while a few hundred messages are copied, which share their bytes; they are filtered and rendered
//! after it was unlocked.

mod amqp;
mod change;
mod search;

use axum::Json;
use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use servicebus_broker::filter::{SystemProperty, Value};
use servicebus_broker::{
    Counts, InspectedMessage, MessageState, SequenceNumber, SessionName, SubQueue,
};
use servicebus_codec::{Reader, Value as Amqp};
use servicebus_control_api::{AmqpMessage, HeldMessage, MessageSummary, Messages};

use super::Control;
use super::counts::{EntityQuery, find};
use super::error::{
    ApiError, QueryParams, SelectedNamespace, check_limit, is_newest_first, path_name,
};
use crate::clock;
use crate::namespace::{Namespace, SharedEntity};
pub(crate) use amqp::{encode, value_to_json};
pub(crate) use change::{act, resubmit, send};
use search::{Criteria, SearchPosition};

/// Messages in one answer.
const LIMIT: usize = 200;
const USUAL: usize = 50;
/// Bytes of the beginning of a body in a list.
const PREVIEW: usize = 200;
/// Largest message whose body is returned as JSON.
const SHOWN: u64 = 1024 * 1024;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageQuery {
    entity: String,
    state: Option<String>,
    session: Option<String>,
    r#where: Option<String>,
    body_contains: Option<String>,
    #[serde(default)]
    skip: usize,
    /// The sequence number of the first message.
    from: Option<u64>,
    /// `oldest` or `newest` first.
    order: Option<String>,
    limit: Option<usize>,
}

pub(crate) async fn list(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(query): QueryParams<MessageQuery>,
) -> Result<Json<Messages>, ApiError> {
    let limit = check_limit(query.limit, LIMIT)?.min(query.limit.unwrap_or(USUAL));
    let (entity, kind) = find(&namespace, &query.entity)?;
    let newest_first = is_newest_first(query.order.as_deref())?;
    let end = if newest_first { u64::MAX } else { 0 };
    let mut place = SearchPosition {
        from: SequenceNumber(query.from.unwrap_or(end)),
        newest_first,
    };
    let state = query.state.as_deref().map(read_state).transpose()?;
    let criteria = Criteria::new(
        state,
        query.session.as_deref().map(read_session).transpose()?,
        query.r#where.as_deref(),
        query.body_contains,
    )?;
    let counts = namespace.read(&entity, |entity| entity.counts(kind));
    let mut answer = Messages {
        total: total(&counts, state),
        ..Messages::default()
    };
    if place.skip(&namespace, &entity, kind, query.skip) {
        let summary = |found: &_| summary(&namespace, found);
        let (found, next) =
            search::scan(&namespace, &entity, kind, place, &criteria, limit, &summary).await;
        answer.messages = found;
        answer.next = next.map(|next| next.0);
    }
    Ok(Json(answer))
}

/// Answers with a message and all its state.
pub(crate) async fn show(
    SelectedNamespace(namespace): SelectedNamespace,
    Number(number): Number,
    QueryParams(EntityQuery { entity }): QueryParams<EntityQuery>,
) -> Result<Json<HeldMessage>, ApiError> {
    let (found, kind) = find(&namespace, &entity)?;
    let found = one(&namespace, &found, kind, number)?;
    Ok(Json(HeldMessage {
        summary: summary(&namespace, &found),
        message: whole(&found)?,
    }))
}

/// Answers with the body alone, as it was sent. No browser shows it as a page of this origin.
pub(crate) async fn body(
    SelectedNamespace(namespace): SelectedNamespace,
    Number(number): Number,
    QueryParams(EntityQuery { entity }): QueryParams<EntityQuery>,
) -> Result<Response, ApiError> {
    let (found, kind) = find(&namespace, &entity)?;
    let found = one(&namespace, &found, kind, number)?;
    let body = amqp::body(&found.message.content());
    let body = body.map_err(|error| undecodable(number, &error))?;
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (CONTENT_TYPE, "application/octet-stream"),
        (CONTENT_DISPOSITION, "attachment"),
        (CONTENT_SECURITY_POLICY, "sandbox"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    Ok((headers, Body::from(body)).into_response())
}

/// The sequence number of a message in the path of a request.
pub(crate) struct Number(pub(crate) SequenceNumber);

impl axum::extract::FromRequestParts<Control> for Number {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        control: &Control,
    ) -> Result<Self, ApiError> {
        let text = path_name(parts, control, "number").await;
        let text = text.unwrap_or_default();
        let number = text.parse().map(SequenceNumber).map(Self);
        number.map_err(|_| ApiError::not_allowed("number", text, "a sequence number"))
    }
}

fn one(
    namespace: &Namespace,
    entity: &SharedEntity,
    kind: SubQueue,
    number: SequenceNumber,
) -> Result<InspectedMessage, ApiError> {
    let (mut found, missing) = namespace.read_messages(
        entity,
        |entity| entity.inspect_one(kind, number).into_iter().collect(),
        |found| &found.message,
    );
    missing.fill(found.iter_mut().map(|found| &mut found.message));
    found.pop().ok_or_else(|| {
        let message = format!(
            "there is no message {} in '{}'",
            number.0,
            entity.store_path(kind)
        );
        ApiError::new(StatusCode::NOT_FOUND, "not-found", message)
    })
}

/// Returns the message as JSON; without its body if it is too large.
fn whole(found: &InspectedMessage) -> Result<AmqpMessage, ApiError> {
    let message = &found.message;
    let mut encoded = Vec::with_capacity(message.size() as usize);
    message.encode_as_sent(&mut encoded);
    let is_large = message.size() > SHOWN;
    if is_large {
        encoded.truncate(encoded.len() - message.content().len());
    }
    let number = found.broker_properties.sequence_number;
    let mut json = amqp::to_json(&encoded).map_err(|error| undecodable(number, &error))?;
    match is_large {
        true => json.body = Some(serde_json::json!({ "omitted": message.size() })),
        false => json.amqp = Some(encoded.into()),
    }
    Ok(json)
}

fn undecodable(number: SequenceNumber, error: &dyn std::fmt::Display) -> ApiError {
    let message = format!("message {number} cannot be decoded: {error}");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal-error", message)
}

/// Returns the message as [`show`] renders it, complete at any size, if no namespace serves it.
#[cfg(feature = "cli")]
pub(crate) fn at_rest(
    found: &InspectedMessage,
) -> Result<HeldMessage, servicebus_codec::DecodeError> {
    let mut encoded = Vec::with_capacity(found.message.size() as usize);
    found.message.encode_as_sent(&mut encoded);
    let mut message = amqp::to_json(&encoded)?;
    message.amqp = Some(encoded.into());
    Ok(HeldMessage {
        summary: summarized(found, None),
        message,
    })
}

fn summary(namespace: &Namespace, found: &InspectedMessage) -> MessageSummary {
    let holder = found
        .lock
        .map(|(holder, _)| namespace.receiver_name(holder));
    summarized(found, holder)
}

fn summarized(found: &InspectedMessage, locked_by: Option<String>) -> MessageSummary {
    let (known, message) = (&found.broker_properties, &found.message);
    let view = found.filter_view().ok();
    let system = |property| text(view.as_ref()?.system(property));
    let user = |name: &str| text(view.as_ref()?.user_named(name)?);
    MessageSummary {
        sequence_number: known.sequence_number.0,
        state: found.state.name().to_owned(),
        message_id: message.id().into_owned(),
        session_id: message.session_id().map(Into::into),
        subject: system(SystemProperty::Label),
        content_type: system(SystemProperty::ContentType),
        correlation_id: system(SystemProperty::CorrelationId),
        enqueued_at: clock::system_time(known.enqueued_at),
        expires_at: found.expires_at.map(clock::system_time),
        activates_at: found.activates_at.map(clock::system_time),
        delivery_count: known.delivery_count,
        size: message.size(),
        locked_by,
        locked_until: found
            .lock
            .and_then(|(_, until)| until)
            .map(clock::system_time),
        dead_letter_reason: user("DeadLetterReason"),
        dead_letter_description: user("DeadLetterErrorDescription"),
        dead_letter_source: system(SystemProperty::DeadLetterSource),
        preview: preview(&message.content()),
    }
}

fn text(value: &Value<'_>) -> Option<String> {
    let Value::Text(text) = value else {
        return None;
    };
    Some(text.to_string())
}

/// Returns the beginning of a body that is text.
fn preview(content: &[u8]) -> Option<String> {
    let mut reader = Reader::new(content);
    reader.descriptor().ok()?;
    #[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is text")]
    let bytes = match reader.value().ok()? {
        Amqp::Binary(bytes) => bytes,
        Amqp::String(text) => text.as_bytes(),
        _ => return None,
    };
    let beginning = &bytes[..bytes.len().min(PREVIEW)];
    match std::str::from_utf8(beginning) {
        Ok(text) => Some(text.to_owned()),
        // The last character is truncated.
        Err(error) if error.error_len().is_none() => {
            let whole = &beginning[..error.valid_up_to()];
            Some(String::from_utf8_lossy(whole).into_owned())
        }
        Err(_) => None,
    }
}

fn total(counts: &Counts, state: Option<MessageState>) -> u64 {
    let total = match state {
        None => counts.active + counts.scheduled + counts.transfer,
        Some(MessageState::Active) => counts
            .active
            .saturating_sub(counts.locked + counts.deferred),
        Some(MessageState::Locked) => counts.locked,
        Some(MessageState::Deferred) => counts.deferred,
        Some(MessageState::Scheduled) => counts.scheduled,
        Some(MessageState::Transfer) => counts.transfer,
    };
    total as u64
}

fn read_state(name: &str) -> Result<MessageState, ApiError> {
    let mut all = MessageState::ALL.into_iter();
    all.find(|state| state.name() == name).ok_or_else(|| {
        let allowed = MessageState::ALL.map(MessageState::name).join(", ");
        ApiError::not_allowed("state", name, allowed)
    })
}

fn read_session(text: &str) -> Result<SessionName, ApiError> {
    SessionName::new(text).ok_or_else(|| {
        let allowed = format!("up to {} characters", SessionName::MAX_LENGTH);
        ApiError::not_allowed("session", text, allowed)
    })
}

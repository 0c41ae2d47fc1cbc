//! Explains the result of each rule of a subscription for a message, and why it does not match.
//!
//! The body is the message in AMQP encoding, so that its properties have the types of a sender; or the only one of a batch
//! in JSON, as REST clients send it, or one in the JSON of the control API, for callers that cannot encode AMQP.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use servicebus_broker::filter::{self, Outcome, System, Truth};
use servicebus_broker::{EntityKind, EntityPath, Message, RuleSet, SubQueue, Timestamp};
use servicebus_control_api::{
    Explanation, NamedValue, Problem, Reason, RuleExplanation, SubscriptionExplanation,
};

use super::counts::find;
use super::error::{ApiError, QueryParams, SelectedNamespace};
use super::messages;
use crate::namespace::{Ids, Namespace};
use crate::rest::{Rejection, SENT, batch};

const JSON: &str = "application/json";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainQuery {
    subscription: Option<String>,
    topic: Option<String>,
}

/// Answers with the result of each rule by name; for a topic, by subscription.
pub(crate) async fn show(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(query): QueryParams<ExplainQuery>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<Explanation>, ApiError> {
    let body = body?;
    let (paths, rules) = requested_rules(&namespace, &query)?;
    let mut ids = Ids::new(Some(0), 0);
    let now = namespace.clock.now();
    let body = encoded(&headers, body, now)?;
    let message = Message::parse(body, &mut ids).map_err(|error| malformed(&error))?;
    let time_to_live = message.time_to_live().map(Duration::from_millis);
    // Rules use the time of clients (decision D20).
    let enqueued_at = Timestamp::from_millis(now.as_millis() - namespace.clock.ahead());
    let system = System {
        enqueued_at: Some(enqueued_at),
        expires_at: time_to_live.map(|time_to_live| enqueued_at + time_to_live),
        time_to_live,
        size: message.size(),
        force_persistence: true,
        ..System::default()
    };
    let view = message
        .filter_view(&system)
        .map_err(|error| malformed(&error))?;
    let mut explain = |path: &EntityPath| {
        let own = rules.of(path).map(AsRef::as_ref);
        let explained = filter::explain(own, &view, &mut ids);
        Vec::from_iter(explained.into_iter().map(shown))
    };
    if let Some(path) = paths.first().filter(|_| query.topic.is_none()) {
        return Ok(Json(Explanation {
            rules: explain(path),
            subscriptions: Vec::new(),
        }));
    }
    let subscriptions = paths.iter().map(|path| {
        let rules = explain(path);
        SubscriptionExplanation {
            subscription: path.to_string(),
            matched: rules.iter().any(|rule| rule.matched),
            rules,
        }
    });
    Ok(Json(Explanation {
        rules: Vec::new(),
        subscriptions: subscriptions.collect(),
    }))
}

/// Returns the requested subscriptions, and the rules of their topic.
fn requested_rules(
    namespace: &Namespace,
    query: &ExplainQuery,
) -> Result<(Vec<EntityPath>, Arc<RuleSet>), ApiError> {
    match (&query.subscription, &query.topic) {
        (Some(subscription), None) => {
            let rules = rules_of(namespace, subscription);
            let (path, rules) = rules.ok_or_else(|| unknown(namespace, subscription))?;
            Ok((vec![path], rules))
        }
        (None, Some(topic)) => {
            let found = find(namespace, topic).ok();
            let found = found.filter(|&(_, kind)| kind == SubQueue::Active);
            let rules = found
                .as_ref()
                .and_then(|(topic, _)| namespace.read(topic, |entity| entity.rules().cloned()));
            let rules = rules.ok_or_else(|| {
                let entities = namespace.entities();
                let topics = entities
                    .iter()
                    .filter(|entity| entity.kind == EntityKind::Topic);
                let topics = topics.map(|entity| entity.path.as_str());
                ApiError::unknown("topic", topic, topics)
            })?;
            let paths = found.map(|(topic, _)| namespace.subscriptions(&topic));
            Ok((paths.unwrap_or_default(), rules))
        }
        (Some(_), Some(_)) | (None, None) => {
            let text = "either `subscription` or `topic`";
            let status = StatusCode::BAD_REQUEST;
            Err(ApiError::new(status, "invalid-query", text))
        }
    }
}

/// Returns the message of a request in AMQP encoding.
fn encoded(headers: &HeaderMap, body: Bytes, now: Timestamp) -> Result<Bytes, ApiError> {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    let media_type = content_type.and_then(Result::ok).unwrap_or_default();
    let media_type = media_type.split(';').next().map(str::trim_end);
    if !media_type.is_some_and(|media_type| media_type.eq_ignore_ascii_case(JSON)) {
        return Ok(body);
    }
    if body.trim_ascii_start().starts_with(b"{") {
        let message = serde_json::from_slice(&body).map_err(|error| malformed(&error))?;
        let encoded = messages::encode(&message).map_err(|error| malformed(&error))?;
        return Ok(encoded.into());
    }
    let mut encoded = None;
    let parsed = batch::parse(&body, |message| match encoded {
        Some(_) => Err(Rejection::bad_request("one message is explained at a time")),
        None => {
            // A send ignores them, but here they would be a wrong explanation.
            if let Some(name) = message.properties.ignored.first() {
                let known = SENT.join(", ");
                let text = format!("a sender has no broker property {name:?}; it has {known}");
                return Err(Rejection::bad_request(text));
            }
            encoded = Some(message.encode(now.as_millis()));
            Ok(())
        }
    });
    parsed.map_err(|rejection| malformed(&rejection.refusal.text))?;
    Ok(encoded.unwrap_or_default())
}

/// Returns a subscription by any of its addresses, and the rules of its topic.
fn rules_of(namespace: &Namespace, address: &str) -> Option<(EntityPath, Arc<RuleSet>)> {
    let found = find(namespace, address).ok();
    let (subscription, _) = found.filter(|&(_, kind)| kind == SubQueue::Active)?;
    let (topic, _) = subscription.path.topic()?;
    let topic = namespace.entity(&topic)?;
    let rules = namespace.read(&topic, |entity| entity.rules().cloned());
    Some((subscription.path.clone(), rules?))
}

fn shown(explanation: filter::Explanation) -> RuleExplanation {
    let matched = explanation.outcome == Outcome::Matched;
    let (reason, error) = match explanation.outcome {
        Outcome::Matched => (None, None),
        Outcome::NotMatched(reason) => {
            let truth = match reason.truth {
                Truth::Unknown => "unknown",
                Truth::False | Truth::True => "false",
            };
            let values = reason.values.into_iter();
            let values = values.map(|(name, value)| NamedValue { name, value });
            let shown = Reason {
                expression: reason.expression,
                truth: truth.into(),
                values: values.collect(),
            };
            (Some(shown), None)
        }
        Outcome::Failed(error) => (None, Some(error.to_string())),
    };
    RuleExplanation {
        rule: explanation.rule,
        matched,
        reason,
        error,
    }
}

fn unknown(namespace: &Namespace, subscription: &str) -> ApiError {
    let entities = namespace.entities();
    let known = entities.iter().map(|entity| &entity.path);
    let known = known.filter(|path| path.topic().is_some());
    let known = known.map(EntityPath::as_str);
    ApiError::unknown("subscription", subscription, known)
}

fn malformed(error: &impl std::fmt::Display) -> ApiError {
    let problem = Problem::new("body", error.to_string(), "a message as AMQP encodes it");
    ApiError::new(StatusCode::BAD_REQUEST, "invalid-body", error.to_string())
        .with_problems(vec![problem])
}

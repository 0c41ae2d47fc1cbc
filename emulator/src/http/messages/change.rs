//! Sends messages, resubmits them from a store, and performs actions on them by sequence number.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde_json::Value;
use servicebus_broker::{
    Entity, InspectedMessage, Message, MessageAction, MessageLocation, ResubmitError, SendError,
    SequenceNumber, SubQueue, resubmit as resubmit_held,
};
use servicebus_control_api::{
    ActOnMessages, ActedOn, AmqpMessage, FailedMessage, Resubmit, SentMessages,
};
use tokio::task::yield_now;

use super::amqp::{self, MessageProblem};
use super::one;
use super::search::{self, Criteria, SearchPosition};
use crate::http::Control;
use crate::http::counts::{EntityQuery, find};
use crate::http::error::{ApiError, Body, Object, QueryParams, SelectedNamespace, json};
use crate::namespace::{Ids, Namespace, SharedEntity};

/// Maximum number of messages that one request changes.
const LIMIT: usize = 1000;
/// Messages that are changed before other tasks get their turn.
const AT_ONCE: usize = 32;

/// Sends one message, or several, of which all or none are accepted. Each may have the size that its entity takes: they are not
/// a batch of a client, whose sum is limited.
pub(crate) async fn send(
    State(control): State<Control>,
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(EntityQuery { entity: address }): QueryParams<EntityQuery>,
    request: Request,
) -> Result<(StatusCode, Json<SentMessages>), ApiError> {
    let entity = target(&namespace, "entity", &address)?;
    let sent = json(request, &control).await?;
    let (sent, are_several) = if let Value::Array(sent) = sent {
        (sent, true)
    } else {
        (vec![sent], false)
    };
    if !(1..=LIMIT).contains(&sent.len()) {
        let allowed = format!("from 1 to {LIMIT} messages");
        return Err(ApiError::not_allowed("body", sent.len(), allowed));
    }
    let mut ids = fresh_ids(&control);
    let mut messages = Vec::with_capacity(sent.len());
    for (index, sent) in sent.into_iter().enumerate() {
        let place = match are_several {
            true => format!("messages[{index}]: "),
            false => String::new(),
        };
        let json = serde_json::from_value::<Object<AmqpMessage>>(sent).map_err(|error| {
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            ApiError::new(status, "invalid-body", format!("{place}{error}"))
        })?;
        let read = message(&json.0, &mut ids);
        messages.push(read.map_err(|error| not_a_message(place + &error))?);
    }
    let sent = namespace.operate_as_inspector(&entity, |entity, cx| {
        let most = entity.max_message_size();
        let fits = messages.iter().all(|message| message.size() <= most);
        fits.then(|| entity.send_batch(cx, messages)).ok_or(most)
    });
    let numbers = sent
        .map_err(|most| {
            let text =
                format!("a message has more than {most} bytes, the most that the entity takes");
            refused(&text)
        })?
        .map_err(|error| refused(&error.to_string()))?;
    let sequence_numbers = numbers.into_iter().map(|number| number.map(|n| n.0));
    let sequence_numbers = sequence_numbers.collect();
    Ok((StatusCode::CREATED, Json(SentMessages { sequence_numbers })))
}

/// Resubmits messages, each completely or not at all.
pub(crate) async fn resubmit(
    State(control): State<Control>,
    SelectedNamespace(namespace): SelectedNamespace,
    Body(wanted): Body<Resubmit>,
) -> Result<Json<ActedOn>, ApiError> {
    let (source, kind) = find(&namespace, &wanted.entity)?;
    let to = match (&wanted.to, kind) {
        (Some(to), _) => target(&namespace, "to", to)?,
        (None, SubQueue::DeadLetter | SubQueue::TransferDeadLetter) => Arc::clone(&source),
        (None, SubQueue::Active) => {
            let allowed = "the address where they go, as their entity is not a dead-letter queue";
            return Err(ApiError::not_allowed("to", Value::Null, allowed));
        }
    };
    let place = (&*source, kind);
    let selection = (wanted.numbers, wanted.filter, wanted.from);
    let (numbers, next) = selected(&namespace, place, selection).await?;
    let mut ids = fresh_ids(&control);
    let change = Change {
        edit: wanted.edit,
        keeps_original: wanted.keep_original,
        new_message_id: wanted.new_message_id,
    };
    let mut acted = acted_on(next);
    for (index, number) in numbers.into_iter().enumerate() {
        let sent = change.carry_out(&namespace, (&source, kind, number), &to, &mut ids);
        note(&mut acted, number, sent);
        if index % AT_ONCE == AT_ONCE - 1 {
            yield_now().await;
        }
    }
    Ok(Json(acted))
}

/// Deletes or dead-letters messages, ends their locks or activates them.
pub(crate) async fn act(
    SelectedNamespace(namespace): SelectedNamespace,
    Body(wanted): Body<ActOnMessages>,
) -> Result<Json<ActedOn>, ApiError> {
    let (entity, kind) = find(&namespace, &wanted.entity)?;
    let act = match wanted.act.as_str() {
        "delete" => MessageAction::Delete,
        "dead-letter" => MessageAction::DeadLetter {
            reason: wanted.reason,
            description: wanted.description,
        },
        "lose-lock" => MessageAction::LoseLock,
        "activate" => MessageAction::Activate,
        other => {
            let allowed = "delete, dead-letter, lose-lock or activate";
            return Err(ApiError::not_allowed("act", other, allowed));
        }
    };
    let place = (&*entity, kind);
    let selection = (wanted.numbers, wanted.filter, wanted.from);
    let (numbers, next) = selected(&namespace, place, selection).await?;
    let mut acted = acted_on(next);
    for (index, number) in numbers.into_iter().enumerate() {
        let done = namespace.operate_as_inspector(&entity, |entity, cx| {
            entity.apply_action(cx, kind, number, &act)
        });
        note(&mut acted, number, done.map_err(|error| error.to_string()));
        if index % AT_ONCE == AT_ONCE - 1 {
            yield_now().await;
        }
    }
    Ok(Json(acted))
}

/// How messages are resubmitted.
struct Change {
    edit: Option<Value>,
    keeps_original: bool,
    new_message_id: bool,
}

impl Change {
    fn carry_out(
        &self,
        namespace: &Namespace,
        (source, kind, number): (&Arc<SharedEntity>, SubQueue, SequenceNumber),
        to: &Arc<SharedEntity>,
        ids: &mut Ids,
    ) -> Result<(), String> {
        let found = one(namespace, source, kind, number);
        let found = found.map_err(|_| format!("there is no message {}", number.0))?;
        let message = self.changed(&found.message, ids)?;
        let check_size = |entity: &Entity| match entity.max_message_size() {
            most if message.size() > most => Err(format!(
                "it has {} bytes; '{}' takes at most {most}",
                message.size(),
                entity.path()
            )),
            _ => Ok(()),
        };
        namespace.read(to, check_size)?;
        if self.keeps_original {
            let sent = namespace.operate_as_inspector(to, |entity, cx| entity.send(cx, message));
            let sent = sent.map_err(|error: SendError| error.to_string())?;
            return sent
                .map(drop)
                .ok_or_else(|| ResubmitError::Duplicate.to_string());
        }
        let mut entities = vec![Arc::clone(source), Arc::clone(to)];
        entities.sort_by_key(|entity| entity.id);
        entities.dedup_by_key(|entity| entity.id);
        let index = |entity: &SharedEntity| usize::from(entity.id != entities[0].id);
        let held = MessageLocation {
            entity: index(source),
            kind,
            number,
        };
        let target = index(to);
        let sent = namespace.operate_together_as_inspector(&entities, |entities, cx| {
            resubmit_held(entities, held, target, message, cx)
        });
        sent.map(drop).map_err(|error| error.to_string())
    }

    fn changed(&self, found: &Message, ids: &mut Ids) -> Result<Message, MessageProblem> {
        let mut encoded = Vec::with_capacity(found.size() as usize);
        found.encode_as_sent(&mut encoded);
        if self.edit.is_none() && !self.new_message_id {
            let message = Message::parse(encoded.into(), ids);
            return message.map_err(|error| error.to_string());
        }
        let mut json = amqp::editable(encoded).map_err(|error| error.to_string())?;
        if let Some(edit) = &self.edit {
            amqp::edit(&mut json, edit)?;
        }
        if self.new_message_id
            && let Some(Value::Object(properties)) = &mut json.properties
        {
            properties.remove("message_id");
        }
        message(&json, ids)
    }
}

fn message(json: &AmqpMessage, ids: &mut Ids) -> Result<Message, MessageProblem> {
    let encoded = amqp::encode(json)?;
    Message::parse(encoded.into(), ids).map_err(|error| error.to_string())
}

/// The result of an action that was tried on no message yet.
fn acted_on(next: Option<SequenceNumber>) -> ActedOn {
    ActedOn {
        more: next.is_some(),
        next: next.map(|number| number.0),
        ..ActedOn::default()
    }
}

/// Returns the sequence numbers of a request, and where to continue if there may be more.
async fn selected(
    namespace: &Namespace,
    (entity, kind): (&SharedEntity, SubQueue),
    selection: (Option<Vec<u64>>, Option<String>, Option<u64>),
) -> Result<(Vec<SequenceNumber>, Option<SequenceNumber>), ApiError> {
    let (filter, from) = match selection {
        (Some(numbers), None, None) if numbers.len() <= LIMIT => {
            return Ok((numbers.into_iter().map(SequenceNumber).collect(), None));
        }
        (None, Some(filter), from) => (filter, from.unwrap_or_default()),
        (numbers, ..) => {
            let allowed =
                format!("up to {LIMIT} numbers, or a filter as `where`, with or without `from`");
            return Err(ApiError::not_allowed(
                "numbers",
                numbers.map(|numbers| numbers.len()),
                allowed,
            ));
        }
    };
    let criteria = Criteria::new(None, None, Some(&filter), None)?;
    let place = SearchPosition {
        from: SequenceNumber(from),
        newest_first: false,
    };
    let number = |found: &InspectedMessage| found.broker_properties.sequence_number;
    Ok(search::scan(namespace, entity, kind, place, &criteria, LIMIT, &number).await)
}

/// Returns an entity to which messages can be sent: no dead-letter queue.
fn target(
    namespace: &Namespace,
    field: &str,
    address: &str,
) -> Result<Arc<SharedEntity>, ApiError> {
    let (entity, kind) = find(namespace, address)?;
    match kind {
        SubQueue::Active => Ok(entity),
        SubQueue::DeadLetter | SubQueue::TransferDeadLetter => {
            let allowed = "a queue, a topic or a subscription";
            Err(ApiError::not_allowed(field, address, allowed))
        }
    }
}

fn fresh_ids(control: &Control) -> Ids {
    let shared = &control.shared;
    Ids::new(shared.options.seed, shared.next_connection().0)
}

fn note(acted: &mut ActedOn, number: SequenceNumber, done: Result<(), String>) {
    let sequence_number = number.0;
    match done {
        Ok(()) => acted.done.push(sequence_number),
        Err(message) => acted.failed.push(FailedMessage {
            sequence_number,
            message,
        }),
    }
}

fn not_a_message(error: MessageProblem) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid-argument", error)
}

fn refused(text: &str) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "refused", text)
}

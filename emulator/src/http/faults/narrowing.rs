//! What an operation must have beside its kind, as a test asks for it.

use serde::Deserialize;
use serde_json::Value;

use super::{Asked, invalid};
use crate::faults::{Narrowing, Operation};
use crate::http::error::ApiError;

/// A key, what was asked for, and which operations have it.
type Part<'a> = (&'a str, Option<Value>, fn(Operation) -> bool);

/// Reads it, and refuses what operations of this kind do not have.
pub(super) fn read(operation: Operation, asked: &mut Asked) -> Result<Narrowing, ApiError> {
    let narrowing = Narrowing {
        entity: asked.entity.take(),
        name: asked.name.take(),
        client: asked.client.take(),
        message_id: asked.message_id.take(),
        session_id: asked.session_id.take(),
        property: asked.property.take().map(property).transpose()?,
    };
    let of_messages = Operation::is_about_messages;
    let Narrowing {
        entity,
        name,
        client,
        message_id,
        session_id,
        property,
    } = &narrowing;
    let text = |text: &Option<String>| text.clone().map(Value::from);
    let named = property
        .as_ref()
        .map(|(name, _)| Value::from(name.as_str()));
    let has_entity: fn(Operation) -> bool = |operation| operation != Operation::Connect;
    let has_client: fn(Operation) -> bool = |operation| operation != Operation::Http;
    let parts: [Part<'_>; 6] = [
        ("entity", text(entity), has_entity),
        ("name", text(name), Operation::has_names),
        ("client", text(client), has_client),
        ("message_id", text(message_id), of_messages),
        ("session_id", text(session_id), of_messages),
        ("property", named, of_messages),
    ];
    for (path, value, has) in parts {
        if let Some(value) = value
            && !has(operation)
        {
            return Err(senseless(path, &value, has));
        }
    }
    Ok(narrowing)
}

/// A refusal that lists the operations which have such a thing.
fn senseless(path: &str, value: &Value, has: fn(Operation) -> bool) -> ApiError {
    let having = Operation::ALL
        .into_iter()
        .filter(|operation| has(*operation));
    let having: Vec<&str> = having.map(Operation::name).collect();
    let allowed = format!("only with the operations {}", having.join(", "));
    invalid(path, value, &[&allowed])
}

fn property(value: Value) -> Result<(String, Value), ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Property {
        name: String,
        value: Value,
    }
    let read = Property::deserialize(&value).ok();
    let is_simple = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    let read = read.filter(|property| is_simple(&property.value));
    let Property { name, value } = read.ok_or_else(|| {
        let allowed = "an object with 'name' and 'value', a string, number or boolean";
        invalid("property", &value, &[allowed])
    })?;
    Ok((name, value))
}

//! Scripted faults: set, looked at with how often they were met, and taken out.

use std::collections::HashMap;

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::Body;
use super::error::{ApiError, Problem};
use super::namespaces::Chosen;
use crate::faults::{Effect, Fault, Faults, Operation, Scripted};

/// What a test asks for. The names are read here, so that a refusal can tell those that are known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    operation: String,
    entity: Option<String>,
    nth: Option<Value>,
    /// A name; those that need particulars will be objects with one key.
    effect: Value,
}

/// All faults, in the order in which they were set.
pub(super) async fn list(Chosen(namespace): Chosen) -> Json<Value> {
    Json(json!({ "faults": namespace.faults.all() }))
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    Path(names): Path<HashMap<String, String>>,
) -> Result<Json<Scripted>, ApiError> {
    let id = names.get("id").map_or("", String::as_str);
    let all = namespace.faults.all();
    let found = all.iter().find(|scripted| scripted.id.to_string() == id);
    found
        .cloned()
        .map(Json)
        .ok_or_else(|| unknown(&namespace.faults, id))
}

/// Sets a fault; the answer has its id.
pub(super) async fn add(
    Chosen(namespace): Chosen,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Scripted>), ApiError> {
    let fault = Fault {
        operation: operation(&asked.operation)?,
        entity: asked.entity,
        nth: nth(asked.nth)?,
        effect: effect(&asked.effect)?,
    };
    Ok((StatusCode::CREATED, Json(namespace.faults.add(fault))))
}

pub(super) async fn remove(
    Chosen(namespace): Chosen,
    Path(names): Path<HashMap<String, String>>,
) -> Result<StatusCode, ApiError> {
    let id = names.get("id").map_or("", String::as_str);
    let removed = id.parse().is_ok_and(|id| namespace.faults.remove(id));
    match removed {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown(&namespace.faults, id)),
    }
}

pub(super) async fn remove_all(Chosen(namespace): Chosen) -> StatusCode {
    namespace.faults.clear();
    StatusCode::NO_CONTENT
}

fn operation(name: &str) -> Result<Operation, ApiError> {
    let known = Operation::ALL;
    let found = known.into_iter().find(|known| known.name() == name);
    found.ok_or_else(|| invalid("operation", &name.into(), &known.map(Operation::name)))
}

fn effect(value: &Value) -> Result<Effect, ApiError> {
    let known = Effect::ALL;
    let found = known.into_iter().find(|known| *value == known.name());
    found.ok_or_else(|| invalid("effect", value, &known.map(Effect::name)))
}

/// The first, unless told otherwise.
fn nth(value: Option<Value>) -> Result<u64, ApiError> {
    let value = value.unwrap_or_else(|| 1.into());
    let nth = value.as_u64().filter(|nth| *nth > 0);
    nth.ok_or_else(|| invalid("nth", &value, &["a whole number from 1"]))
}

fn invalid(path: &str, value: &Value, allowed: &[&str]) -> ApiError {
    ApiError::invalid(Problem {
        path: path.into(),
        value: value.clone(),
        allowed: allowed.join(", "),
    })
}

fn unknown(faults: &Faults, id: &str) -> ApiError {
    let known: Vec<String> = faults
        .all()
        .iter()
        .map(|scripted| scripted.id.to_string())
        .collect();
    ApiError::unknown("fault", id, known.iter().map(String::as_str))
}

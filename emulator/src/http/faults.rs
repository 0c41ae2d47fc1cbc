//! Scripted faults: set, looked at with how often they were met, and taken out.

mod effect;
mod narrowing;

use std::collections::HashMap;

use axum::Json;
use axum::extract::Path;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body::Body;
use super::error::{ApiError, Problem};
use super::namespaces::Chosen;
use crate::faults::{Effect, Fault, Faults, Kind, MAX, Operation, Pick, Scripted};

/// What a test asks for. The names are read here, so that a refusal can tell those that are known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    operation: String,
    entity: Option<String>,
    name: Option<String>,
    client: Option<String>,
    message_id: Option<String>,
    session_id: Option<String>,
    property: Option<Value>,
    nth: Option<Value>,
    every: Option<Value>,
    times: Option<Value>,
    random: Option<Value>,
    effect: Option<Value>,
    effects: Option<Vec<Value>>,
}

/// All faults, in the order in which they were set.
pub(super) async fn list(Chosen(namespace): Chosen) -> Json<Value> {
    let faults = namespace.faults.all();
    let faults: Vec<Value> = faults.iter().map(Scripted::to_json).collect();
    Json(json!({ "faults": faults }))
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    Path(names): Path<HashMap<String, String>>,
) -> Result<Json<Value>, ApiError> {
    let id = names.get("id").map_or("", String::as_str);
    let all = namespace.faults.all();
    let found = all.iter().find(|scripted| scripted.id.to_string() == id);
    found
        .map(|scripted| Json(scripted.to_json()))
        .ok_or_else(|| unknown(&namespace.faults, id))
}

/// Sets a fault; the answer has its id.
pub(super) async fn add(
    Chosen(namespace): Chosen,
    Body(asked): Body<Asked>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let fault = read(asked)?;
    let added = namespace.faults.add(fault).ok_or_else(|| {
        let message = format!("there are {MAX} faults already, as many as there may be");
        ApiError::new(StatusCode::CONFLICT, "too-many", message)
    })?;
    Ok((StatusCode::CREATED, Json(added.to_json())))
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

/// Everything is locked no longer and every link goes, as when the service is updated.
pub(super) async fn update_service(Chosen(namespace): Chosen) -> StatusCode {
    namespace.update_service();
    StatusCode::NO_CONTENT
}

fn read(mut asked: Asked) -> Result<Fault, ApiError> {
    let operation = operation(&asked.operation)?;
    let narrowing = narrowing::read(operation, &mut asked)?;
    let pick = pick(&asked)?;
    let effects = effects(operation, &asked, &pick)?;
    Ok(Fault {
        operation,
        narrowing,
        pick,
        effects,
    })
}

fn operation(name: &str) -> Result<Operation, ApiError> {
    let known = Operation::ALL;
    let found = known.into_iter().find(|known| known.name() == name);
    found.ok_or_else(|| invalid("operation", &name.into(), &known.map(Operation::name)))
}

/// One, or with chance several.
fn effects(operation: Operation, asked: &Asked, pick: &Pick) -> Result<Vec<Effect>, ApiError> {
    match (pick, &asked.effect, &asked.effects) {
        (_, Some(effect), None) => Ok(vec![effect::read(operation, "effect", effect)?]),
        (Pick::Random { .. }, None, Some(effects)) if !effects.is_empty() => {
            let effects = effects.iter();
            let read = effects.map(|value| effect::read(operation, "effects", value));
            read.collect()
        }
        (Pick::Random { .. }, _, _) => Err(invalid(
            "effects",
            &asked.effects.clone().into(),
            &["'effect' alone, or 'effects' alone with at least one"],
        )),
        (Pick::Counted { .. }, _, Some(effects)) => Err(invalid(
            "effects",
            &effects.clone().into(),
            &["several only with 'random'; otherwise one in 'effect'"],
        )),
        (Pick::Counted { .. }, None, None) => {
            let names: Vec<_> = operation.effects().map(Kind::name).collect();
            Err(invalid("effect", &Value::Null, &names))
        }
    }
}

/// The first, unless told otherwise; from there on every so many, so many times.
fn pick(asked: &Asked) -> Result<Pick, ApiError> {
    if let Some(random) = &asked.random {
        let counts = [
            ("nth", &asked.nth),
            ("every", &asked.every),
            ("times", &asked.times),
        ];
        if let Some((path, Some(value))) = counts.into_iter().find(|(_, value)| value.is_some()) {
            return Err(invalid(path, value, &["nothing beside 'random'"]));
        }
        return chance(random);
    }
    let every = whole("every", asked.every.as_ref())?;
    let nth = whole("nth", asked.nth.as_ref())?.or(every).unwrap_or(1);
    let once = every.is_none().then_some(1);
    Ok(Pick::Counted {
        nth,
        every: every.unwrap_or(1),
        times: whole("times", asked.times.as_ref())?.or(once),
    })
}

fn chance(random: &Value) -> Result<Pick, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Chance {
        seed: u64,
        probability: f64,
    }
    let read = Chance::deserialize(random).ok();
    let read = read.filter(|chance| chance.probability > 0.0 && chance.probability <= 1.0);
    let Chance { seed, probability } = read.ok_or_else(|| {
        let allowed = "an object with 'seed', a whole number from 0, and 'probability', above 0 and at most 1";
        invalid("random", random, &[allowed])
    })?;
    Ok(Pick::Random { seed, probability })
}

fn whole(path: &str, value: Option<&Value>) -> Result<Option<u64>, ApiError> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let number = value.as_u64().filter(|number| *number > 0);
    let number = number.ok_or_else(|| invalid(path, value, &["a whole number from 1"]))?;
    Ok(Some(number))
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

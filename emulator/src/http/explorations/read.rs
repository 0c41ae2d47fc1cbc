//! Parses the request for an exploration: omitted values have defaults, and every value has a range.

use std::fmt::Display;
use std::time::Duration;

use axum::http::StatusCode;
use serde_json::Value;
use servicebus_control_api::{ExplorationRequest, Problem};
use servicebus_explore::{Effect, Options, Settings, Token, TokenError};

use super::run;
use crate::auth::WELL_KNOWN_KEY_NAME;
use crate::http::Control;
use crate::http::error::ApiError;
use crate::http::topology::expand;

const MAX_PARTIES: usize = 32;
const MAX_NAME: usize = 64;
const MAX_RUNS: u64 = 10_000;
const MAX_SECONDS: f64 = 3600.0;
/// Maximum number of operations with faults.
const MAX_OPERATIONS: usize = 1000;

/// The parameters of an exploration.
pub(crate) struct QueryParams {
    pub(crate) settings: Settings,
    pub(crate) topology: String,
    pub(crate) parties: Vec<String>,
    pub(crate) keep: Duration,
}

pub(crate) async fn request(
    control: &Control,
    request: ExplorationRequest,
) -> Result<QueryParams, ApiError> {
    check_parties(&request.parties)?;
    let topology = expand(match request.topology {
        None => String::new(),
        // A file may have comments.
        Some(Value::String(text)) => text,
        Some(declared) => declared.to_string(),
    })?;
    run::check_topology(control, topology.clone()).await?;
    let effects = match &request.effects {
        Some(names) => effects(names)?,
        // The party's code continues: the emulator cannot end the process in which a client runs it.
        None => Effect::ALL
            .iter()
            .copied()
            .filter(|effect| !effect.is_crash())
            .collect(),
    };
    Ok(QueryParams {
        settings: Settings {
            runs: number("runs", request.runs, 500, 1..=MAX_RUNS)? as u32,
            within: seconds("within", request.within, 30.0)?,
            faults: number("faults", request.faults, 1, 1..=2)? as usize,
            token: request.token.as_deref().map(token).transpose()?,
            always: Vec::new(),
            expected: Vec::new(),
            shuffled: 0,
            is_strict: false,
            operations: MAX_OPERATIONS,
            is_statistical: true,
            options: Options {
                effects,
                only: request.only,
                except: request.except,
            },
            name: match request.name.is_empty() {
                true => "exploration".to_owned(),
                false => request.name,
            },
        },
        keep: seconds("keep", request.keep, 600.0)?,
        topology,
        parties: request.parties,
    })
}

fn check_parties(parties: &[String]) -> Result<(), ApiError> {
    if !(1..=MAX_PARTIES).contains(&parties.len()) {
        let allowed = format!("1 to {MAX_PARTIES} names");
        return Err(ApiError::not_allowed("parties", parties.len(), allowed));
    }
    for (index, party) in parties.iter().enumerate() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=MAX_NAME).contains(&party.len())
            && party.chars().all(is_plain)
            // Its key would be that of the test itself, to which no faults apply.
            && party != WELL_KNOWN_KEY_NAME;
        if !is_name || parties[..index].contains(party) {
            let path = format!("parties[{index}]");
            let allowed = format!(
                "1 to {MAX_NAME} letters, digits, '-', '_' and '.', which no other party has and which are not {WELL_KNOWN_KEY_NAME}"
            );
            return Err(ApiError::not_allowed(&path, party.as_str(), allowed));
        }
    }
    Ok(())
}

fn effects(names: &[String]) -> Result<Vec<Effect>, ApiError> {
    let read = names.iter().enumerate().map(|(index, name)| {
        Effect::named(name).ok_or_else(|| {
            let known = Effect::ALL.iter().map(|effect| effect.name());
            let allowed = Vec::from_iter(known).join(", ");
            ApiError::not_allowed(&format!("effects[{index}]"), name.as_str(), allowed)
        })
    });
    read.collect()
}

fn token(text: &str) -> Result<Token, ApiError> {
    text.parse().map_err(|error: TokenError| {
        let problem = Problem::new(
            "token",
            text,
            "a token as a report shows it, which begins with x1:",
        );
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "invalid-argument",
            error.to_string(),
        )
        .with_problems(vec![problem])
    })
}

fn number(
    path: &str,
    requested: Option<u64>,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, ApiError> {
    let number = requested.unwrap_or(default);
    match range.contains(&number) {
        true => Ok(number),
        false => Err(out_of_range(path, number, range.start(), range.end())),
    }
}

fn seconds(path: &str, requested: Option<f64>, default: f64) -> Result<Duration, ApiError> {
    let seconds = requested.unwrap_or(default);
    match seconds > 0.0 && seconds <= MAX_SECONDS {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(out_of_range(path, seconds, "above 0", MAX_SECONDS)),
    }
}

fn out_of_range(
    path: &str,
    value: impl Into<Value>,
    least: impl Display,
    most: impl Display,
) -> ApiError {
    ApiError::not_allowed(path, value, format!("{least} to {most}"))
}

//! Explorations over the control API: a test in any language runs again and again, each time with something else going
//! wrong at one operation of its first run.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Begins an exploration. What is left out has a default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ExplorationRequest {
    /// What the test is called.
    pub name: String,
    /// What the namespace of each run holds: a configuration of one namespace, as an object or a text; nothing unless set.
    pub topology: Option<Value>,
    /// The names of those whose operations are explored; each has a key of its own. The test itself uses the namespace's.
    pub parties: Vec<String>,
    /// Most runs; 500 unless set.
    pub runs: Option<u64>,
    /// Most seconds from the first run; 30 unless set.
    pub within: Option<f64>,
    /// Seconds after which it is removed when nothing is asked of it; 600 unless set.
    pub keep: Option<f64>,
    /// How many faults a run may have, 1 or 2; 1 unless set.
    pub faults: Option<u64>,
    /// The names of the effects that are tried; unless set all but `crash-before` and `crash-after`, with which the connections
    /// of a party end and its code goes on.
    pub effects: Option<Vec<String>>,
    /// Parts of keys: faults are applied only to operations with one of them in theirs.
    pub only: Vec<String>,
    /// Parts of keys: no fault is applied to operations with one of them in theirs.
    pub except: Vec<String>,
    /// In place of all that is planned: the faults of this token alone.
    pub token: Option<String>,
}

/// An exploration that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct StartedExploration {
    /// By which it is asked for.
    pub id: String,
}

/// The next run of an exploration: its namespace is there, with the faults already set and the log switched on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ExplorationRun {
    /// Its number, counted from 1.
    pub number: u64,
    /// The faults of the run; null where it has none.
    pub token: Option<String>,
    /// The name of its namespace, which is there until the result of the run is told.
    pub namespace: String,
    /// The connection string of the test itself, to whose operations no fault is applied.
    pub connection_string: String,
    /// The same over TLS.
    #[serde(default)]
    pub tls_connection_string: String,
    /// The connection string of each party.
    pub parties: BTreeMap<String, String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunResult {
    /// Whether the test's assertions held.
    pub passed: bool,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where: file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// What an exploration has found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ExplorationReport {
    /// By which it is asked for.
    pub id: String,
    /// Whether there are no more runs.
    pub done: bool,
    /// How exactly a token repeats its run: always `statistical`, because the order of events is that of real time.
    pub replay: String,
    /// The report for people.
    pub text: String,
    /// The report for programs.
    pub report: Value,
}

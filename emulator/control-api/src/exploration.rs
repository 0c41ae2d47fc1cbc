//! Explorations over the control API: a test in any language runs repeatedly, each time with another fault at one operation
//! of its first run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Begins an exploration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplorationRequest {
    /// The name of the test.
    pub name: String,
    /// The topology of each run's namespace: a configuration of one namespace, as an object or a text; empty unless set.
    pub topology: Option<Value>,
    /// The names of the parties whose operations are explored; each has a key of its own. The test itself uses the
    /// namespace's.
    pub parties: Vec<String>,
    /// The maximum number of runs; 500 unless set.
    pub runs: Option<u64>,
    /// The time limit from the first run, in seconds; 30 unless set.
    pub within: Option<f64>,
    /// The number of seconds without requests after which it is removed; 600 unless set.
    pub keep: Option<f64>,
    /// The maximum number of faults in a run, 1 or 2; 1 unless set.
    pub faults: Option<u64>,
    /// The names of the effects to try; unless set all but `crash-before` and `crash-after`, which end the connections of a
    /// party but not its code.
    pub effects: Option<Vec<String>>,
    /// Parts of keys: faults apply only to operations whose keys contain one of them.
    pub only: Vec<String>,
    /// Parts of keys: no fault applies to operations whose keys contain one of them.
    pub except: Vec<String>,
    /// Runs only the faults of this token, instead of all that is planned.
    pub token: Option<String>,
}

/// A started exploration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartedExploration {
    /// The id, for further requests.
    pub id: String,
}

/// The next run of an exploration. Its namespace exists, with its faults set and its operation log on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplorationRun {
    /// Its number, counted from 1.
    pub number: u64,
    /// The faults of the run; null without faults.
    pub token: Option<String>,
    /// The name of its namespace, which exists until the client reports the result of the run.
    pub namespace: String,
    /// The connection string of the test itself, whose operations get no faults.
    pub connection_string: String,
    /// The same over TLS.
    #[serde(default)]
    pub tls_connection_string: String,
    /// The connection string of each party.
    pub parties: BTreeMap<String, String>,
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// Whether the test's assertions held.
    pub passed: bool,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The place of the failure: file and line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// The report of an exploration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplorationReport {
    /// The id, for further requests.
    pub id: String,
    /// Whether there are no more runs.
    pub done: bool,
    /// Whether the test has failed: in a run, or because the exploration proves nothing, in which case there may be no
    /// findings; `text` has the reason.
    pub failed: bool,
    /// How exactly a token repeats its run: always `statistical`, because events are ordered by real time.
    pub replay: String,
    /// The report for people.
    pub text: String,
    /// The report for programs.
    pub report: Value,
}

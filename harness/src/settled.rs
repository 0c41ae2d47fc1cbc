//! Waiting until a bus is at rest.

use std::time::Duration;

use serde_json::json;

use crate::{
    control::{ControlError, Refusal},
    doors::Doors,
    text,
};

/// The status by which the emulator says that the time was not enough.
const NOT_IN_TIME: u16 = 408;

/// Why a bus was not found at rest.
#[derive(Debug, thiserror::Error)]
pub enum SettledError {
    /// It did not come to rest in time.
    #[error("the bus did not come to rest within {}{}", text::seconds(*within), listed(&what.problems))]
    Restless {
        /// How long was waited.
        within: Duration,
        /// What is not at rest.
        what: Refusal,
    },
    /// It could not be asked.
    #[error("cannot wait for rest: {0}")]
    Control(#[from] ControlError),
}

fn listed(problems: &[String]) -> String {
    let lines = problems.iter().map(|problem| format!("\n  {problem}"));
    String::from_iter(lines)
}

/// Waits for rest, up to a deadline in real time.
pub(crate) async fn wait(doors: &Doors, within: Duration) -> Result<(), SettledError> {
    let body = json!({ "within": within.as_secs_f64(), "entity": null });
    match doors.control.order("settled", &body, within).await {
        Ok(()) => Ok(()),
        Err(ControlError::Refused(what)) if what.status == NOT_IN_TIME => {
            Err(SettledError::Restless { within, what })
        }
        Err(error) => Err(error.into()),
    }
}

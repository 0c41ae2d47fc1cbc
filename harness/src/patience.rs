//! How long a test waits, in real time, for what it expects.

use std::{env, time::Duration};

use crate::start_error::StartError;

/// The environment variable that says for how many seconds assertions, receives and waits for an idle namespace wait at
/// most, where the builder does not say it.
pub const WITHIN_VARIABLE: &str = "SERVICEBUS_HARNESS_WITHIN";

/// How long that is where nothing says otherwise.
pub(crate) const WITHIN: Duration = Duration::from_secs(5);

/// What the builder says, else the environment, else five seconds.
pub(crate) fn within(built: Option<Duration>) -> Result<Duration, StartError> {
    match (built, env::var(WITHIN_VARIABLE)) {
        (Some(built), _) => Ok(built),
        (None, Ok(value)) => parsed(&value).ok_or(StartError::Within { value }),
        (None, Err(_)) => Ok(WITHIN),
    }
}

fn parsed(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_as_people_write_them() {
        assert_eq!(parsed(" 20 "), Some(Duration::from_secs(20)));
        assert_eq!(parsed("0.5"), Some(Duration::from_millis(500)));
        for wrong in ["", "-1", "20 s", "NaN"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}

//! RFC 3339 instants of the control API, as the standard library's.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<SystemTime, D::Error> {
    parse(&String::deserialize(deserializer)?)
}

/// Reads an instant that stands within a text.
pub(super) fn parsed(text: &str) -> Option<SystemTime> {
    text.parse::<Timestamp>().ok().map(SystemTime::from)
}

fn parse<E: serde::de::Error>(text: &str) -> Result<SystemTime, E> {
    text.parse::<Timestamp>()
        .map(SystemTime::from)
        .map_err(E::custom)
}

/// The same where the instant may be null.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, SystemTime, parse};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        text.map(|text| parse(&text)).transpose()
    }
}

//! Instants as RFC 3339 in UTC, durations as seconds, bytes in base64.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer, de::Error as _};

/// Formats an instant. The calendar ends with the year 9999; later instants are shown as its last one.
fn instant_text(instant: SystemTime) -> String {
    Timestamp::try_from(instant)
        .unwrap_or(Timestamp::MAX)
        .to_string()
}

pub(crate) mod instant {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&instant_text(*at))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let text = String::deserialize(from)?;
        let instant = text.parse::<Timestamp>().map_err(D::Error::custom)?;
        Ok(instant.into())
    }
}

/// An instant, or null.
pub(crate) mod optional_instant {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        at: &Option<SystemTime>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        at.map(instant_text).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        let instant = text.map(|text| text.parse::<Timestamp>().map(SystemTime::from));
        instant.transpose().map_err(D::Error::custom)
    }
}

/// A duration in seconds.
pub(crate) mod seconds {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(length: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(length.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Bytes, or null.
pub(crate) mod optional_base64 {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Bytes>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let text = bytes.as_ref().map(|bytes| BASE64_STANDARD.encode(bytes));
        text.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        let bytes = text.map(|text| BASE64_STANDARD.decode(text).map(Bytes::from));
        bytes.transpose().map_err(D::Error::custom)
    }
}

// Not doc comments, which would become descriptions in the schemas.
#[cfg(feature = "schema")]
mod schema {
    use schemars::JsonSchema;

    #[derive(JsonSchema)]
    #[schemars(inline, extend("format" = "date-time"))]
    #[expect(dead_code, reason = "the schema of an instant")]
    pub(crate) struct DateTime(String);

    #[derive(JsonSchema)]
    #[schemars(inline, extend("contentEncoding" = "base64"))]
    #[expect(dead_code, reason = "the schema of bytes")]
    pub(crate) struct Base64(String);
}
#[cfg(feature = "schema")]
pub(crate) use schema::{Base64, DateTime};

//! The settings in a description, each with its type; what is not of its type is refused by name.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use servicebus_broker::{EntityKind, EntityPath, EntityStatus};

use super::super::refusal::ServiceError;
use super::super::xml::Element;
use super::elements;
use crate::config::duration::{self, FOREVER};

/// What stands for "for ever": clients lose digits of the longest span that .NET knows, none of its seconds.
const ENDLESS_SECONDS: u64 = FOREVER.as_secs();

/// A description of one kind of entity. What such an entity does not have is not seen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) element: &'a Element,
    pub(super) kind: EntityKind,
}

impl<'a> Fields<'a> {
    /// An element of the description.
    pub(super) fn part(&self, name: &str) -> Option<&'a Element> {
        let knows = elements(self.kind).contains(&name);
        self.element.part(name).filter(|_| knows)
    }

    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.part(name).map(|part| part.text.as_str())
    }

    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, ServiceError> {
        let allowed = "true or false";
        self.parsed(name, allowed, |text| match text {
            "1" => Some(true),
            "0" => Some(false),
            _ if text.eq_ignore_ascii_case("true") => Some(true),
            _ if text.eq_ignore_ascii_case("false") => Some(false),
            _ => None,
        })
    }

    /// A number; a negative one becomes 0 and one that is too large the largest: both are out of bounds everywhere.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, ServiceError> {
        self.parsed(name, "a whole number", |text| {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            is_number.then(|| match text.starts_with('-') {
                true => 0,
                false => digits.parse().unwrap_or(u64::MAX),
            })
        })
    }

    pub(super) fn duration(&self, name: &str) -> Result<Option<Duration>, ServiceError> {
        let allowed = "an ISO 8601 duration such as PT1M30S";
        self.parsed(name, allowed, |text| {
            let duration = duration::parse(text).ok()?;
            // As fine as .NET's.
            let ticks = duration.subsec_nanos() / 100;
            Some(Duration::new(duration.as_secs(), ticks * 100))
        })
    }

    /// A duration that may be "for ever".
    pub(super) fn endless(&self, name: &str) -> Result<Option<Option<Duration>>, ServiceError> {
        let ending =
            |duration: Duration| (duration.as_secs() < ENDLESS_SECONDS).then_some(duration);
        Ok(self.duration(name)?.map(ending))
    }

    pub(super) fn status(&self) -> Result<Option<EntityStatus>, ServiceError> {
        let names = EntityStatus::ALL.map(EntityStatus::name);
        let allowed = names.join(", ");
        self.parsed("Status", &allowed, |text| {
            let mut all = EntityStatus::ALL.into_iter();
            all.find(|status| status.name().eq_ignore_ascii_case(text))
        })
    }

    /// Where something goes on to: a name, or a URI of which only the path counts.
    pub(super) fn target(&self, name: &str) -> Result<Option<EntityPath>, ServiceError> {
        if self.text(name).is_none_or(|text| text.trim().is_empty()) {
            return Ok(None);
        }
        let allowed = "the name of a queue or topic, or a URI that ends in one";
        self.parsed(name, allowed, target)
    }

    fn parsed<T>(
        &self,
        name: &str,
        allowed: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ServiceError> {
        let Some(text) = self.text(name).map(str::trim) else {
            return Ok(None);
        };
        let wrong = || {
            let message =
                format!("The value of '{name}' cannot be understood; allowed: {allowed}.");
            ServiceError::parameter(message, name, text)
        };
        parse(text).map(Some).ok_or_else(wrong)
    }
}

/// The entity that a target means.
pub(super) fn target(text: &str) -> Option<EntityPath> {
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => text,
    };
    let path = percent_decode_str(path).decode_utf8().ok()?;
    path.trim_matches('/').parse().ok()
}

/// A target as it is shown: of a URI, scheme and host in lower case (observed 28), all else as it was given.
pub(super) fn target_text(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{}://{}{path}", scheme.to_lowercase(), host.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_target_scheme_and_host_are_shown_in_lower_case() {
        for (text, shown) in [
            ("SB://Host:5300/A/Q2", "sb://host:5300/A/Q2"),
            (
                "Https://NS.servicebus.windows.net",
                "https://ns.servicebus.windows.net",
            ),
            ("A/Q2", "A/Q2"),
        ] {
            assert_eq!(target_text(text), shown);
        }
    }

    #[test]
    fn a_target_is_its_path() {
        let wanted: EntityPath = "a/q2".parse().unwrap();
        for text in [
            "a/q2",
            "/a/q2/",
            "sb://localhost:5300/a/q2",
            "https://ns.servicebus.windows.net/A/Q2/",
            "http://other/a%2Fq2",
        ] {
            assert_eq!(target(text).as_ref(), Some(&wanted), "{text}");
        }
        for text in ["sb://localhost", "a b", "%ff", "t/Subscriptions/s"] {
            assert_eq!(target(text), None, "{text}");
        }
    }
}

//! What a value is compared with: exactly, unless a test says otherwise.

pub(crate) mod json;
pub(crate) mod predicate;

use std::fmt;

use predicate::Predicate;

/// An expectation about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// It is this.
    Is(String),
    /// It contains this.
    Contains(String),
    /// A predicate of the test says yes to it.
    Satisfies(Predicate<str>),
}

/// Expects a text to contain another: `description = contains("total")`.
pub fn contains(part: impl Into<String>) -> Text {
    Text::Contains(part.into())
}

/// Expects a predicate to say yes to a text: `reason = satisfies(|reason| reason.starts_with("Max"))`.
pub fn satisfies(predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Text {
    Text::Satisfies(Predicate::new(predicate))
}

impl Text {
    /// Compares; a text that is not there matches nothing.
    pub fn matches(&self, found: Option<&str>) -> bool {
        match self {
            Self::Is(text) => found == Some(text),
            Self::Contains(part) => found.is_some_and(|found| found.contains(part)),
            Self::Satisfies(predicate) => found.is_some_and(|found| predicate.is_true_of(found)),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => write!(f, "{text:?}"),
            Self::Contains(part) => write!(f, "containing {part:?}"),
            Self::Satisfies(_) => f.write_str("that satisfies the test's predicate"),
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Is(text.to_owned())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Is(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_unless_told_otherwise() {
        assert!(Text::from("Rejected").matches(Some("Rejected")));
        assert!(!Text::from("Reject").matches(Some("Rejected")));
        assert!(contains("ject").matches(Some("Rejected")));
        assert!(!contains("ject").matches(None));
    }

    #[test]
    fn a_predicate_is_asked_about_what_is_there() {
        let short = satisfies(|text| text.len() < 4);
        assert!(short.matches(Some("yes")));
        assert!(!short.matches(Some("maybe")));
        assert!(!short.matches(None));
        assert_eq!(short, short.clone());
        assert_ne!(short, satisfies(|text| text.len() < 4));
    }
}

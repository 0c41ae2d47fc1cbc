//! Expectations about texts: exact unless a test says otherwise.

pub(crate) mod json;

use std::{fmt, sync::Arc};

/// An expectation about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// The text is equal.
    Is(String),
    /// The text contains this.
    Contains(String),
    /// The test's predicate holds for the text.
    Matches(Predicate<str>),
}

/// Expects a text to contain another: `description = contains("total")`.
pub fn contains(part: impl Into<String>) -> Text {
    Text::Contains(part.into())
}

/// Expects a predicate to hold for a text: `reason = matches(|reason| reason.starts_with("Max"))`.
pub fn matches(predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Text {
    Text::Matches(Predicate::new(predicate))
}

impl Text {
    /// Returns whether a text matches; `None` never does.
    pub fn matches(&self, found: Option<&str>) -> bool {
        match self {
            Self::Is(text) => found == Some(text),
            Self::Contains(part) => found.is_some_and(|found| found.contains(part)),
            Self::Matches(predicate) => found.is_some_and(|found| predicate.is_true_of(found)),
        }
    }
}

impl Text {
    /// Describes where a body differs: `body differs at character 12: expected "…", found "…"`.
    pub(crate) fn difference(&self, found: &str) -> String {
        const SHOWN: usize = 20;
        let Self::Is(expected) = self else {
            return format!("body is not {self}");
        };
        let pairs = expected.chars().zip(found.chars());
        let same = pairs.take_while(|(expected, found)| expected == found);
        let same = same.count();
        let from = |text: &str| {
            let shown: String = text.chars().skip(same).take(SHOWN).collect();
            let more = text.chars().count() > same + SHOWN;
            let more = if more { "…" } else { "" };
            match shown.is_empty() {
                true => "its end".to_owned(),
                false => format!("{shown:?}{more}"),
            }
        };
        format!(
            "body differs at character {}: expected {}, found {}",
            same + 1,
            from(expected),
            from(found)
        )
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => write!(f, "{text:?}"),
            Self::Contains(part) => write!(f, "containing {part:?}"),
            Self::Matches(_) => f.write_str("that matches the test's predicate"),
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

/// A predicate that can be stored and cloned; equal only to its clones.
pub struct Predicate<T: ?Sized>(Arc<dyn Fn(&T) -> bool + Send + Sync>);

impl<T: ?Sized> Predicate<T> {
    /// Wraps a predicate.
    #[doc(hidden)]
    pub fn new(predicate: impl Fn(&T) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(predicate))
    }

    /// Evaluates the predicate.
    pub fn is_true_of(&self, value: &T) -> bool {
        (self.0)(value)
    }
}

impl<T: ?Sized> Clone for Predicate<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: ?Sized> PartialEq for Predicate<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: ?Sized> Eq for Predicate<T> {}

impl<T: ?Sized> fmt::Debug for Predicate<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_matches_exactly_by_default() {
        assert!(Text::from("Rejected").matches(Some("Rejected")));
        assert!(!Text::from("Reject").matches(Some("Rejected")));
        assert!(contains("ject").matches(Some("Rejected")));
        assert!(!contains("ject").matches(None));
    }

    #[test]
    fn the_first_difference_of_bodies_is_named() {
        let cases = [
            (
                "abc",
                "abd",
                r#"body differs at character 3: expected "c", found "d""#,
            ),
            (
                "abc",
                "ab",
                r#"body differs at character 3: expected "c", found its end"#,
            ),
            (
                "",
                "ab",
                r#"body differs at character 1: expected its end, found "ab""#,
            ),
        ];
        for (expected, found, difference) in cases {
            assert_eq!(Text::from(expected).difference(found), difference);
        }
        assert_eq!(
            contains("x").difference("ab"),
            r#"body is not containing "x""#
        );
    }

    #[test]
    fn a_predicate_never_matches_a_missing_text() {
        let short = matches(|text| text.len() < 4);
        assert!(short.matches(Some("yes")));
        assert!(!short.matches(Some("maybe")));
        assert!(!short.matches(None));
        assert_eq!(short, short.clone());
        assert_ne!(short, matches(|text| text.len() < 4));
    }
}

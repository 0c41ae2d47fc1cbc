//! What a text is compared with: exactly, unless a test says otherwise.

use std::fmt;

/// An expectation about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// It is this.
    Is(String),
    /// It contains this.
    Contains(String),
}

/// Expects a text to contain another: `description = contains("total")`.
pub fn contains(part: impl Into<String>) -> Text {
    Text::Contains(part.into())
}

impl Text {
    /// Compares; a text that is not there matches nothing.
    pub fn matches(&self, found: Option<&str>) -> bool {
        match self {
            Self::Is(text) => found == Some(text),
            Self::Contains(part) => found.is_some_and(|found| found.contains(part)),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(text) => write!(f, "{text:?}"),
            Self::Contains(part) => write!(f, "containing {part:?}"),
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
}

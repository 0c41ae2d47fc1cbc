//! What a session is called.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The id of a session: up to 128 characters, compared exactly (semantics §1, §6). The empty one is a session like any
/// other (observed 14).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(Arc<str>);

impl SessionName {
    /// Longest session id, in characters.
    pub const MAX_LENGTH: usize = 128;

    /// A session id; none when it is too long.
    pub fn new(text: &str) -> Option<Self> {
        Self::fits(text).then(|| Self(text.into()))
    }

    /// Whether a text can be a session id.
    pub(crate) fn fits(text: &str) -> bool {
        // No text of so many bytes has more characters.
        let is_short = text.len() <= Self::MAX_LENGTH;
        is_short || text.chars().nth(Self::MAX_LENGTH).is_none()
    }

    /// The id as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SessionName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_has_up_to_128_characters() {
        assert_eq!(SessionName::new("").unwrap().as_str(), "");
        let longest = "ä".repeat(128);
        assert_eq!(SessionName::new(&longest).unwrap().as_str(), longest);
        assert_eq!(SessionName::new(&"a".repeat(129)), None);
    }
}

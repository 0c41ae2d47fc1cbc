//! The parts of a connection string.
//!
//! Every client logs in with one, and so does the harness: what it cannot read there, a client could not
//! either.

use std::fmt;

/// What a connection string says.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ConnectionString<'a> {
    pub(crate) host: &'a str,
    pub(crate) key_name: &'a str,
    pub(crate) key: &'a str,
}

impl<'a> ConnectionString<'a> {
    /// Reads the parts; one that is missing is empty.
    pub(crate) fn parse(text: &'a str) -> Self {
        let part = |name: &str| {
            text.split(';')
                .filter_map(|pair| pair.split_once('='))
                .find(|(key, _)| key.trim().eq_ignore_ascii_case(name))
                .map_or("", |(_, value)| value.trim())
        };
        let authority = part("Endpoint")
            .split_once("://")
            .map_or("", |(_, rest)| rest);
        Self {
            host: authority.trim_end_matches('/'),
            key_name: part("SharedAccessKeyName"),
            key: part("SharedAccessKey"),
        }
    }
}

impl fmt::Debug for ConnectionString<'_> {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionString")
            .field("host", &self.host)
            .field("key_name", &self.key_name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulators_own_string_is_understood() {
        let text = "Endpoint=sb://127.64.0.1;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=a=b=;UseDevelopmentEmulator=true;";
        let expected = ConnectionString {
            host: "127.64.0.1",
            key_name: "RootManageSharedAccessKey",
            key: "a=b=",
        };
        assert_eq!(ConnectionString::parse(text), expected);
    }
}

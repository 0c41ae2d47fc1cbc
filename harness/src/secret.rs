//! A key, or a text with one in it, which must not reach a log or a failure's text by way of `Debug`.

use std::{fmt, ops::Deref};

use serde::Deserialize;

/// Such a text. It reads as any other; only `Debug` does not tell it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(String);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<Secret> for String {
    fn from(secret: Secret) -> Self {
        secret.0
    }
}

impl Deref for Secret {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use std::str::FromStr as _;

    use servicebus_emulator::{auth::ConnectionString, config::Config};

    use super::Secret;
    use crate::{Builder, connection_string, keys::Keys};

    #[test]
    fn no_debug_text_tells_a_key() {
        let string = "Endpoint=sb://localhost;SharedAccessKeyName=n;SharedAccessKey=hunter2;";
        let mut config = Config::default();
        config.namespaces[0].keys[0].key = "hunter2".to_owned();
        let read = ConnectionString::from_str(string).unwrap();
        for rendered in [
            format!("{:?}", Secret::from(string.to_owned())),
            format!("{:?}", Builder::default().connection_string(string)),
            format!("{:?}", connection_string::ConnectionString::parse(string)),
            format!("{:?}", Keys::declare(&mut config, false)),
            format!("{config:?} {read:?}"),
        ] {
            assert!(!rendered.contains("hunter2"), "{rendered}");
        }
    }
}

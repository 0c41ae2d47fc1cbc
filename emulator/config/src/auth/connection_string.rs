//! Connection strings: `Endpoint=sb://localhost;SharedAccessKeyName=…;SharedAccessKey=…;…`.
//!
//! The parser is as lenient as the SDKs (any order, any case of keys, unknown keys ignored); the writer uses the one form
//! that all of them accept.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Key;

/// The parts of a connection string.
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectionString {
    /// The host; an IPv6 address without its brackets.
    pub host: String,
    /// The port, unless it is the default of the protocol.
    pub port: Option<u16>,
    /// The name of the shared key.
    pub key_name: Option<String>,
    /// The shared key.
    pub key: Option<String>,
    /// A token instead of a key.
    pub signature: Option<String>,
    /// The entity to which it is limited.
    pub entity_path: Option<String>,
    /// Whether the client uses an emulator, that is, connects without TLS.
    pub development_emulator: bool,
}

/// Why a text is not a connection string. Errors do not quote values, because one of them is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectionStringError {
    /// A part is not `key=value`.
    #[error("part {0} has no '='")]
    NoValue(usize),
    /// A key occurs twice.
    #[error("{0} occurs twice")]
    Twice(&'static str),
    /// A required key is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The endpoint is not `sb://host[:port]`.
    #[error("Endpoint must be sb://host or sb://host:port")]
    Endpoint,
    /// The value is not a boolean.
    #[error("UseDevelopmentEmulator must be true or false")]
    DevelopmentEmulator,
}

impl ConnectionString {
    /// Creates the connection string for clients of an emulator.
    pub fn for_emulator(host: impl Into<String>, port: Option<u16>, key: &Key) -> Self {
        Self {
            host: host.into(),
            port,
            key_name: Some(key.name.clone()),
            key: Some(key.key.clone()),
            signature: None,
            entity_path: None,
            development_emulator: true,
        }
    }
}

impl FromStr for ConnectionString {
    type Err = ConnectionStringError;

    fn from_str(text: &str) -> Result<Self, ConnectionStringError> {
        let parts = text.split(';').map(str::trim).enumerate();
        let parts = parts.filter(|(_, part)| !part.is_empty());
        let pairs = parts.map(|(index, part)| {
            let pair = part.split_once('=');
            pair.map(|(key, value)| (key.trim(), value.trim()))
                .ok_or(ConnectionStringError::NoValue(index + 1))
        });
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        let field = |name| {
            let mut named = pairs
                .iter()
                .filter(|(key, _)| key.eq_ignore_ascii_case(name));
            match (named.next(), named.next()) {
                (first, None) => Ok(first.map(|(_, value)| (*value).to_owned())),
                (_, Some(_)) => Err(ConnectionStringError::Twice(name)),
            }
        };
        let endpoint = field("Endpoint")?.ok_or(ConnectionStringError::Missing("Endpoint"))?;
        let (host, port) = read_endpoint(&endpoint).ok_or(ConnectionStringError::Endpoint)?;
        let (key_name, key) = (field("SharedAccessKeyName")?, field("SharedAccessKey")?);
        let missing = match (&key_name, &key) {
            (Some(_), None) => Some("SharedAccessKey"),
            (None, Some(_)) => Some("SharedAccessKeyName"),
            (Some(_), Some(_)) | (None, None) => None,
        };
        if let Some(missing) = missing {
            return Err(ConnectionStringError::Missing(missing));
        }
        let emulator =
            field("UseDevelopmentEmulator")?.map(|flag| flag.to_ascii_lowercase().parse());
        Ok(Self {
            host,
            port,
            key_name,
            key,
            signature: field("SharedAccessSignature")?,
            entity_path: field("EntityPath")?,
            development_emulator: emulator
                .unwrap_or(Ok(false))
                .map_err(|_| ConnectionStringError::DevelopmentEmulator)?,
        })
    }
}

impl fmt::Display for ConnectionString {
    /// The whole string with its secret. As the official documents have it, that of an emulator ends in a semicolon; that of
    /// the service does not, because older SDKs for Java and Go take one for a part of the key, or fail.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "Endpoint=sb://[{}]", self.host)?,
            false => write!(formatter, "Endpoint=sb://{}", self.host)?,
        }
        if let Some(port) = self.port {
            write!(formatter, ":{port}")?;
        }
        let parts = [
            ("SharedAccessKeyName", &self.key_name),
            ("SharedAccessKey", &self.key),
            ("SharedAccessSignature", &self.signature),
            ("EntityPath", &self.entity_path),
        ];
        for (name, value) in parts {
            if let Some(value) = value {
                write!(formatter, ";{name}={value}")?;
            }
        }
        if self.development_emulator {
            formatter.write_str(";UseDevelopmentEmulator=true;")?;
        }
        Ok(())
    }
}

impl fmt::Debug for ConnectionString {
    /// Omits the secrets, which must not be logged.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectionString")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("key_name", &self.key_name)
            .field("entity_path", &self.entity_path)
            .field("development_emulator", &self.development_emulator)
            .finish_non_exhaustive()
    }
}

fn read_endpoint(endpoint: &str) -> Option<(String, Option<u16>)> {
    let (scheme, rest) = endpoint.split_once("://")?;
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if !scheme.eq_ignore_ascii_case("sb") || authority.contains(['/', '@', '?', '#']) {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']')?;
            let port = (!rest.is_empty()).then(|| rest.strip_prefix(':'));
            (host, port.map_or(Some(None), |port| port.map(Some))?)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map(|port| port.parse().ok().filter(|&port: &u16| port > 0));
    if host.is_empty() || port == Some(None) {
        return None;
    }
    Some((host.to_owned(), port.flatten()))
}

#[cfg(test)]
mod tests {
    //! Tests of parsing and writing connection strings.

    use super::*;

    const DEFAULT: &str = "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;\
                       SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";

    #[test]
    fn the_default_connection_string_parses_to_itself() {
        let string = ConnectionString::for_emulator("localhost", None, &Key::well_known());
        assert_eq!(string.to_string(), DEFAULT);
        assert_eq!(DEFAULT.parse(), Ok(string.clone()));
        let tls = ConnectionString {
            development_emulator: false,
            ..string
        };
        assert!(tls.to_string().ends_with(";SharedAccessKey=SAS_KEY_VALUE"));
        let admin = ConnectionString::for_emulator("::1", Some(5300), &Key::well_known());
        assert!(admin.to_string().starts_with("Endpoint=sb://[::1]:5300;"));
        assert_eq!(admin.to_string().parse(), Ok(admin));
    }

    #[test]
    fn the_spellings_accepted_by_sdks_are_parsed() {
        let text = " endpoint = SB://Host:5673/ ;sharedaccesskey=a=b==;SHAREDACCESSKEYNAME=n;;EntityPath=a/b;TransportType=x";
        let string: ConnectionString = text.parse().unwrap();
        let expected = ConnectionString {
            host: "Host".into(),
            port: Some(5673),
            key_name: Some("n".into()),
            key: Some("a=b==".into()),
            signature: None,
            entity_path: Some("a/b".into()),
            development_emulator: false,
        };
        assert_eq!(string, expected);
        let signed: ConnectionString =
            "Endpoint=sb://h/;SharedAccessSignature=SharedAccessSignature sr=a&sig=b&se=1&skn=k"
                .parse()
                .unwrap();
        assert_eq!(
            signed.signature.as_deref(),
            Some("SharedAccessSignature sr=a&sig=b&se=1&skn=k")
        );
        assert!(!format!("{string:?}{signed:?}").contains("a=b"));
    }

    #[test]
    fn invalid_connection_strings_are_refused() {
        use ConnectionStringError as E;
        let table = [
            ("", E::Missing("Endpoint")),
            ("Endpoint=sb://a;oops", E::NoValue(2)),
            ("Endpoint=sb://a;endpoint=sb://b", E::Twice("Endpoint")),
            ("Endpoint=a", E::Endpoint),
            ("Endpoint=http://a", E::Endpoint),
            ("Endpoint=sb://", E::Endpoint),
            ("Endpoint=sb://a/b", E::Endpoint),
            ("Endpoint=sb://a:0", E::Endpoint),
            ("Endpoint=sb://a:65536", E::Endpoint),
            ("Endpoint=sb://a:", E::Endpoint),
            ("Endpoint=sb://[::1", E::Endpoint),
            ("Endpoint=sb://[::1]5672", E::Endpoint),
            (
                "Endpoint=sb://a;SharedAccessKey=k",
                E::Missing("SharedAccessKeyName"),
            ),
            (
                "Endpoint=sb://a;SharedAccessKeyName=n",
                E::Missing("SharedAccessKey"),
            ),
            (
                "Endpoint=sb://a;UseDevelopmentEmulator=maybe",
                E::DevelopmentEmulator,
            ),
        ];
        for (text, error) in table {
            assert_eq!(text.parse::<ConnectionString>(), Err(error), "{text}");
        }
    }
}

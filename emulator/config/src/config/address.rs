//! The address of a namespace, at which clients reach only that namespace.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An address or host name of one namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// A loopback address at which the emulator listens for this namespace.
    Ip(IpAddr),
    /// A host name in lower case, which clients resolve by themselves.
    Host(String),
}

impl Address {
    /// The description of valid addresses.
    pub(crate) const ALLOWED: &'static str =
        "a loopback address (127.0.0.1 to 127.255.255.254, ::1) or a host name";
    /// The maximum length of a host name (RFC 1035 §2.3.4).
    const MAX_HOST: usize = 253;
}

impl FromStr for Address {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        // As in URLs.
        let bare = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = bare.unwrap_or(text).parse::<IpAddr>() {
            return match address.is_loopback() {
                true => Ok(Self::Ip(address)),
                false => Err(()),
            };
        }
        let is_label = |label: &str| {
            let mut bytes = label.bytes();
            let legal = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            !label.is_empty() && legal
        };
        // A last label of digits would be an invalid IP address.
        let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
        let last = text.rsplit('.').next().unwrap_or_default();
        let legal = text.split('.').all(is_label) && !is_number(last);
        match legal && text.len() <= Self::MAX_HOST {
            true => Ok(Self::Host(text.to_ascii_lowercase())),
            false => Err(()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(formatter),
            Self::Host(host) => host.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_loopback_address_or_a_host_name() {
        for text in ["127.0.0.1", "127.64.3.9", "::1"] {
            assert_eq!(
                text.parse(),
                Ok(Address::Ip(text.parse().unwrap())),
                "{text}"
            );
        }
        assert_eq!("[::1]".parse(), Ok(Address::Ip("::1".parse().unwrap())));
        for text in ["alpha", "Orders.Example.com", "a_b.local", "a1"] {
            let host = text.to_lowercase();
            assert_eq!(text.parse(), Ok(Address::Host(host)), "{text}");
        }
        let long = "a".repeat(254);
        for text in [
            "",
            "10.0.0.1",
            "0.0.0.0",
            "::",
            "127.0.0.256",
            "[::]",
            "[::1",
            "[a]",
            "a..b",
            "a b",
            "a:1",
            "ü",
            &long,
        ] {
            assert_eq!(text.parse::<Address>(), Err(()), "{text}");
        }
    }
}

//! Host names and origins as the headers `Host` and `Origin` have them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use super::{AccessError, is_local_name};

/// Longest host name (RFC 1035 §2.3.4).
const MAX_HOST: usize = 253;

/// A host name of the emulator, without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostName(String);

/// The origin of a web page (RFC 6454): scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    host: String,
    /// `None` for the default port of the scheme.
    port: Option<u16>,
}

impl FromStr for HostName {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let text = text.trim();
        match authority(text) {
            Some((host, None)) if !text.contains(':') => Ok(Self(host)),
            _ => Err(AccessError::Host(text.to_owned())),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Origin {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let text = text.trim();
        let read = || {
            let (scheme, rest) = text.split_once("://")?;
            let (host, port) = authority(rest)?;
            let scheme = scheme.to_ascii_lowercase();
            Some(Self {
                port: port.filter(|&port| usual_port(&scheme) != Some(port)),
                scheme,
                host,
            })
        };
        read().ok_or_else(|| AccessError::Origin(text.to_owned()))
    }
}

impl Origin {
    /// Returns whether a page of this origin was served under this `Host`.
    pub(crate) fn is_of(&self, host: &str) -> bool {
        authority(host).is_some_and(|(host, port)| {
            let port = port.filter(|&port| usual_port(&self.scheme) != Some(port));
            (host, port) == (self.host.clone(), self.port)
        })
    }

    /// Returns whether pages of this origin come from the machine that shows them.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        is_local_name(&self.host) || address.is_ok_and(|address| address.is_loopback())
    }
}

fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        _ => None,
    }
}

/// Parses `host[:port]`: returns the host in lower case, without the brackets of an IPv6 address and a trailing dot.
pub(crate) fn authority(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (address, rest) = bracketed.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (address, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().ok()?)
        }
        None if port.is_empty() => None,
        _ => return None,
    };
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    let is_name = (1..=MAX_HOST).contains(&host.len()) && host.bytes().all(is_allowed);
    is_name.then_some((host, port))
}

const ROUTES: &str = "/proc/net/route";
/// Flags of a route that is up and uses a gateway (`linux/route.h`).
const UP_BY_GATEWAY: u32 = 0x1 | 0x2;

/// Returns the IPv4 address of the default gateway; `None` where there is none, or the system has no such file.
pub(crate) fn default_gateway() -> Option<IpAddr> {
    let routes = std::fs::read_to_string(ROUTES).ok()?;
    parse(&routes).map(IpAddr::V4)
}

/// Parses a table of routes: interface, destination, gateway, flags and more. Addresses are hexadecimal numbers in the
/// machine's byte order.
fn parse(routes: &str) -> Option<Ipv4Addr> {
    routes.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace().skip(1);
        let mut number = || u32::from_str_radix(columns.next()?, 16).ok();
        let (destination, gateway, flags) = (number()?, number()?, number()?);
        let is_default = destination == 0 && flags & UP_BY_GATEWAY == UP_BY_GATEWAY;
        is_default.then(|| Ipv4Addr::from(gateway.to_ne_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port() {
        for (text, host, port) in [
            ("Localhost", "localhost", None),
            ("localhost.:5300", "localhost", Some(5300)),
            ("[::1]:80", "::1", Some(80)),
            ("[::1]", "::1", None),
            ("127.0.0.1:1", "127.0.0.1", Some(1)),
        ] {
            assert_eq!(authority(text), Some((host.to_owned(), port)), "{text}");
        }
        for text in [
            "", ".", ":80", "a:", "a:+1", "a:70000", "a:1:2", "::1", "[a]", "[::1]x", "a/b", "u@a",
            "a b", "é",
        ] {
            assert_eq!(authority(text), None, "{text}");
        }
    }

    #[test]
    fn an_allowed_host_has_no_port_and_no_scheme() {
        assert_eq!(
            "CI.Example.com".parse::<HostName>().unwrap().to_string(),
            "ci.example.com"
        );
        for text in ["", "a:80", "http://a", "a/b", "*.a"] {
            let error = text.parse::<HostName>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{text:?} is not a host name; allowed: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn origins_are_compared_as_browsers_do() {
        let origin = |text: &str| text.parse::<Origin>().unwrap();
        assert_eq!(origin("HTTP://Localhost:80"), origin("http://localhost"));
        assert_ne!(origin("https://localhost"), origin("http://localhost"));
        assert_ne!(origin("http://localhost:1"), origin("http://localhost"));
        for text in [
            "",
            "null",
            "localhost",
            "http://",
            "http://a/",
            "http://a/b",
        ] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
        for (text, host) in [
            ("http://a.test:5300", "A.test:5300"),
            ("https://a.test", "a.test"),
            ("https://a.test", "a.test:443"),
            ("http://[::1]:5300", "[::1]:5300"),
        ] {
            assert!(origin(text).is_of(host), "{text} {host}");
        }
        for (text, host) in [
            ("http://a.test:5301", "a.test:5300"),
            ("http://a.test", "a.test:443"),
            ("http://b.test", "a.test"),
            ("http://a.test", ""),
        ] {
            assert!(!origin(text).is_of(host), "{text} {host}");
        }
    }

    #[test]
    fn loopback_origins_are_recognized_by_name_and_address() {
        for text in [
            "http://localhost:3000",
            "https://a.localhost",
            "http://127.1.2.3",
            "http://[::1]",
        ] {
            assert!(text.parse::<Origin>().unwrap().is_loopback(), "{text}");
        }
        for text in [
            "http://localhost.evil.example",
            "http://10.0.0.1",
            "http://127.0.0.1.evil.example",
        ] {
            assert!(!text.parse::<Origin>().unwrap().is_loopback(), "{text}");
        }
    }

    const HEAD: &str =
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

    #[test]
    fn the_gateway_is_read_from_the_default_route() {
        let gateway = u32::from_ne_bytes([172, 17, 0, 1]);
        let routes = format!(
            "{HEAD}eth0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
         eth0\t00000000\t{gateway:08X}\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
        );
        assert_eq!(parse(&routes), Some(Ipv4Addr::new(172, 17, 0, 1)));
    }

    #[test]
    fn a_route_table_without_a_default_route_has_no_gateway() {
        let down = format!("{HEAD}eth0\t00000000\t010011AC\t0002\t0\n");
        let direct = format!("{HEAD}eth0\t00000000\t00000000\t0001\t0\n");
        for routes in ["", HEAD, "x\ny", &down, &direct] {
            assert_eq!(parse(routes), None, "{routes}");
        }
    }
}

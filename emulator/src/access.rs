//! Which requests the control API accepts: the host names by which a browser may reach it, the origins of web pages, and the
//! token for clients beyond the loopback. `http/guard.rs` applies these rules.

mod host;

use std::collections::HashSet;
use std::net::IpAddr;

use servicebus_config::ControlToken;
use thiserror::Error;

pub use host::{HostName, Origin};
pub(crate) use host::{authority, default_gateway};

/// The address of a request's client: an extension of every request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Which clients may use the control API beside those on this machine that use one of its own names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessOptions {
    /// Further host names of the emulator. A request to the control API with an unknown `Host` is answered 421, because a
    /// web page can map its own name to the emulator's address (DNS rebinding).
    pub allowed_hosts: Vec<HostName>,
    /// Origins of web pages that may make changes by the control API and open WebSockets.
    pub allowed_origins: Vec<Origin>,
    /// The token that clients beyond the loopback must send; without one they are answered 403.
    pub control_token: Option<ControlToken>,
    /// Whether requests from the default gateway need no token either: a container's published ports are reached from it.
    pub trust_gateway: bool,
}

/// Why an option is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AccessError {
    /// The text is not a host name.
    #[error(
        "{0:?} is not a host name; allowed: a name without scheme and port, for example emulator.example.com"
    )]
    Host(String),
    /// The text is not an origin.
    #[error(
        "{0:?} is not an origin; allowed: scheme, host and port without a path, for example http://localhost:3000"
    )]
    Origin(String),
}

/// The access rules as requests are checked against them.
#[derive(Debug)]
pub(crate) struct Access {
    hosts: HashSet<String>,
    origins: Vec<Origin>,
    pub(crate) token: Option<ControlToken>,
    /// The address of the default gateway, if it is trusted.
    pub(crate) gateway: Option<IpAddr>,
}

impl Access {
    /// Creates the rules of an emulator that clients also reach by `names`.
    pub(crate) fn new(
        options: AccessOptions,
        names: impl IntoIterator<Item = String>,
        gateway: Option<IpAddr>,
    ) -> Self {
        let allowed = options.allowed_hosts.iter().map(ToString::to_string);
        let names = names.into_iter().map(|name| name.to_ascii_lowercase());
        Self {
            hosts: allowed.chain(names).collect(),
            origins: options.allowed_origins,
            token: options.control_token,
            gateway,
        }
    }

    /// Returns whether a peer needs no token.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || self.gateway == Some(peer)
    }

    /// Returns whether a lower-case host name was allowed, or is one that a web page cannot have: a name without a dot has
    /// no owner on the internet.
    pub(crate) fn knows(&self, host: &str) -> bool {
        let is_local = || is_local_name(host) || !host.contains('.');
        host.parse::<IpAddr>().is_ok() || is_local() || self.hosts.contains(host)
    }

    /// Returns whether pages of an origin were allowed.
    pub(crate) fn allows(&self, origin: &Origin) -> bool {
        self.origins.contains(origin)
    }
}

/// Returns whether a lower-case name means the local machine everywhere (RFC 6761 §6.3).
fn is_local_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hosts_cannot_be_names_of_foreign_pages() {
        let options = AccessOptions {
            allowed_hosts: vec!["CI.example.com.".parse().unwrap()],
            ..AccessOptions::default()
        };
        let access = Access::new(options, ["Bus.Internal".to_owned()], None);
        for known in [
            "localhost",
            "a.b.localhost",
            "servicebus",
            "10.1.2.3",
            "::1",
            "ci.example.com",
            "bus.internal",
        ] {
            assert!(access.knows(known), "{known}");
        }
        for unknown in [
            "evil.example",
            "localhost.evil.example",
            "notlocalhost.com",
            "127.0.0.1.evil.example",
            "sub.ci.example.com",
        ] {
            assert!(!access.knows(unknown), "{unknown}");
        }
    }

    #[test]
    fn loopback_and_the_trusted_gateway_need_no_token() {
        let gateway = "172.17.0.1".parse().unwrap();
        let trusting = Access::new(AccessOptions::default(), [], Some(gateway));
        let strict = Access::new(AccessOptions::default(), [], None);
        for (peer, by_trusting, by_strict) in [
            ("127.0.0.1", true, true),
            ("127.9.8.7", true, true),
            ("::1", true, true),
            ("::ffff:127.0.0.1", true, true),
            ("172.17.0.1", true, false),
            ("::ffff:172.17.0.1", true, false),
            ("172.17.0.2", false, false),
            ("fe80::1", false, false),
        ] {
            let peer = peer.parse().unwrap();
            assert_eq!(
                (trusting.trusts(peer), strict.trusts(peer)),
                (by_trusting, by_strict),
                "{peer}"
            );
        }
    }

    #[test]
    fn only_the_complete_control_token_is_accepted() {
        let token: ControlToken = "S3cret-token".parse().unwrap();
        assert_eq!(token.authorization(), "Bearer S3cret-token");
        for shown in [
            "Bearer S3cret-token",
            "bearer S3cret-token",
            "Bearer  S3cret-token ",
        ] {
            assert!(token.is_shown_by(shown), "{shown}");
        }
        for shown in [
            "",
            "Bearer",
            "Bearer ",
            "S3cret-token",
            "Basic S3cret-token",
            "Bearer S3cret-toke",
            "Bearer S3cret-token1",
            "Bearer s3cret-token",
        ] {
            assert!(!token.is_shown_by(shown), "{shown}");
        }
    }

    #[test]
    fn debug_output_and_errors_hide_the_control_token() {
        let token: ControlToken = "S3cret".parse().unwrap();
        assert_eq!(format!("{token:?}"), "ControlToken(..)");
        for wrong in ["", "a b", "gehe\u{ef}m", "a\r\nb", "a,b"] {
            let error = wrong.parse::<ControlToken>().unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.starts_with("allowed: letters"), "{text}");
            assert!(wrong.is_empty() || !text.contains(wrong), "{text}");
        }
    }
}

//! To which namespace a connection or a request belongs: chosen once, by the address that it came to, else by host name,
//! else by the name of a key (interfaces.md). Where there is only one, there is nothing to choose.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::served::{Namespaces, Served};
use crate::auth::sas;
use crate::namespace::Namespace;

/// What the names of hosts end in that begin with that of a namespace, which may have dots itself.
const DOMAINS: [&str; 2] = [".servicebus.windows.net", ".localhost"];

/// By which way a client came, as far as is known before it speaks AMQP or sends a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionOrigin {
    /// The address that it connected to.
    at: Option<IpAddr>,
    /// The host names that it has said, the first one first.
    hosts: Vec<String>,
}

impl ConnectionOrigin {
    /// At an address of ours.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            at: Some(address.ip().to_canonical()),
            hosts: Vec::new(),
        }
    }

    /// The same of a client that has said a host name.
    pub(crate) fn asking_for(mut self, host: Option<String>) -> Self {
        self.hosts.extend(host);
        self
    }

    /// The address that the client connected to.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.at
    }
}

impl Namespaces {
    /// By the way that a client came.
    pub(crate) fn of_arrival(&self, arrival: &ConnectionOrigin) -> Option<Arc<Namespace>> {
        let served = self.served();
        let by_address = || served.get(served.addresses.get(&arrival.at?)?);
        let by_host = || arrival.hosts.iter().find_map(|host| served.of_host(host));
        served.only().or_else(by_address).or_else(by_host)
    }

    /// By the way that a request came, the host that it names, and the key that its token names.
    pub(crate) fn of_request(
        &self,
        arrival: &ConnectionOrigin,
        host: &str,
        token: Option<&str>,
    ) -> Option<Arc<Namespace>> {
        let by_token = || self.of_token(token?);
        let found = self.of_arrival(arrival).or_else(|| self.of_host(host));
        found.or_else(by_token)
    }

    /// By a host name, as in `name.servicebus.windows.net`, with or without a port.
    pub(crate) fn of_host(&self, host: &str) -> Option<Arc<Namespace>> {
        self.served().of_host(host)
    }

    /// By the key that a SASL PLAIN response names.
    pub(crate) fn of_plain(&self, response: &[u8]) -> Option<Arc<Namespace>> {
        let name = response.split(|&byte| byte == 0).nth(1)?;
        self.of_key(str::from_utf8(name).ok()?)
    }

    /// By the key that a shared access signature names.
    pub(crate) fn of_token(&self, token: &str) -> Option<Arc<Namespace>> {
        self.of_key(&sas::claimed_key_name(token)?)
    }

    /// Whether a client that asks for a host of this name is meant to reach a namespace by it.
    pub(crate) fn is_host(&self, host: &str) -> bool {
        self.of_host(host).is_some()
    }

    /// Whether a host name is one that a namespace was given, or its name in the service.
    pub(crate) fn has_host(&self, host: &str) -> bool {
        let served = self.served();
        let in_service = host.strip_suffix(DOMAINS[0]);
        served.hosts.contains_key(host)
            || in_service.is_some_and(|name| served.named(name).is_some())
    }

    fn of_key(&self, name: &str) -> Option<Arc<Namespace>> {
        let served = self.served();
        served.get(served.keys.get(name)?)
    }
}

impl Served {
    fn only(&self) -> Option<Arc<Namespace>> {
        let (_, first) = self.all.first_key_value()?;
        (self.all.len() == 1).then(|| Arc::clone(&first.namespace))
    }

    fn of_host(&self, host: &str) -> Option<Arc<Namespace>> {
        let host = without_port(host).to_ascii_lowercase();
        if let Some(number) = self.hosts.get(&host) {
            return self.get(number);
        }
        let label = DOMAINS.iter().find_map(|domain| host.strip_suffix(domain));
        let whole = self.named(label.unwrap_or(&host));
        // An address has no labels.
        let has_labels = host.parse::<IpAddr>().is_err();
        let first = || self.named(host.split('.').next()?);
        whole.or_else(|| has_labels.then(first).flatten())
    }
}

/// The host of `host:port`, an IPv6 address without its brackets.
fn without_port(host: &str) -> &str {
    if let Some((address, _)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address;
    }
    match host.split_once(':') {
        // More than one colon: an IPv6 address without brackets.
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_no_part_of_a_host() {
        for (written, host) in [
            ("alpha", "alpha"),
            ("alpha:5672", "alpha"),
            ("[::1]:5672", "::1"),
            ("[::1]", "::1"),
            ("::1", "::1"),
            ("127.0.0.1:5300", "127.0.0.1"),
        ] {
            assert_eq!(without_port(written), host, "{written}");
        }
    }
}

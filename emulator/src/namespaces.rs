//! The namespaces that one process serves: made, found and removed while others go on.
//!
//! They share the listeners and nothing else. What chooses one (a name, the name of a key, an address) belongs to one only, so
//! that a connection's namespace never depends on which was made first.
//!
//! The namespaces that are served, and what chooses each of them.
//!
//! To which namespace a connection or a request belongs: chosen once, by the address that it came to, else by host name,
//! else by the name of a key (interfaces.md). Where there is only one, there is nothing to choose.

mod create;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use servicebus_config::{AMQP_PORT, AMQPS_PORT};
use thiserror::Error;
use tokio::task::JoinSet;

use crate::auth::{Claims, ConnectionString, Jwt, Key, TokenCheck, sas};
use crate::clock::RealClock;
use crate::config::words::word;
use crate::config::{Address, NamespaceConfig, words};
use crate::durable::Store;
use crate::failures::Failures;
use crate::listeners::Listening;
use crate::namespace::Namespace;
use crate::options::Endpoints;
use crate::traces::Traces;

pub(crate) use create::{CreateError, Permit};
pub use servicebus_control_api::NamespaceInfo;

/// All namespaces of a process.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) served: RwLock<Served>,
    /// Held by what makes one, from looking at which names are taken until they are its own. A body is read
    /// meanwhile, on a thread that may block.
    pub(crate) creating: Arc<tokio::sync::Mutex<()>>,
    pub(crate) real: RealClock,
    pub(crate) seed: Option<u64>,
    pub(crate) records_messages: bool,
    pub(crate) place: Place,
    pub(crate) failures: Failures,
    /// Where what they hold outlives the process.
    pub(crate) store: Option<Arc<Store>>,
    /// Whether what is kept and not declared is removed.
    pub(crate) prunes: bool,
    pub(crate) traces: Traces,
}

/// Those that are served, and who has what chooses one.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) made: u64,
    /// In the order in which they were made.
    pub(crate) all: BTreeMap<u64, Entry>,
    /// By their names in lower case.
    pub(crate) names: HashMap<String, u64>,
    pub(crate) keys: HashMap<String, u64>,
    pub(crate) addresses: HashMap<IpAddr, u64>,
    /// By the host names of their own, in lower case.
    pub(crate) hosts: HashMap<String, u64>,
}

/// One of them, with what ends when it does.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) info: NamespaceInfo,
    /// The task that fires what is due.
    pub(crate) _timers: JoinSet<()>,
    /// The listeners at its own address.
    pub(crate) listening: Option<Listening>,
}

impl Namespaces {
    /// None yet; clients reach them at `place`.
    pub(crate) fn new(
        real: RealClock,
        seed: Option<u64>,
        records_messages: bool,
        place: Place,
        (store, prunes): (Option<Arc<Store>>, bool),
        traces: Traces,
    ) -> Self {
        Self {
            served: RwLock::default(),
            creating: Arc::default(),
            real,
            seed,
            records_messages,
            place,
            failures: Failures::default(),
            store,
            prunes,
            traces,
        }
    }

    /// What went wrong inside.
    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Where clients find the emulator.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// All of them with their connection strings, in the order in which they were made.
    pub(crate) fn list(&self) -> Vec<NamespaceInfo> {
        let served = self.served();
        served
            .all
            .values()
            .map(|entry| entry.info.clone())
            .collect()
    }

    /// The names of all, in the order in which they were made.
    pub(crate) fn names(&self) -> Vec<String> {
        let served = self.served();
        let names = served.all.values().map(|entry| entry.info.name.clone());
        names.collect()
    }

    /// The oldest: the one that is meant where none is named.
    pub(crate) fn first(&self) -> Option<Arc<Namespace>> {
        let served = self.served();
        let (_, first) = served.all.first_key_value()?;
        Some(Arc::clone(&first.namespace))
    }

    /// The one of this name, in upper or lower case.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Namespace>> {
        self.served().named(name)
    }

    pub(crate) fn served(&self) -> RwLockReadGuard<'_, Served> {
        self.served.read()
    }

    pub(crate) fn served_mut(&self) -> RwLockWriteGuard<'_, Served> {
        self.served.write()
    }
}

impl Served {
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Namespace>> {
        self.get(self.names.get(&name.to_ascii_lowercase())?)
    }

    pub(crate) fn get(&self, number: &u64) -> Option<Arc<Namespace>> {
        let entry = self.all.get(number)?;
        Some(Arc::clone(&entry.namespace))
    }

    /// Who has an address or a host name of its own.
    pub(crate) fn owner(&self, address: &Address) -> Option<&u64> {
        match address {
            Address::Ip(address) => self.addresses.get(address),
            Address::Host(host) => self.hosts.get(host),
        }
    }
}

/// Why a namespace is not removed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum RemoveError {
    /// There is none of this name.
    #[error("there is no such namespace")]
    Unknown,
    /// Without it there would be nothing to serve.
    #[error("{0:?} is the last namespace; make another one first, or stop the emulator")]
    Last(String),
}

impl Namespaces {
    /// Removes one with everything in it. Its connections are closed in their next turns; returned is what is listened at
    /// for it alone.
    pub(crate) fn remove(&self, name: &str) -> Result<Option<Listening>, RemoveError> {
        let entry = self.served_mut().take(name)?;
        entry.namespace.end();
        Ok(entry.listening)
    }
}

impl Served {
    fn take(&mut self, name: &str) -> Result<Entry, RemoveError> {
        let name = name.to_ascii_lowercase();
        let number = *self.names.get(&name).ok_or(RemoveError::Unknown)?;
        if self.all.len() == 1 {
            let entry = self.all.get(&number).ok_or(RemoveError::Unknown)?;
            return Err(RemoveError::Last(entry.info.name.clone()));
        }
        let entry = self.all.remove(&number).ok_or(RemoveError::Unknown)?;
        self.names.remove(&name);
        let config = &entry.namespace.config;
        for key in &config.keys {
            self.keys.remove(&key.name);
        }
        match &config.address {
            Some(Address::Ip(address)) => {
                self.addresses.remove(address);
            }
            Some(Address::Host(host)) => {
                self.hosts.remove(host);
            }
            None => {}
        }
        Ok(entry)
    }
}

/// Where clients find the emulator.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The host of namespaces without an address of their own.
    host: String,
    /// Its listeners.
    pub(crate) endpoints: Endpoints,
}

impl Place {
    /// Of an emulator that was told to listen at `host`.
    pub(crate) fn new(host: &str, endpoints: Endpoints) -> Self {
        let is_any = host.parse().is_ok_and(|host: IpAddr| host.is_unspecified());
        let host = if is_any { "localhost" } else { host };
        Self {
            host: host.to_owned(),
            endpoints,
        }
    }

    /// Whether a namespace is reached over loopback addresses alone.
    pub(crate) fn is_local(&self, namespace: &NamespaceConfig) -> bool {
        let own = match &namespace.address {
            Some(Address::Ip(address)) => address.is_loopback(),
            Some(Address::Host(_)) | None => true,
        };
        own && self.endpoints.amqp.ip().is_loopback()
    }

    /// The connection string with a key of a namespace.
    pub(crate) fn connection_string(&self, namespace: &NamespaceConfig, key: &Key) -> String {
        let amqp = self.endpoints.amqp.port();
        self.string(namespace, key, (amqp != AMQP_PORT).then_some(amqp))
    }

    fn string(&self, namespace: &NamespaceConfig, key: &Key, port: Option<u16>) -> String {
        let own = namespace.address.as_ref().map(ToString::to_string);
        let host = own.as_deref().unwrap_or(&self.host);
        ConnectionString::for_emulator(host, port, key).to_string()
    }

    /// The same over TLS, which the port of AMQP takes, too, where there is no other.
    fn tls_connection_string(&self, namespace: &NamespaceConfig, key: &Key) -> String {
        let own = namespace.address.as_ref().map(ToString::to_string);
        let amqps = self.endpoints.amqps.filter(|_| own.is_none());
        let port = amqps.unwrap_or(self.endpoints.amqp).port();
        let host = own.unwrap_or_else(|| self.host.clone());
        let port = (port != AMQPS_PORT).then_some(port);
        let secure = ConnectionString {
            development_emulator: false,
            ..ConnectionString::for_emulator(host, port, key)
        };
        secure.to_string()
    }

    /// The connection strings of a namespace.
    pub(crate) fn info(&self, namespace: &NamespaceConfig) -> NamespaceInfo {
        let well_known = Key::well_known();
        let key = namespace.keys.first().unwrap_or(&well_known);
        let http = Some(self.endpoints.http.port());
        NamespaceInfo {
            name: namespace.name.clone(),
            connection_string: self.connection_string(namespace, key),
            tls_connection_string: self.tls_connection_string(namespace, key),
            admin_connection_string: self.string(namespace, key, http),
            token_check: word(&words::TOKEN_CHECK, &namespace.token_check).to_owned(),
            jwt: namespace.jwt.word().unwrap_or("refuse").to_owned(),
            warnings: self.warnings(namespace),
        }
    }

    /// What an unsigned JSON web token gives that the configuration of a namespace may not have meant.
    fn warnings(&self, namespace: &NamespaceConfig) -> Vec<String> {
        let is_checked = namespace.token_check == TokenCheck::Signature;
        let mut keys = namespace.keys.iter().filter(|_| is_checked);
        let lesser = keys.find(|key| key.claims != Claims::ALL);
        let lesser = lesser.map(|Key { name, claims, .. }| {
            format!(
                "\"Jwt\" is \"accept\": a client with an unsigned JSON web token has every right, though the key {name:?} \
                 gives {claims} alone"
            )
        });
        let remote = (!self.is_local(namespace)).then(|| {
            "\"Jwt\" is \"accept\": every client that reaches the emulator has every right with an unsigned JSON web token"
                .to_owned()
        });
        let warnings = remote.into_iter().chain(lesser);
        warnings
            .filter(|_| matches!(namespace.jwt, Jwt::Accept))
            .collect()
    }
}

/// What the names of hosts end in that begin with that of a namespace, which may have dots itself.
const DOMAINS: [&str; 2] = [".servicebus.windows.net", ".localhost"];

/// By which way a client came, as far as is known before it speaks AMQP or sends a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionOrigin {
    /// The address that it connected to.
    at: Option<IpAddr>,
    /// The host names that it has said, the first one first.
    hosts: Vec<String>,
    /// What AMQP comes over, if that is not TCP alone.
    transport: Option<&'static str>,
}

impl ConnectionOrigin {
    /// At an address of ours.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            at: Some(address.ip().to_canonical()),
            ..Self::default()
        }
    }

    /// The same of a client whose AMQP comes over this.
    pub(crate) fn over(self, transport: &'static str) -> Self {
        Self {
            transport: Some(transport),
            ..self
        }
    }

    /// What AMQP comes over.
    pub(crate) fn transport(&self) -> &'static str {
        self.transport.unwrap_or("tcp")
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
        if let Some(number) = served.keys.get(name) {
            return served.get(number);
        }
        let mut all = served.all.values().map(|entry| &entry.namespace);
        all.find(|namespace| namespace.has_added_key(name)).cloned()
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

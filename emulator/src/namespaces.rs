//! The namespaces that one process serves: created, found and removed at run time.
//!
//! They share nothing but the listeners. Each selector of a namespace (a name, a key name, an address) belongs to one
//! namespace only, so that a connection's namespace never depends on the order of creation.
//!
//! The namespace of a connection or a request is determined once: by the address that it came to, else by host name, else by
//! a key name (interfaces.md). A single namespace needs no selector.

mod create;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use servicebus_config::{AMQP_PORT, AMQPS_PORT};
use thiserror::Error;
use tokio::task::JoinSet;

use crate::auth::{Claims, ConnectionString, Jwt, Key, TokenCheck, sas, verify_plain};
use crate::clock::RealClock;
use crate::config::words::word;
use crate::config::{Address, NamespaceConfig, words};
use crate::durable::Store;
use crate::failures::Failures;
use crate::listeners::Listening;
use crate::namespace::Namespace;
use crate::options::Endpoints;
use crate::traces::Traces;

pub(crate) use create::{CreateError, Creation, Permit};
pub use servicebus_control_api::NamespaceInfo;

/// All namespaces of a process.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) served: RwLock<Served>,
    /// Held during a creation, from the check of the selectors until they are registered. The body is read meanwhile, on a
    /// thread that may block.
    pub(crate) creating: Arc<tokio::sync::Mutex<()>>,
    pub(crate) real: RealClock,
    pub(crate) seed: Option<u64>,
    pub(crate) records_messages: bool,
    /// Where clients reach the emulator.
    pub(crate) place: ServerAddress,
    /// The internal failures of the process.
    pub(crate) failures: Failures,
    /// The data directory, if any.
    pub(crate) store: Option<Arc<Store>>,
    /// Whether stored namespaces and entities that are not declared are removed.
    pub(crate) prunes: bool,
    /// The declared namespaces, without entities, if others are kept in a data directory: those must not take the key names and
    /// addresses of a declared one that was removed, because the next start creates it.
    pub(crate) declared: Vec<NamespaceConfig>,
    pub(crate) traces: Traces,
}

/// The served namespaces and their selectors.
#[derive(Debug, Default)]
pub(crate) struct Served {
    pub(crate) made: u64,
    /// The highest number in a name like `test-1` that a namespace has had.
    pub(crate) numbered: u64,
    /// In the order of their creation.
    pub(crate) all: BTreeMap<u64, Entry>,
    /// By lower-case name.
    pub(crate) names: HashMap<String, u64>,
    pub(crate) keys: HashMap<String, u64>,
    pub(crate) addresses: HashMap<IpAddr, u64>,
    /// By lower-case host name.
    pub(crate) hosts: HashMap<String, u64>,
}

/// A namespace with its task and listeners, which end with it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) namespace: Arc<Namespace>,
    pub(crate) info: NamespaceInfo,
    /// The task that runs deadlines.
    pub(crate) _timers: JoinSet<()>,
    /// The listeners at the namespace's own address.
    pub(crate) listening: Option<Listening>,
}

impl Namespaces {
    /// Starts empty; clients reach the namespaces at `place`.
    pub(crate) fn new(
        real: RealClock,
        seed: Option<u64>,
        records_messages: bool,
        place: ServerAddress,
        (store, prunes): (Option<Arc<Store>>, bool),
        traces: Traces,
        declared: &[NamespaceConfig],
    ) -> Self {
        let are_kept = store.is_some() && !prunes;
        let declared = declared.iter().filter(|_| are_kept);
        Self {
            declared: declared.map(NamespaceConfig::without_entities).collect(),
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

    /// Returns all namespaces with their connection strings, in the order of their creation.
    pub(crate) fn list(&self) -> Vec<NamespaceInfo> {
        let served = self.served();
        served
            .all
            .values()
            .map(|entry| entry.info.clone())
            .collect()
    }

    /// Returns the names of all namespaces in the order of their creation.
    pub(crate) fn names(&self) -> Vec<String> {
        let served = self.served();
        let names = served.all.values().map(|entry| entry.info.name.clone());
        names.collect()
    }

    /// Returns the oldest namespace, which is the default.
    pub(crate) fn first(&self) -> Option<Arc<Namespace>> {
        let served = self.served();
        let (_, first) = served.all.first_key_value()?;
        Some(Arc::clone(&first.namespace))
    }

    /// Finds a namespace by name, ignoring case.
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

    /// Returns the namespace that has this address or host name.
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
    #[error("there is no such namespace")]
    Unknown,
    #[error("{0:?} is the last namespace; create another one first, or stop the emulator")]
    Last(String),
}

impl Namespaces {
    /// Removes a namespace with its contents. Its connections close in their next turns; returns the listeners of its own
    /// address. `forget` is called before another namespace can have the name.
    pub(crate) fn remove(
        &self,
        name: &str,
        forget: impl FnOnce(),
    ) -> Result<Option<Listening>, RemoveError> {
        let mut served = self.served_mut();
        let entry = served.take(name)?;
        forget();
        drop(served);
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

/// Where clients reach the emulator.
#[derive(Debug, Clone)]
pub(crate) struct ServerAddress {
    /// The host of namespaces without an address of their own.
    host: String,
    /// Its listeners.
    pub(crate) endpoints: Endpoints,
}

impl ServerAddress {
    /// Creates the place of an emulator that listens at `host`.
    pub(crate) fn new(host: &str, endpoints: Endpoints) -> Self {
        let is_any = host.parse().is_ok_and(|host: IpAddr| host.is_unspecified());
        let host = if is_any { "localhost" } else { host };
        Self {
            host: host.to_owned(),
            endpoints,
        }
    }

    /// Returns whether only loopback addresses lead to a namespace.
    pub(crate) fn is_local(&self, namespace: &NamespaceConfig) -> bool {
        let own = match &namespace.address {
            Some(Address::Ip(address)) => address.is_loopback(),
            Some(Address::Host(_)) | None => true,
        };
        own && self.endpoints.amqp.ip().is_loopback()
    }

    pub(crate) fn connection_string(&self, namespace: &NamespaceConfig, key: &Key) -> String {
        let amqp = self.endpoints.amqp.port();
        self.string(namespace, key, (amqp != AMQP_PORT).then_some(amqp))
    }

    fn string(&self, namespace: &NamespaceConfig, key: &Key, port: Option<u16>) -> String {
        let own = namespace.address.as_ref().map(ToString::to_string);
        let host = own.as_deref().unwrap_or(&self.host);
        ConnectionString::for_emulator(host, port, key).to_string()
    }

    /// Returns the connection string over TLS; without a TLS port it has the port of AMQP, which accepts TLS too.
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

    /// Returns the connection strings of a namespace, which accepts the JSON web tokens of `jwt`.
    pub(crate) fn info(&self, namespace: &NamespaceConfig, jwt: &Jwt) -> NamespaceInfo {
        let well_known = Key::well_known();
        let key = namespace.keys.first().unwrap_or(&well_known);
        let http = Some(self.endpoints.http.port());
        NamespaceInfo {
            name: namespace.name.clone(),
            connection_string: self.connection_string(namespace, key),
            tls_connection_string: self.tls_connection_string(namespace, key),
            admin_connection_string: self.string(namespace, key, http),
            token_check: word(&words::TOKEN_CHECK, &namespace.token_check).to_owned(),
            jwt: jwt.word().unwrap_or("refuse").to_owned(),
            warnings: match jwt {
                Jwt::Accept => self.warnings(namespace),
                Jwt::Unset | Jwt::Issued | Jwt::Refuse | Jwt::Check(_) => Vec::new(),
            },
        }
    }

    /// Returns warnings about rights that unsigned JSON web tokens get, if they are accepted, and that the configuration may
    /// not have meant.
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
        remote.into_iter().chain(lesser).collect()
    }
}

/// Suffixes of host names that begin with a namespace's name, which may contain dots itself.
const DOMAINS: [&str; 2] = [".servicebus.windows.net", ".localhost"];

/// The origin of a connection, as far as known before AMQP or a request begins.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConnectionOrigin {
    /// The address that the client connected to.
    at: Option<IpAddr>,
    /// The host names that the client sent, in order.
    hosts: Vec<String>,
    /// The transport of AMQP, if it is not plain TCP.
    transport: Option<&'static str>,
}

impl ConnectionOrigin {
    /// Creates the origin of a client that connected to `address`.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            at: Some(address.ip().to_canonical()),
            ..Self::default()
        }
    }

    /// Sets the transport of AMQP.
    pub(crate) fn over(self, transport: &'static str) -> Self {
        Self {
            transport: Some(transport),
            ..self
        }
    }

    pub(crate) fn transport(&self) -> &'static str {
        self.transport.unwrap_or("tcp")
    }

    /// Adds a host name that the client sent.
    pub(crate) fn with_host(mut self, host: Option<String>) -> Self {
        self.hosts.extend(host);
        self
    }

    /// Returns the address that the client connected to.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.at
    }
}

impl Namespaces {
    /// Finds the namespace by the origin of a connection.
    pub(crate) fn of_origin(&self, origin: &ConnectionOrigin) -> Option<Arc<Namespace>> {
        let served = self.served();
        let by_address = || served.get(served.addresses.get(&origin.at?)?);
        let by_host = || origin.hosts.iter().find_map(|host| served.of_host(host));
        served.only().or_else(by_address).or_else(by_host)
    }

    /// Finds the namespace by a request's origin, its host, and the key name in its token.
    pub(crate) fn of_request(
        &self,
        origin: &ConnectionOrigin,
        host: &str,
        token: Option<&str>,
    ) -> Option<Arc<Namespace>> {
        let by_token = || self.of_token(token?);
        let found = self.of_origin(origin).or_else(|| self.of_host(host));
        found.or_else(by_token)
    }

    /// Finds the namespace by a host name, as in `name.servicebus.windows.net`, with or without a port.
    pub(crate) fn of_host(&self, host: &str) -> Option<Arc<Namespace>> {
        self.served().of_host(host)
    }

    /// Finds the namespace by the key in a SASL PLAIN response.
    pub(crate) fn of_plain(&self, response: &[u8]) -> Option<Arc<Namespace>> {
        let name = response.split(|&byte| byte == 0).nth(1)?;
        let is_used = |keys: &[Key]| verify_plain(response, keys).is_ok();
        self.of_key(str::from_utf8(name).ok()?, &is_used)
    }

    /// Finds the namespace by the key of a shared access signature, which may have expired.
    pub(crate) fn of_token(&self, token: &str) -> Option<Arc<Namespace>> {
        let is_used = |keys: &[Key]| sas::verify(token, keys, i64::MIN).is_ok();
        self.of_key(&sas::claimed_key_name(token)?, &is_used)
    }

    /// Returns whether a host name leads to a namespace.
    pub(crate) fn is_host(&self, host: &str) -> bool {
        self.of_host(host).is_some()
    }

    /// Returns whether a host name was configured for a namespace, or is its name in the service.
    pub(crate) fn has_host(&self, host: &str) -> bool {
        let served = self.served();
        let in_service = host.strip_suffix(DOMAINS[0]);
        served.hosts.contains_key(host)
            || in_service.is_some_and(|name| served.named(name).is_some())
    }

    /// Finds the namespace that has the key of this name that is used; if no key is, that of a key of the name. A declared
    /// name belongs to one namespace, but keys that were added later may repeat names of other namespaces.
    fn of_key(&self, name: &str, is_used: &dyn Fn(&[Key]) -> bool) -> Option<Arc<Namespace>> {
        let served = self.served();
        let declared = served.keys.get(name).and_then(|number| served.get(number));
        if let Some(declared) = declared.as_ref().filter(|own| is_used(&own.config.keys)) {
            return Some(Arc::clone(declared));
        }
        let all = served.all.values().map(|entry| &entry.namespace);
        let all = Vec::from_iter(all.cloned());
        drop(served);
        let mut first = declared;
        for namespace in all {
            let keys = namespace.added_keys(name);
            if is_used(&keys) {
                return Some(namespace);
            }
            first = first.or_else(|| (!keys.is_empty()).then_some(namespace));
        }
        first
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
        // An IP address has no labels.
        let has_labels = host.parse::<IpAddr>().is_err();
        let first = || self.named(host.split('.').next()?);
        whole.or_else(|| has_labels.then(first).flatten())
    }
}

/// Returns the host of `host:port`; removes the brackets of an IPv6 address.
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
    fn the_port_is_removed_from_a_host() {
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

//! The namespaces that are served, and what chooses each of them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use servicebus_control_api::NamespaceInfo;
use tokio::task::JoinSet;

use super::info::Place;
use crate::clock::RealClock;
use crate::config::Address;
use crate::failures::Failures;
use crate::listeners::Listening;
use crate::namespace::Namespace;

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
    ) -> Self {
        Self {
            served: RwLock::default(),
            creating: Arc::default(),
            real,
            seed,
            records_messages,
            place,
            failures: Failures::default(),
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

    /// The one of this name, whatever the message case.
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

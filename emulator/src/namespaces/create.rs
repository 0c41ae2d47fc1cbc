//! Creates a namespace, whose name, keys and address must be free.

use std::net::IpAddr;
use std::sync::Arc;

use servicebus_control_api::NamespaceInfo;
use thiserror::Error;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinSet;

use super::{Entry, Namespaces, Served};
use crate::config::{Address, MAX_NAMESPACES, NamespaceConfig};
use crate::durable::Store;
use crate::listeners::Listening;
use crate::namespace::{Contents, Namespace};
use crate::options::{DataError, StartError};
use crate::timers;
use crate::watchdog::watched;

/// Why a namespace is not created.
#[derive(Debug, Error)]
pub(crate) enum CreateError {
    #[error("the namespace {0:?} already exists; remove it first")]
    Name(String),
    #[error(
        "the key name {name:?} belongs to the namespace {owner}: a key name chooses the namespace"
    )]
    Key {
        name: String,
        /// The index of the key.
        index: usize,
        /// The name of the namespace, and more about it.
        owner: String,
    },
    #[error("the address {address} belongs to the namespace {owner}")]
    Address { address: Address, owner: String },
    #[error("the limit of {MAX_NAMESPACES} namespaces is reached")]
    TooMany,
    /// Its stored contents cannot be served.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The emulator cannot listen at its address.
    #[error(transparent)]
    Listen(StartError),
}

impl CreateError {
    /// Converts the error for a declared namespace.
    pub(crate) fn at_start(self, namespace: String) -> StartError {
        match self {
            Self::Listen(error) => error,
            Self::Data(error) => error.into(),
            taken @ (Self::Name(_) | Self::Key { .. } | Self::Address { .. } | Self::TooMany) => {
                StartError::Namespace {
                    namespace,
                    reason: taken.to_string(),
                }
            }
        }
    }
}

/// The exclusive right to create one namespace: its selectors stay free meanwhile.
#[derive(Debug)]
pub(crate) struct Creation<'a> {
    namespaces: &'a Namespaces,
    contents: Contents,
    store: Option<&'a Arc<Store>>,
    _permit: Permit,
}

/// A permit that only one creator has at a time.
pub(crate) type Permit = OwnedMutexGuard<()>;

impl Namespaces {
    /// Waits for the permit without blocking a thread.
    pub(crate) async fn permit(&self) -> Permit {
        Arc::clone(&self.creating).lock_owned().await
    }

    pub(crate) fn free_permit(&self) -> Option<Permit> {
        Arc::clone(&self.creating).try_lock_owned().ok()
    }

    pub(crate) fn begin(&self, permit: Permit) -> Creation<'_> {
        Creation {
            namespaces: self,
            contents: Contents::Declared {
                prunes: self.prunes,
            },
            store: self.store.as_ref(),
            _permit: permit,
        }
    }
}

impl Creation<'_> {
    /// Creates a namespace that only the data directory has.
    pub(crate) fn stored(self) -> Self {
        Self {
            contents: Contents::Stored,
            ..self
        }
    }

    /// Creates a namespace that ends with the process.
    pub(crate) fn unstored(self) -> Self {
        Self {
            store: None,
            ..self
        }
    }

    /// Returns whether a key of this name selects another namespace than `namespace`.
    pub(crate) fn has_key(&self, name: &str, namespace: &str) -> bool {
        self.namespaces.key_owner(name, namespace).is_some()
    }

    /// Returns a name that no namespace of this process has had: names of this form are used in ascending order.
    pub(crate) fn test_name(&self) -> String {
        let served = self.namespaces.served();
        format!("test-{}", served.made.max(served.numbered + 1))
    }

    /// Checks whether a namespace of this name can be created.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), CreateError> {
        let served = self.namespaces.served();
        if let Some(there) = served.named(name) {
            return Err(CreateError::Name(there.name().to_owned()));
        }
        match served.all.len() < MAX_NAMESPACES {
            true => Ok(()),
            false => Err(CreateError::TooMany),
        }
    }

    /// Creates and serves the namespace; `listen` opens listeners at its own address.
    pub(crate) fn finish(
        self,
        config: NamespaceConfig,
        listen: impl FnOnce(IpAddr) -> Result<Option<Listening>, StartError>,
    ) -> Result<NamespaceInfo, CreateError> {
        self.check_name(&config.name)?;
        self.check_free(&config)?;
        let Namespaces {
            real,
            seed,
            records_messages,
            place,
            failures,
            ..
        } = self.namespaces;
        let listening = match config.address {
            Some(Address::Ip(address)) => listen(address).map_err(CreateError::Listen)?,
            Some(Address::Host(_)) | None => None,
        };
        let is_local = place.is_local(&config);
        let jwt = config.jwt.clone().decided(&config.keys, is_local);
        let info = place.info(&config, &jwt);
        tracing::info!(namespace = %info.name, token_check = info.token_check, jwt = info.jwt, "made");
        for warning in &info.warnings {
            tracing::info!(namespace = %info.name, "{warning}");
        }
        let (real, failures) = (real.clone(), failures.clone());
        let mut made = match self.store.map(|store| store.namespace(&config.name)) {
            None => Namespace::new(config, real, *seed, *records_messages, failures.clone()),
            Some(store) => {
                let failures = failures.clone();
                let kept = (store, self.contents);
                Namespace::open_stored(config, real, *seed, *records_messages, failures, kept)?
            }
        };
        made.jwt = jwt;
        made.followed_messages = self.namespaces.traces.of_namespace(made.name());
        let namespace = Arc::new(made);
        if let Some(store) = namespace.store() {
            store.serve(&namespace);
        }
        let mut timers = JoinSet::new();
        let task = timers::run(Arc::clone(&namespace));
        timers.spawn(watched("the timers' task", &failures, task));
        let stepping = Arc::clone(&namespace);
        let task = async move { stepping.run_automatic_clock().await };
        timers.spawn(watched("the automatic clock", &failures, task));
        self.namespaces.served_mut().insert(Entry {
            namespace,
            info: info.clone(),
            _timers: timers,
            listening,
        });
        Ok(info)
    }

    fn check_free(&self, config: &NamespaceConfig) -> Result<(), CreateError> {
        for (index, key) in config.keys.iter().enumerate() {
            if let Some(owner) = self.namespaces.key_owner(&key.name, &config.name) {
                return Err(CreateError::Key {
                    name: key.name.clone(),
                    index,
                    owner,
                });
            }
        }
        let address = config.address.as_ref();
        let taken = address.and_then(|own| {
            let owner = self.namespaces.address_owner(own, &config.name)?;
            Some((own.clone(), owner))
        });
        match taken {
            None => Ok(()),
            Some((address, owner)) => Err(CreateError::Address { address, owner }),
        }
    }
}

impl Namespaces {
    /// Returns the namespace other than `namespace` that a key name belongs to, as a text.
    pub(crate) fn key_owner(&self, key: &str, namespace: &str) -> Option<String> {
        let has = |own: &NamespaceConfig| own.keys.iter().any(|own| own.name == key);
        let served = self.served();
        served
            .describe(served.keys.get(key))
            .or_else(|| self.declared_owner(namespace, has))
    }

    fn address_owner(&self, address: &Address, namespace: &str) -> Option<String> {
        let has = |own: &NamespaceConfig| own.address.as_ref() == Some(address);
        let served = self.served();
        served
            .describe(served.owner(address))
            .or_else(|| self.declared_owner(namespace, has))
    }

    fn declared_owner(
        &self,
        namespace: &str,
        has: impl Fn(&NamespaceConfig) -> bool,
    ) -> Option<String> {
        let mut others = self.declared.iter();
        let owner = others.find(|own| !own.name.eq_ignore_ascii_case(namespace) && has(own))?;
        Some(format!(
            "{:?}, which the configuration declares and the next start creates",
            owner.name
        ))
    }
}

impl Served {
    fn describe(&self, number: Option<&u64>) -> Option<String> {
        let entry = self.all.get(number?);
        Some(entry.map_or_else(String::new, |entry| format!("{:?}", entry.info.name)))
    }

    fn insert(&mut self, entry: Entry) {
        self.made += 1;
        let number = self.made;
        let config = &entry.namespace.config;
        let name = config.name.to_ascii_lowercase();
        // `made` does not reach larger numbers.
        let chosen = name
            .strip_prefix("test-")
            .and_then(|own| own.parse::<u32>().ok());
        self.numbered = self.numbered.max(chosen.unwrap_or(0).into());
        self.names.insert(name, number);
        let keys = config.keys.iter().map(|key| (key.name.clone(), number));
        self.keys.extend(keys);
        match &config.address {
            Some(Address::Ip(address)) => {
                self.addresses.insert(*address, number);
            }
            Some(Address::Host(host)) => {
                self.hosts.insert(host.clone(), number);
            }
            None => {}
        }
        self.all.insert(number, entry);
    }
}

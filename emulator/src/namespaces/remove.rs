//! A namespace is removed: what chose it is free at once, and whoever is connected is told to go.

use thiserror::Error;

use super::served::{Entry, Namespaces, Served};
use crate::config::Address;
use crate::listeners::Listening;

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

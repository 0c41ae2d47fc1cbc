//! Limits how many peers are connected, from one address and in all. Some places are reserved for `/health`, so that a
//! monitor sees that the emulator is alive even when it is full.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for `/health` only.
const RESERVED: usize = 50;

/// The connection places of a process.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    /// The number of places.
    most: usize,
    /// Places for one address that is not this machine's own: four fifths.
    of_address: usize,
    taken: AtomicUsize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    reserved: Arc<Semaphore>,
}

/// The place of one peer; released when dropped.
#[derive(Debug)]
pub(crate) enum ConnectionSlot {
    /// A place without restrictions.
    Any {
        /// Held for as long as the place is.
        _taken: CountedSlot,
    },
    /// A place for `/health` only.
    Reserved {
        /// Held for as long as the place is.
        _permit: OwnedSemaphorePermit,
    },
}

/// A counted place.
#[derive(Debug)]
pub(crate) struct CountedSlot {
    connection_limit: Arc<ConnectionLimit>,
    /// The peer's address, if the limit per address applies to it.
    address: Option<IpAddr>,
}

impl ConnectionLimit {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            of_address: (most - most / 5).max(1),
            taken: AtomicUsize::new(0),
            by_address: Mutex::default(),
            reserved: Arc::new(Semaphore::new(RESERVED)),
        })
    }

    /// Takes a place for a peer from this address; `None` when those for `/health` are taken as well.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Option<ConnectionSlot> {
        if let Some(taken) = self.take_any(address.to_canonical()) {
            return Some(ConnectionSlot::Any { _taken: taken });
        }
        let permit = Arc::clone(&self.reserved).try_acquire_owned().ok()?;
        Some(ConnectionSlot::Reserved { _permit: permit })
    }

    fn take_any(self: &Arc<Self>, address: IpAddr) -> Option<CountedSlot> {
        let more = |taken| (taken < self.most).then_some(taken + 1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.taken.fetch_update(set, fetch, more).ok()?;
        let mut taken = CountedSlot {
            connection_limit: Arc::clone(self),
            address: None,
        };
        if !address.is_loopback() {
            let mut by_address = self.by_address();
            let own = by_address.entry(address).or_default();
            if *own >= self.of_address {
                return None;
            }
            *own += 1;
            taken.address = Some(address);
        }
        Some(taken)
    }

    fn by_address(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.by_address.lock()
    }
}

impl ConnectionSlot {
    pub(crate) fn is_reserved(&self) -> bool {
        matches!(self, Self::Reserved { .. })
    }
}

impl Drop for CountedSlot {
    fn drop(&mut self) {
        self.connection_limit.taken.fetch_sub(1, Ordering::Relaxed);
        let Some(address) = self.address else { return };
        let mut by_address = self.connection_limit.by_address();
        if let Some(own) = by_address.get_mut(&address) {
            *own -= 1;
            if *own == 0 {
                by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn reserved(connection_limit: &Arc<ConnectionLimit>, address: IpAddr) -> Option<bool> {
        connection_limit
            .take(address)
            .map(|slot| slot.is_reserved())
    }

    #[test]
    fn at_the_limit_reserved_connections_remain_for_health() {
        let connection_limit = ConnectionLimit::new(10);
        let mut taken: Vec<ConnectionSlot> = (0..10)
            .filter_map(|_| connection_limit.take(HERE))
            .collect();
        assert!(taken.iter().all(|slot| !slot.is_reserved()));
        let watching: Vec<ConnectionSlot> = (0..RESERVED)
            .filter_map(|_| connection_limit.take(HERE))
            .collect();
        assert!(watching.iter().all(ConnectionSlot::is_reserved));
        assert_eq!(watching.len(), RESERVED);
        assert_eq!(
            reserved(&connection_limit, HERE),
            None,
            "these are bounded, too"
        );
        taken.pop();
        assert_eq!(reserved(&connection_limit, HERE), Some(false));
        drop(watching);
        drop(taken);
        assert_eq!(connection_limit.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_remote_address_cannot_take_all_connections() {
        let connection_limit = ConnectionLimit::new(10);
        let there: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        let same: IpAddr = "192.0.2.1".parse().unwrap();
        let other: IpAddr = "192.0.2.2".parse().unwrap();
        let taken: Vec<ConnectionSlot> = (0..8)
            .filter_map(|_| connection_limit.take(there))
            .collect();
        assert!(taken.iter().all(|slot| !slot.is_reserved()));
        assert_eq!(reserved(&connection_limit, same), Some(true));
        assert_eq!(reserved(&connection_limit, other), Some(false));
        assert_eq!(reserved(&connection_limit, HERE), Some(false));
        drop(taken);
        assert!(connection_limit.by_address().is_empty());
    }
}

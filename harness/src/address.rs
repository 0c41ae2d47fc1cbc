//! Loopback addresses of emulators: one per namespace, or one shared by all.
//!
//! Several SDKs ignore the port of an endpoint and always connect to 5672, so two emulators must differ by address: the
//! harness picks a random one of 127.64.0.0/10, and another one if its ports are taken. Where the system has only 127.0.0.1,
//! one emulator runs at a time: the namespaces of a process share it, and processes take turns.

use std::{
    env,
    ffi::OsStr,
    hash::{BuildHasher, RandomState},
    io::{self, ErrorKind, Write as _},
    net::{Ipv4Addr, TcpListener},
    sync::Once,
    time::{Duration, Instant},
};

use crate::{
    background::Background, error::Error, file_lock::PendingLock, text, variables::ADDRESS_VARIABLE,
};

/// The number of addresses that a search tries.
pub(crate) const ATTEMPTS: usize = 16;
/// How long ports may be in use by an emulator that is ending.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);
/// The pause between two attempts at the only address.
const PAUSE: Duration = Duration::from_millis(100);

/// Where emulators listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    /// Each emulator has an address of its own.
    Random,
    /// One emulator at a time, at this address.
    Fixed(Ipv4Addr),
}

impl ListenAddress {
    /// Returns the address that the environment names, else what the system offers.
    pub(crate) fn detect() -> Result<Self, Error> {
        let named = env::var_os(ADDRESS_VARIABLE).filter(|named| !named.is_empty());
        let listen = Self::choose(named.as_deref(), is_available)?;
        if let Self::Fixed(address) = listen {
            warn_once(address, named.is_some());
        }
        Ok(listen)
    }

    /// Returns the lock that allows one emulator at a time; `None` where each has an address of its own.
    pub(crate) fn pending_lock(self) -> Option<PendingLock> {
        match self {
            Self::Random => None,
            Self::Fixed(address) => Some(PendingLock::at(address)),
        }
    }

    fn choose(
        named: Option<&OsStr>,
        is_available: impl Fn(Ipv4Addr) -> bool,
    ) -> Result<Self, Error> {
        let Some(named) = named else {
            return Ok(match is_available(random()) {
                true => Self::Random,
                false => Self::Fixed(Ipv4Addr::LOCALHOST),
            });
        };
        let value = named.to_string_lossy();
        let address = value.parse().ok().filter(Ipv4Addr::is_loopback);
        match address {
            Some(address) if is_available(address) => Ok(Self::Fixed(address)),
            Some(address) => Err(Error::start(format!(
                "this system has no loopback address {address}, which {ADDRESS_VARIABLE} names; 127.0.0.1 always exists"
            ))),
            None => Err(Error::start(format!(
                "{ADDRESS_VARIABLE} is \"{value}\"; allowed: a loopback address of IPv4, such as 127.0.0.1"
            ))),
        }
    }
}

/// Looks for an address whose ports are free.
#[derive(Debug)]
pub(crate) struct AddressSearch {
    listen: ListenAddress,
    since: Instant,
    within: Duration,
    attempts: usize,
    last: String,
}

impl AddressSearch {
    pub(crate) fn new(listen: ListenAddress) -> Self {
        Self {
            listen,
            since: Instant::now(),
            within: RELEASE_TIMEOUT,
            attempts: 0,
            last: String::new(),
        }
    }

    /// Returns the next address to try, or an error when the search ends.
    pub(crate) async fn next(&mut self, background: &Background) -> Result<Ipv4Addr, Error> {
        let is_over = match self.listen {
            ListenAddress::Random => self.attempts == ATTEMPTS,
            ListenAddress::Fixed(_) => self.attempts > 0 && self.since.elapsed() >= self.within,
        };
        if is_over {
            return Err(self.failure());
        }
        self.attempts += 1;
        match self.listen {
            ListenAddress::Random => Ok(random()),
            ListenAddress::Fixed(address) => {
                if self.attempts > 1 {
                    // Real time, also when the test's runtime is paused.
                    background.spawn(tokio::time::sleep(PAUSE)).await;
                }
                Ok(address)
            }
        }
    }

    /// Records that the ports of the last address were in use.
    pub(crate) fn ports_taken(&mut self, message: String) {
        self.last = message;
    }

    fn failure(&self) -> Error {
        let last = &self.last;
        match self.listen {
            ListenAddress::Random => no_free_address(self.attempts, last),
            ListenAddress::Fixed(address) => Error::start(format!(
                "the ports of {address} have been in use for {}: {last}; no other address is available, so end the program that listens there (another emulator, a message broker), or name another loopback address in {ADDRESS_VARIABLE}",
                text::seconds(self.within)
            )),
        }
    }
}

/// Every address that the search tried is in use.
pub(crate) fn no_free_address(attempts: usize, last: &str) -> Error {
    Error::start(format!(
        "no free loopback address after {attempts} attempts; the last error was: {last}; a program that listens at 0.0.0.0, such as another broker, uses its port at every address: end it, or set other HTTP ports with `ports`"
    ))
}

/// Starts a server, and retries until the one that used its ports or its directory before has released them, or the time is
/// over. Must run on the background runtime.
pub(crate) async fn retry_while_in_use<T, E, F: Future<Output = Result<T, E>>>(
    within: Duration,
    start: impl Fn() -> F,
    is_in_use: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let since = Instant::now();
    loop {
        match start().await {
            Err(error) if is_in_use(&error) && since.elapsed() < within => {
                tokio::time::sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}

/// Returns a random address of 127.64.0.0/10 whose last octet is neither 0 nor 255.
pub(crate) fn random() -> Ipv4Addr {
    let [_, second, third, fourth] = (random_number() as u32).to_be_bytes();
    Ipv4Addr::new(127, 64 | (second & 0x3f), third, fourth.clamp(1, 254))
}

/// Returns a number that differs between processes and between calls. It need not be random otherwise.
pub(crate) fn random_number() -> u64 {
    // The standard library seeds every map differently, which avoids a dependency.
    RandomState::new().hash_one(std::process::id())
}

/// Returns whether this system has the address.
fn is_available(address: Ipv4Addr) -> bool {
    let bound = TcpListener::bind((address, 0));
    // Listening reports any other error.
    bound.map_or_else(
        |error| error.kind() != ErrorKind::AddrNotAvailable,
        |_| true,
    )
}

/// Reports once, on standard error past the capture of the test runner, that the namespaces of this process share an
/// address.
fn warn_once(address: Ipv4Addr, is_named: bool) {
    static WARNED: Once = Once::new();
    let why = match is_named {
        true => format!("{ADDRESS_VARIABLE} is {address}"),
        false => format!("this system has no loopback address beside {address}"),
    };
    WARNED.call_once(|| {
        let message = format!(
            "servicebus-harness: {why}: the namespaces of this process share one emulator there, and one process at a time uses it\n"
        );
        // The harness works without standard error.
        let _ = io::stderr().write_all(message.as_bytes());
    });
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn random_addresses_are_loopback_and_rarely_equal() {
        let drawn: HashSet<_> = (0..1000).map(|_| random()).collect();
        assert!(drawn.len() > 990);
        for address in drawn {
            assert!(address.is_loopback());
            assert_eq!(address.octets()[1] & 0xc0, 0x40);
        }
    }

    #[test]
    fn an_address_of_another_system_is_unavailable() {
        assert!(is_available(Ipv4Addr::LOCALHOST));
        // Reserved for documentation (192.0.2.0/24), so no system has it.
        assert!(!is_available(Ipv4Addr::new(192, 0, 2, 1)));
    }

    #[test]
    fn a_single_loopback_address_is_shared() {
        let only_localhost = |address: Ipv4Addr| address == Ipv4Addr::LOCALHOST;
        let chosen = |named: Option<&str>, is_available: fn(Ipv4Addr) -> bool| {
            let chosen = ListenAddress::choose(named.map(OsStr::new), is_available);
            chosen.map_err(|error| error.to_string())
        };
        assert_eq!(chosen(None, |_| true), Ok(ListenAddress::Random));
        assert_eq!(
            chosen(None, only_localhost),
            Ok(ListenAddress::Fixed(Ipv4Addr::LOCALHOST))
        );
        let other = Ipv4Addr::new(127, 1, 2, 3);
        assert_eq!(
            chosen(Some("127.1.2.3"), |_| true),
            Ok(ListenAddress::Fixed(other))
        );
        assert_eq!(
            chosen(Some("127.1.2.3"), only_localhost).unwrap_err(),
            "this system has no loopback address 127.1.2.3, which SERVICEBUS_HARNESS_ADDRESS names; 127.0.0.1 always exists"
        );
        for value in ["localhost", "10.0.0.1", "::1", ""] {
            assert_eq!(
                chosen(Some(value), |_| true).unwrap_err(),
                format!(
                    "SERVICEBUS_HARNESS_ADDRESS is \"{value}\"; allowed: a loopback address of IPv4, such as 127.0.0.1"
                )
            );
        }
    }
    #[tokio::test]
    async fn ports_in_use_are_named() {
        let background = Background::start().unwrap();
        let address = Ipv4Addr::new(127, 1, 2, 3);
        let mut search = AddressSearch {
            within: Duration::ZERO,
            ..AddressSearch::new(ListenAddress::Fixed(address))
        };
        assert_eq!(search.next(&background).await.unwrap(), address);
        search.ports_taken("cannot listen on 127.1.2.3:5672: Address in use".to_owned());
        assert_eq!(
            search.next(&background).await.unwrap_err().to_string(),
            "the ports of 127.1.2.3 have been in use for 0 s: cannot listen on 127.1.2.3:5672: Address in use; no other address is available, so end the program that listens there (another emulator, a message broker), or name another loopback address in SERVICEBUS_HARNESS_ADDRESS"
        );
        // The search retries until its time has passed.
        let mut search = AddressSearch::new(ListenAddress::Fixed(address));
        for _ in 0..2 {
            assert_eq!(search.next(&background).await.unwrap(), address);
        }
    }
}

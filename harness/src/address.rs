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
/// How long the ports of the only address may be in use by an emulator that is ending.
const FREE_WITHIN: Duration = Duration::from_secs(20);
/// The pause between two attempts at the only address.
const PAUSE: Duration = Duration::from_millis(100);

/// Where emulators listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Each emulator has an address of its own.
    Anywhere,
    /// One emulator at a time, at this address.
    Only(Ipv4Addr),
}

impl Place {
    /// Returns the address that the environment names, else what the system offers.
    pub(crate) fn of_system() -> Result<Self, Error> {
        let named = env::var_os(ADDRESS_VARIABLE).filter(|named| !named.is_empty());
        let place = Self::choose(named.as_deref(), is_there)?;
        if let Self::Only(address) = place {
            say_once(address, named.is_some());
        }
        Ok(place)
    }

    /// Returns the lock that allows one emulator at a time; `None` where each has an address of its own.
    pub(crate) fn waiting(self) -> Option<PendingLock> {
        match self {
            Self::Anywhere => None,
            Self::Only(address) => Some(PendingLock::at(address)),
        }
    }

    fn choose(named: Option<&OsStr>, is_there: impl Fn(Ipv4Addr) -> bool) -> Result<Self, Error> {
        let Some(named) = named else {
            return Ok(match is_there(random()) {
                true => Self::Anywhere,
                false => Self::Only(Ipv4Addr::LOCALHOST),
            });
        };
        let value = named.to_string_lossy();
        let address = value.parse().ok().filter(Ipv4Addr::is_loopback);
        match address {
            Some(address) if is_there(address) => Ok(Self::Only(address)),
            Some(address) => Err(Error::start(format!(
                "this system has no loopback address {address}, which {ADDRESS_VARIABLE} names; 127.0.0.1 is always there"
            ))),
            None => Err(Error::start(format!(
                "{ADDRESS_VARIABLE} is \"{value}\"; allowed: a loopback address of IPv4, such as 127.0.0.1"
            ))),
        }
    }
}

/// Looks for an address whose ports are free.
#[derive(Debug)]
pub(crate) struct Search {
    place: Place,
    since: Instant,
    within: Duration,
    attempts: usize,
    last: String,
}

impl Search {
    pub(crate) fn new(place: Place) -> Self {
        Self {
            place,
            since: Instant::now(),
            within: FREE_WITHIN,
            attempts: 0,
            last: String::new(),
        }
    }

    /// Returns the next address to try, or an error when the search ends.
    pub(crate) async fn next(&mut self, background: &Background) -> Result<Ipv4Addr, Error> {
        let is_over = match self.place {
            Place::Anywhere => self.attempts == ATTEMPTS,
            Place::Only(_) => self.attempts > 0 && self.since.elapsed() >= self.within,
        };
        if is_over {
            return Err(self.failure());
        }
        self.attempts += 1;
        match self.place {
            Place::Anywhere => Ok(random()),
            Place::Only(address) => {
                if self.attempts > 1 {
                    // Real time, also when the test's runtime is paused.
                    background.spawn(tokio::time::sleep(PAUSE)).await;
                }
                Ok(address)
            }
        }
    }

    /// Records that the ports of the last address were in use.
    pub(crate) fn taken(&mut self, message: String) {
        self.last = message;
    }

    fn failure(&self) -> Error {
        let last = &self.last;
        match self.place {
            Place::Anywhere => no_address(self.attempts, last),
            Place::Only(address) => Error::start(format!(
                "the ports of {address} are taken for {} by now: {last}; namespaces have no other address here, so end what listens there (another emulator, a message broker), or name another loopback address in {ADDRESS_VARIABLE}",
                text::seconds(self.within)
            )),
        }
    }
}

/// Every address that the search tried is in use.
pub(crate) fn no_address(attempts: usize, last: &str) -> Error {
    Error::start(format!(
        "no free loopback address after {attempts} attempts; the last one said: {last}; a program that listens at 0.0.0.0, such as another broker, has its port at every address: end it, or have other ports for HTTP by `ports`"
    ))
}

/// Restarts a server at its own address, and retries until the process that used its ports has released them. Must run on
/// the background runtime.
pub(crate) async fn free_again<T, E, F: Future<Output = Result<T, E>>>(
    start: impl Fn() -> F,
    is_taken: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let since = Instant::now();
    loop {
        match start().await {
            Err(error) if is_taken(&error) && since.elapsed() < FREE_WITHIN => {
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
fn is_there(address: Ipv4Addr) -> bool {
    let bound = TcpListener::bind((address, 0));
    // Listening reports any other error.
    bound.map_or_else(
        |error| error.kind() != ErrorKind::AddrNotAvailable,
        |_| true,
    )
}

/// Reports once, on standard error past the capture of the test runner, that the namespaces of this process share an
/// address.
fn say_once(address: Ipv4Addr, is_named: bool) {
    static SAID: Once = Once::new();
    let why = match is_named {
        true => format!("{ADDRESS_VARIABLE} is {address}"),
        false => format!("this system has no loopback address beside {address}"),
    };
    SAID.call_once(|| {
        let message = format!(
            "servicebus-harness: {why}: the namespaces of this process share one emulator there, and processes take turns\n"
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
    fn addresses_are_loopback_and_rarely_meet() {
        let drawn: HashSet<_> = (0..1000).map(|_| random()).collect();
        assert!(drawn.len() > 990);
        for address in drawn {
            assert!(address.is_loopback());
            assert_eq!(address.octets()[1] & 0xc0, 0x40);
        }
    }

    #[test]
    fn an_address_of_another_system_is_not_there() {
        assert!(is_there(Ipv4Addr::LOCALHOST));
        // Reserved for documentation (192.0.2.0/24), so no system has it.
        assert!(!is_there(Ipv4Addr::new(192, 0, 2, 1)));
    }

    #[test]
    fn where_127_0_0_1_is_alone_it_is_for_all() {
        let alone = |address: Ipv4Addr| address == Ipv4Addr::LOCALHOST;
        let chosen = |named: Option<&str>, is_there: fn(Ipv4Addr) -> bool| {
            let chosen = Place::choose(named.map(OsStr::new), is_there);
            chosen.map_err(|error| error.to_string())
        };
        assert_eq!(chosen(None, |_| true), Ok(Place::Anywhere));
        assert_eq!(chosen(None, alone), Ok(Place::Only(Ipv4Addr::LOCALHOST)));
        let other = Ipv4Addr::new(127, 1, 2, 3);
        assert_eq!(chosen(Some("127.1.2.3"), |_| true), Ok(Place::Only(other)));
        assert_eq!(
            chosen(Some("127.1.2.3"), alone).unwrap_err(),
            "this system has no loopback address 127.1.2.3, which SERVICEBUS_HARNESS_ADDRESS names; 127.0.0.1 is always there"
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
    async fn ports_that_stay_taken_are_named() {
        let background = Background::start().unwrap();
        let address = Ipv4Addr::new(127, 1, 2, 3);
        let mut search = Search {
            within: Duration::ZERO,
            ..Search::new(Place::Only(address))
        };
        assert_eq!(search.next(&background).await.unwrap(), address);
        search.taken("cannot listen on 127.1.2.3:5672: Address in use".to_owned());
        assert_eq!(
            search.next(&background).await.unwrap_err().to_string(),
            "the ports of 127.1.2.3 are taken for 0 s by now: cannot listen on 127.1.2.3:5672: Address in use; namespaces have no other address here, so end what listens there (another emulator, a message broker), or name another loopback address in SERVICEBUS_HARNESS_ADDRESS"
        );
        // The search retries until its time has passed.
        let mut search = Search::new(Place::Only(address));
        for _ in 0..2 {
            assert_eq!(search.next(&background).await.unwrap(), address);
        }
    }
}

//! Loopback addresses for buses of their own.
//!
//! Several SDKs drop the port of an endpoint and always dial 5672, so two emulators cannot differ by port.
//! They differ by address: one out of 127.64.0.0/10 at random, and another one when it is taken.

use std::{
    hash::{BuildHasher, RandomState},
    net::Ipv4Addr,
};

/// How many addresses are tried before the search is given up.
pub(crate) const ATTEMPTS: usize = 16;

/// Draws an address from 127.64.0.0/10 whose last octet is neither 0 nor 255.
pub(crate) fn random() -> Ipv4Addr {
    let [_, second, third, fourth] = (random_number() as u32).to_be_bytes();
    Ipv4Addr::new(127, 64 | (second & 0x3f), third, fourth.clamp(1, 254))
}

/// Draws a number that differs between processes and calls; nothing more is asked of it.
pub(crate) fn random_number() -> u64 {
    // The standard library keys every map differently: random enough, and no dependency.
    RandomState::new().hash_one(std::process::id())
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
}

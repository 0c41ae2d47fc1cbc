//! The loopback addresses of one container.
//!
//! The container's certificate must hold for all of them at its start, and every process that shares the container must know
//! them. So they form one network, derived from the container's name.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::Ipv4Addr,
};

use crate::address::random_number;

/// The number of addresses; the last octet is neither 0 nor 255.
const SIZE: u8 = 254;

/// A network within 127.64.0.0/10 whose addresses differ in the last octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    second: u8,
    third: u8,
}

impl Network {
    /// Returns the network of a container, which is the same in every process.
    pub(crate) fn of(container: &str) -> Self {
        // Unlike that of a map, this hasher has fixed keys.
        let mut hasher = DefaultHasher::new();
        container.hash(&mut hasher);
        let [first, second, ..] = hasher.finish().to_be_bytes();
        Self {
            second: 64 | (first & 0x3f),
            third: second,
        }
    }

    pub(crate) fn addresses(self) -> impl Iterator<Item = Ipv4Addr> {
        self.beginning_at(0)
    }

    /// Returns all addresses, beginning at a random one.
    pub(crate) fn addresses_from_random(self) -> impl Iterator<Item = Ipv4Addr> {
        self.beginning_at((random_number() % u64::from(SIZE)) as u8)
    }

    fn beginning_at(self, start: u8) -> impl Iterator<Item = Ipv4Addr> {
        let last = (start..SIZE).chain(0..start).map(|offset| offset + 1);
        last.map(move |last| Ipv4Addr::new(127, self.second, self.third, last))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_container_has_its_own_network() {
        let networks: Vec<_> = (0..100)
            .map(|number| Network::of(&format!("emulator-{number}")))
            .collect();
        assert_eq!(networks[7], Network::of("emulator-7"));
        let differing: BTreeSet<_> = networks.iter().map(|own| (own.second, own.third)).collect();
        assert!(differing.len() > 90);
        assert!(networks.iter().all(|own| own.second & 0xc0 == 0x40));
    }

    #[test]
    fn every_address_is_returned_from_any_start() {
        let network = Network::of("emulator");
        let all: Vec<_> = network.addresses().collect();
        assert_eq!((all.len(), all[0].octets()[3]), (254, 1));
        for start in [1, 100, 253] {
            let mut rotated: Vec<_> = network.beginning_at(start).collect();
            assert_eq!(rotated[0].octets()[3], start + 1);
            rotated.sort_unstable();
            assert_eq!(rotated, all);
        }
        assert!(
            network
                .addresses_from_random()
                .all(|address| all.contains(&address))
        );
    }
}

//! Repeatable randomness: the result for an operation depends only on a seed and its number on its entity, so that
//! operations elsewhere and the order of threads change nothing.

use servicebus_broker::{IdSource as _, SplitMix64};

/// The random numbers of one operation.
#[derive(Debug)]
pub(crate) struct SeededRng(SplitMix64);

impl SeededRng {
    pub(crate) fn of(seed: u64, operation: &str, entity: &str, number: u64) -> Self {
        let mut rng = SplitMix64(seed);
        let characters = operation.bytes().chain([0]).chain(entity.bytes());
        for character in characters {
            rng.0 ^= u64::from(character.to_ascii_lowercase());
            rng.0 = rng.next();
        }
        rng.0 = rng.0.wrapping_add(number);
        Self(rng)
    }

    /// Returns a number from 0 up to, but not including, 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        // As many bits as a double has.
        (self.0.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns one of several.
    pub(crate) fn choose<'a, T>(&mut self, among: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(among.len()).ok().filter(|count| *count > 0)?;
        among.get(usize::try_from(self.0.next() % count).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_fault_depends_on_seed_entity_and_number_only() {
        let draw = |seed, entity, number| SeededRng::of(seed, "send", entity, number).fraction();
        assert_eq!(draw(7, "orders", 3), draw(7, "Orders", 3));
        assert_ne!(draw(7, "orders", 3), draw(8, "orders", 3));
        assert_ne!(draw(7, "orders", 3), draw(7, "audit", 3));
        assert_ne!(draw(7, "orders", 3), draw(7, "orders", 4));
    }

    #[test]
    fn random_fractions_cover_the_whole_range() {
        let draws = (1..=1000).map(|number| SeededRng::of(1, "send", "orders", number).fraction());
        let below = draws.filter(|fraction| *fraction < 0.25).count();
        assert!((200..300).contains(&below), "{below} of 1000");
    }

    #[test]
    fn choosing_from_an_empty_slice_returns_none() {
        let mut rng = SeededRng::of(1, "send", "orders", 1);
        assert_eq!(rng.choose::<u8>(&[]), None);
        assert_eq!(rng.choose(&[5]), Some(&5));
    }
}

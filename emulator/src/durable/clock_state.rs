//! The clock of a namespace as a row.

/// The state of a clock, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// How far it is ahead of real time while it runs.
    pub(crate) offset: i64,
    pub(crate) frozen_at: Option<i64>,
    /// Whether it steps automatically.
    pub(crate) is_automatic: bool,
    /// Its time when the state was stored.
    pub(crate) now: i64,
}

/// Flags in the first byte of a row.
const FROZEN: u8 = 1;
const AUTOMATIC: u8 = 2;

impl ClockState {
    pub(super) fn encode(&self) -> Vec<u8> {
        let frozen = u8::from(self.frozen_at.is_some()) * FROZEN;
        let automatic = u8::from(self.is_automatic) * AUTOMATIC;
        let flags = [frozen | automatic];
        let numbers = [self.offset, self.frozen_at.unwrap_or(0), self.now].map(i64::to_be_bytes);
        [&flags[..], numbers.as_flattened()].concat()
    }

    pub(super) fn decode(row: &[u8]) -> Option<Self> {
        let (&flags, numbers) = row.split_first()?;
        let (numbers, []) = numbers.as_chunks() else {
            return None;
        };
        let [offset, frozen_at, now] = numbers else {
            return None;
        };
        Some(Self {
            offset: i64::from_be_bytes(*offset),
            frozen_at: (flags & FROZEN != 0).then(|| i64::from_be_bytes(*frozen_at)),
            is_automatic: flags & AUTOMATIC != 0,
            now: i64::from_be_bytes(*now),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_clock_is_read_as_it_was_also_without_the_automatic_flag() {
        for (frozen_at, is_automatic, flags) in
            [(None, false, 0), (Some(7), false, 1), (Some(7), true, 3)]
        {
            let state = ClockState {
                offset: -5,
                frozen_at,
                is_automatic,
                now: 9,
            };
            let row = state.encode();
            assert_eq!(row[0], flags);
            assert_eq!(ClockState::decode(&row), Some(state));
        }
    }
}

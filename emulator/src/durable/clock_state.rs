//! The clock of a namespace as a row.

/// The state of a clock, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockState {
    /// How far it is ahead of real time while it runs.
    pub(crate) offset: i64,
    pub(crate) frozen_at: Option<i64>,
    /// Its time when the state was stored.
    pub(crate) now: i64,
}

impl ClockState {
    pub(super) fn encode(&self) -> Vec<u8> {
        let frozen = [u8::from(self.frozen_at.is_some())];
        let numbers = [self.offset, self.frozen_at.unwrap_or(0), self.now].map(i64::to_be_bytes);
        [&frozen[..], numbers.as_flattened()].concat()
    }

    pub(super) fn decode(row: &[u8]) -> Option<Self> {
        let (&is_frozen, numbers) = row.split_first()?;
        let (numbers, []) = numbers.as_chunks() else {
            return None;
        };
        let [offset, frozen_at, now] = numbers else {
            return None;
        };
        Some(Self {
            offset: i64::from_be_bytes(*offset),
            frozen_at: (is_frozen != 0).then(|| i64::from_be_bytes(*frozen_at)),
            now: i64::from_be_bytes(*now),
        })
    }
}

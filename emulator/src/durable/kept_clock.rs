//! The clock of a namespace as a row.

/// How a namespace's clock stands: in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptClock {
    /// Ahead of real time while it flows.
    pub(crate) offset: i64,
    /// Where it stands still.
    pub(crate) frozen_at: Option<i64>,
    /// What it showed.
    pub(crate) now: i64,
}

impl KeptClock {
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

//! A part of a record, by positions.

/// Which part of the record is asked for, by positions.
pub(crate) struct Page {
    pub(crate) after: u64,
    pub(crate) before: u64,
    /// How many events may still be told.
    pub(crate) left: usize,
    /// Whether these are the newest of them.
    pub(crate) is_newest: bool,
    /// Where there are more: the last one that was told, or the first one of the newest.
    pub(crate) next: Option<u64>,
}

impl Page {
    /// Whether the event at this position is told; none where no more are.
    pub(crate) fn take(&mut self, position: u64) -> Option<bool> {
        if position <= self.after {
            return Some(false);
        }
        if position >= self.before {
            self.next = self.next.filter(|_| self.is_newest);
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        if !self.is_newest {
            self.next = Some(position);
        }
        Some(true)
    }
}

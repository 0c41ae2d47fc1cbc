//! The ids of sessions, links and deliveries of a connection.
//!
//! Transfer ids, delivery ids and delivery counts use serial-number arithmetic (RFC 1982): two ids are never compared as
//! plain numbers.

/// A session; unique on its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(crate) u64);

/// A link; unique on its connection, and ordered by the time of attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u64);

impl From<LinkId> for u64 {
    fn from(id: LinkId) -> Self {
        id.0
    }
}

/// The delivery-id of a delivery on its session (AMQP 1.0 §2.8.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeliveryNumber(pub u32);

impl LinkId {
    /// Creates the id of the `generation`-th link, on this channel and handle.
    pub(crate) fn new(generation: u32, channel: u16, handle: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(channel) << 16 | u64::from(handle as u16))
    }

    pub(crate) fn channel(self) -> u16 {
        (self.0 >> 16) as u16
    }

    pub(crate) fn handle(self) -> u32 {
        u32::from(self.0 as u16)
    }
}

/// The peer's end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkRole {
    /// The peer sends.
    Sender,
    /// The peer receives.
    Receiver,
}

/// Returns what is left of `grant`, given at `base`, for a counter at `position`.
///
/// Both the session window (AMQP 1.0 §2.5.6) and link credit (§2.6.7) are computed this way, in 64 bits, because a grant may
/// be as large as 2^32 - 1 (spec/wire.md §1.5, .NET).
pub(crate) fn remaining(base: u32, grant: u32, position: u32) -> u32 {
    let behind = i64::from(base.wrapping_sub(position).cast_signed());
    (behind + i64::from(grant)).clamp(0, i64::from(u32::MAX)) as u32
}

/// Returns the full form of a wire id, which is within 2^31 of `next`, the next unused one.
pub(crate) fn widen(id: u32, next: u64) -> u64 {
    let distance = i64::from(id.wrapping_sub(next as u32).cast_signed());
    next.wrapping_add_signed(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_shrinks_as_the_counter_advances() {
        assert_eq!(remaining(10, 5, 12), 3);
        assert_eq!(remaining(10, 5, 15), 0);
        assert_eq!(remaining(10, 5, 20), 0);
    }

    #[test]
    fn a_grant_spans_the_wrap() {
        assert_eq!(remaining(u32::MAX, 5, 1), 3);
        assert_eq!(remaining(u32::MAX - 1, 5, u32::MAX), 4);
    }

    #[test]
    fn the_largest_grant_is_not_negative() {
        assert_eq!(remaining(0, u32::MAX, 0), u32::MAX);
        assert_eq!(remaining(7, u32::MAX, 9), u32::MAX - 2);
        assert_eq!(remaining(9, u32::MAX, 7), u32::MAX);
    }

    #[test]
    fn delivery_ids_are_widened_relative_to_the_next_id() {
        let next = (1 << 32) + 5;
        assert_eq!(widen(4, next), next - 1);
        assert_eq!(widen(5, next), next);
        assert_eq!(widen(u32::MAX, next), (1 << 32) - 1);
    }
}

//! The payload of a delivery in several frames: kept in the pieces in which it came, and joined once.

use bytes::{Bytes, BytesMut};

/// Pieces from this size on stay slices of the block they were read in. Smaller ones are copied, or a few
/// bytes would keep a whole block alive.
const SHARE_BYTES: usize = 16 * 1024;
/// Small pieces are collected up to this size.
const COLLECT_BYTES: usize = 64 * 1024;

/// Pieces of one payload, in order.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    pieces: Vec<Bytes>,
    /// Small pieces that came after the last of `pieces`.
    collected: BytesMut,
    len: usize,
}

impl Gather {
    /// Bytes of all pieces.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds the next piece.
    pub(crate) fn push(&mut self, piece: Bytes) {
        self.len += piece.len();
        let small = piece.len() < SHARE_BYTES;
        if !small || self.collected.len() + piece.len() > COLLECT_BYTES {
            self.close_collection();
        }
        if small {
            self.collected.extend_from_slice(&piece);
        } else {
            self.pieces.push(piece);
        }
    }

    /// The payload in memory of exactly its size. Each piece is let go once it has been copied, so that a
    /// large payload is never there twice.
    pub(crate) fn join(mut self) -> Bytes {
        self.close_collection();
        let mut joined = Vec::with_capacity(self.len);
        for piece in self.pieces {
            joined.extend_from_slice(&piece);
        }
        joined.into()
    }

    fn close_collection(&mut self) {
        if !self.collected.is_empty() {
            self.pieces.push(self.collected.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice in the middle of a block of its own.
    fn piece(byte: u8, len: usize) -> Bytes {
        Bytes::from(vec![byte; len + 10]).slice(5..5 + len)
    }

    #[test]
    fn pieces_of_all_sizes_are_joined_in_order() {
        let sizes = [
            0,
            1,
            SHARE_BYTES - 1,
            SHARE_BYTES,
            7,
            COLLECT_BYTES,
            100_000,
            3,
        ];
        let many = std::iter::repeat_n(5, 40_000);
        let mut gather = Gather::default();
        let mut expected = Vec::new();
        for (byte, len) in sizes.into_iter().chain(many).enumerate() {
            gather.push(piece(byte as u8, len));
            expected.extend(vec![byte as u8; len]);
            assert_eq!(gather.len(), expected.len());
        }
        assert_eq!(gather.join(), expected);
    }

    #[test]
    fn large_pieces_are_kept_and_small_ones_copied() {
        let mut gather = Gather::default();
        let (small, large) = (piece(1, SHARE_BYTES - 1), piece(2, SHARE_BYTES));
        gather.push(small.clone());
        gather.push(large.clone());
        assert!(small.is_unique());
        assert!(!large.is_unique());
        gather.join();
        assert!(large.is_unique());
    }

    #[test]
    fn what_is_kept_is_in_proportion_to_what_came() {
        let mut gather = Gather::default();
        for _ in 0..100_000 {
            gather.push(piece(1, 10));
        }
        let kept: usize = gather.pieces.iter().map(Bytes::len).sum();
        assert_eq!(kept + gather.collected.len(), gather.len());
        assert!(gather.pieces.len() <= gather.len() / (COLLECT_BYTES - SHARE_BYTES) + 1);
    }

    #[test]
    fn the_joined_payload_has_exactly_its_size() {
        let mut gather = Gather::default();
        gather.push(piece(1, 100_000));
        gather.push(piece(1, 1));
        let joined = gather.join().try_into_mut().unwrap();
        assert_eq!(joined.capacity(), 100_001);
    }
}

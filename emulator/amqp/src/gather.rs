//! The payload of a delivery in several frames, out of the blocks in which they were read: a slice of a block would keep
//! all of it, so that nothing could be said of how much a peer makes us keep.

use bytes::Bytes;

/// Frames are collected up to this size. One piece of memory for all would be copied whenever it grows.
const CHUNK_BYTES: usize = 64 * 1024;

/// The frames of one payload so far, in order.
#[derive(Debug, Default)]
pub(crate) struct Gather {
    chunks: Vec<Vec<u8>>,
    /// What came after the last of `chunks`.
    last: Vec<u8>,
    len: usize,
}

impl Gather {
    /// Bytes of all frames.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds the payload of the next frame.
    pub(crate) fn push(&mut self, payload: &[u8]) {
        self.len += payload.len();
        if self.last.len() + payload.len() > CHUNK_BYTES && !self.last.is_empty() {
            self.chunks.push(std::mem::take(&mut self.last));
        }
        self.last.extend_from_slice(payload);
    }

    /// The payload in memory of exactly its size. Each chunk is let go once it has been copied, so that a
    /// large payload is never there twice.
    pub(crate) fn join(self) -> Bytes {
        let mut joined = Vec::with_capacity(self.len);
        for chunk in self.chunks.into_iter().chain([self.last]) {
            joined.extend_from_slice(&chunk);
        }
        joined.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_sizes_are_joined_in_order() {
        let sizes = [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 7, 100_000, 3];
        let many = std::iter::repeat_n(5, 40_000);
        let mut gather = Gather::default();
        let mut expected = Vec::new();
        for (byte, len) in sizes.into_iter().chain(many).enumerate() {
            let payload = vec![byte as u8; len];
            gather.push(&payload);
            expected.extend(payload);
            assert_eq!(gather.len(), expected.len());
        }
        assert_eq!(gather.join(), expected);
    }

    #[test]
    fn what_is_kept_is_in_proportion_to_what_came() {
        let mut gather = Gather::default();
        for _ in 0..100_000 {
            gather.push(&[1; 10]);
        }
        let chunks = gather.chunks.iter().chain([&gather.last]);
        let kept: usize = chunks.map(Vec::capacity).sum();
        assert!(kept <= 2 * gather.len(), "{kept} for {}", gather.len());
    }

    #[test]
    fn the_joined_payload_has_exactly_its_size() {
        let mut gather = Gather::default();
        gather.push(&[1; 100_000]);
        gather.push(&[1]);
        let joined = gather.join().try_into_mut().unwrap();
        assert_eq!(joined.capacity(), 100_001);
    }
}

//! The bytes to write: one growing buffer into which large shared payloads are spliced by reference. It has no limit; its
//! owner checks [`Output::len`] and stops adding more. A splice has a fixed offset in the stream, so dropping written bytes
//! never moves it.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::Bytes;

/// Written bytes are dropped from the buffer once there are this many and they outweigh the rest.
const COMPACT_BYTES: usize = 256 * 1024;
/// An empty buffer larger than this is freed.
const RETAIN_BYTES: usize = 1024 * 1024;

/// The bytes that wait to be written to the socket.
#[derive(Debug, Default)]
pub struct Output {
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were written.
    written: usize,
    /// Bytes that were dropped from the front of `buffer` in total.
    dropped: u64,
    splices: VecDeque<Splice>,
    /// Bytes of all splices.
    shared: usize,
}

/// A shared payload that precedes the byte of the buffer with this offset.
#[derive(Debug)]
struct Splice {
    before: u64,
    bytes: Bytes,
}

impl Output {
    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of bytes to write.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.written + self.shared
    }

    /// Fills `slices` with the next bytes in order; returns how many were filled.
    pub fn chunks<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut position = self.written;
        let mut splices = self.splices.iter();
        let mut next = splices.next();
        while let Some(slot) = slices.get_mut(filled) {
            let end = next.map_or(self.buffer.len(), |splice| self.index(splice));
            if position < end {
                *slot = IoSlice::new(&self.buffer[position..end]);
                position = end;
            } else if let Some(splice) = next {
                *slot = IoSlice::new(&splice.bytes);
                next = splices.next();
            } else {
                break;
            }
            filled += 1;
        }
        filled
    }

    /// Removes the first `count` bytes, which have been written.
    pub fn advance(&mut self, mut count: usize) {
        count = count.min(self.len());
        while count > 0 {
            let front = self.splices.front().map(|splice| self.index(splice));
            let end = front.unwrap_or(self.buffer.len());
            if self.written < end {
                let step = count.min(end - self.written);
                self.written += step;
                count -= step;
                continue;
            }
            let Some(splice) = self.splices.front_mut() else {
                break;
            };
            let step = count.min(splice.bytes.len());
            let _ = splice.bytes.split_to(step);
            self.shared -= step;
            count -= step;
            if splice.bytes.is_empty() {
                self.splices.pop_front();
            }
        }
        self.compact();
    }

    /// Returns the buffer to append frames to.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Appends bytes without copying them.
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.shared += bytes.len();
        self.splices.push_back(Splice {
            before: self.dropped + self.buffer.len() as u64,
            bytes,
        });
    }

    /// Frees spare memory of an idle connection.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            self.restart();
            self.buffer = Vec::new();
            self.splices = VecDeque::new();
        }
    }

    fn index(&self, splice: &Splice) -> usize {
        (splice.before - self.dropped) as usize
    }

    fn compact(&mut self) {
        if self.is_empty() {
            self.restart();
            if self.buffer.capacity() > RETAIN_BYTES {
                self.buffer = Vec::new();
            }
        } else if self.written >= COMPACT_BYTES && self.written >= self.buffer.len() / 2 {
            self.buffer.drain(..self.written);
            self.dropped += self.written as u64;
            self.written = 0;
        }
    }

    fn restart(&mut self) {
        self.dropped += self.buffer.len() as u64;
        self.buffer.clear();
        self.written = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(output: &mut Output, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 3];
            let filled = output.chunks(&mut slices);
            assert!(filled > 0);
            let flat: Vec<u8> = slices[..filled].iter().flat_map(|s| s.to_vec()).collect();
            let taken = flat.len().min(step);
            all.extend_from_slice(&flat[..taken]);
            output.advance(taken);
        }
        all
    }

    #[test]
    fn shared_bytes_keep_their_position_however_much_is_written_at_once() {
        for step in 1..20 {
            let mut output = Output::default();
            output.share(Bytes::from_static(b"ab"));
            output.buffer().extend_from_slice(b"cdef");
            output.share(Bytes::from_static(b"gh"));
            output.share(Bytes::from_static(b"i"));
            output.buffer().extend_from_slice(b"jk");
            assert_eq!(output.len(), 11);
            assert_eq!(drain(&mut output, step), b"abcdefghijk");
        }
    }

    #[test]
    fn compaction_does_not_move_splices() {
        let mut output = Output::default();
        output
            .buffer()
            .extend_from_slice(&vec![1; 3 * COMPACT_BYTES]);
        output.share(Bytes::from_static(b"x"));
        output.buffer().extend_from_slice(&[2; 10]);
        output.advance(2 * COMPACT_BYTES);
        output.share(Bytes::from_static(b"y"));
        let rest = drain(&mut output, 1000);
        assert_eq!(rest.len(), COMPACT_BYTES + 12);
        assert_eq!(rest[COMPACT_BYTES], b'x');
        assert_eq!(rest[COMPACT_BYTES + 11], b'y');
    }

    #[test]
    fn advancing_beyond_the_end_empties_the_output() {
        let mut output = Output::default();
        output.buffer().push(1);
        output.advance(5);
        assert!(output.is_empty());
        output.release();
        assert_eq!(output.len(), 0);
    }
}

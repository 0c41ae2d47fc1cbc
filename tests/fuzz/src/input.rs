//! The bytes of a fuzzer as a source of decisions: the same bytes always mean the same, and where they end everything
//! is zero.
//!
//! Where inputs begin: the fixtures of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// What is left of an input.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Starts at the beginning.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Whether every byte was used.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Bytes of a fixed number.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// A number of any size.
    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    /// A number below `end`, which is at most 65,536 and not 0.
    pub fn below(&mut self, end: usize) -> usize {
        let number = match end {
            0..=256 => usize::from(self.byte()),
            _ => usize::from(u16::from_be_bytes(self.array())),
        };
        number % end
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// One of several seeds.
    pub fn seed<'s>(&mut self, seeds: &'s [Vec<u8>]) -> &'s [u8] {
        &seeds[self.below(seeds.len())]
    }

    /// A number of bytes below `end` that the input says.
    pub fn bytes(&mut self, end: usize) -> &'a [u8] {
        let length = self.below(end);
        self.take(length)
    }

    /// A text of printable characters, below `end` of them.
    pub fn word(&mut self, end: usize) -> String {
        let bytes = self.bytes(end);
        bytes
            .iter()
            .map(|byte| char::from(b' ' + byte % 95))
            .collect()
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        taken
    }
}

/// One of `seeds` with a few changes, or, once in eight, the input itself.
pub fn altered(input: &mut Input<'_>, seeds: &[Vec<u8>]) -> Vec<u8> {
    if input.one_in(8) {
        return input.rest().to_vec();
    }
    let mut bytes = input.seed(seeds).to_vec();
    for _ in 0..input.below(8) {
        alter(input, &mut bytes, seeds);
    }
    bytes
}

/// The same of texts; what is not UTF-8 any more is replaced.
pub fn altered_text(input: &mut Input<'_>, seeds: &[Vec<u8>]) -> String {
    String::from_utf8_lossy(&altered(input, seeds)).into_owned()
}

fn alter(input: &mut Input<'_>, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let begin = input.below(bytes.len().clamp(1, 65_536));
    let end = (begin + input.below(32)).min(bytes.len());
    match input.below(6) {
        0 => {
            bytes.drain(begin..end);
        }
        1 => {
            let again = bytes[begin..end].to_vec();
            bytes.splice(begin..begin, again);
        }
        2 => {
            let other = input.seed(seeds);
            let from = input.below(other.len().clamp(1, 65_536));
            let to = (from + input.below(64)).min(other.len());
            bytes.splice(begin..end, other[from..to].iter().copied());
        }
        3 => {
            bytes.splice(begin..begin, input.bytes(16).iter().copied());
        }
        4 => {
            bytes.splice(begin..end, input.bytes(16).iter().copied());
        }
        _ => {
            if let Some(byte) = bytes.get_mut(begin) {
                *byte = input.byte();
            }
        }
    }
}

/// The contents of all files of a folder of fixtures that end like this, in the order of their names.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let entries = fs::read_dir(root.join(folder)).expect("a folder of fixtures");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths
        .iter()
        .map(|path| fs::read(path).expect("a fixture"))
        .collect()
}

/// The lines of such files up to the first bar, which separates cases of filters.
pub(crate) fn cases(folder: &str) -> Vec<Vec<u8>> {
    let texts = files(folder, ".txt");
    let texts = texts.iter().map(|bytes| String::from_utf8_lossy(bytes));
    let mut cases = Vec::new();
    for text in texts {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let conditions = lines.filter_map(|line| line.split(" | ").next());
        cases.extend(conditions.map(|case| case.as_bytes().to_vec()));
    }
    cases.retain(|case| !case.is_empty());
    cases
}

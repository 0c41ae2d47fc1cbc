//! How much a turn does before others have theirs.

/// Bytes read in one go; small payloads are copied out of the block, so that it is used again.
pub(crate) const READ_BLOCK: usize = 64 * 1024;
/// Bytes read in one turn before others have theirs.
pub(crate) const READ_TURN: usize = 512 * 1024;
/// Events handled in one turn: about as many attaches as take 2 ms, and more transfers than are read in one.
pub(crate) const HANDLED_AT_ONCE: usize = 1024;
/// Past this much unwritten output nothing more is taken from a store.
pub(crate) const OUTPUT_HIGH: usize = 256 * 1024;
/// Past this much nothing more is read either.
pub(crate) const OUTPUT_FULL: usize = 512 * 1024;

//! What several test programs of this workspace share: the programs that tests start, tests in a process of their own,
//! failure texts without what differs between runs, and the matrix of messages that must arrive bit for bit.

pub mod built;
pub mod child;
pub mod comparison;
pub mod letters;
pub mod normalised;

//! Work that happens as a whole or not at all (semantics §12; decision D3).

mod atomic;
mod entities;
mod limits;
mod locks;
mod partitions;
mod recording;
mod scheduling;
mod sending;
mod sessions;
mod settling;
mod via;

//! The rules of a queue, one at a time (semantics §2 to §11, §14 to §17 and the decisions on them).

mod bus;
mod credit;
mod dead_letter_forwarding;
mod dead_letters;
mod deferral;
mod expiry;
mod forwarding;
mod idle;
mod inspecting;
mod limits;
mod locks;
mod nothing_lost;
mod partitions;
mod persistence;
mod scheduling;
mod selecting;
/// Message sessions (semantics §6; decisions D2, D10, D17, D27).
mod sessions {
    mod accepting;
    mod deferred;
    mod listing;
    mod losing;
    mod order;
}
mod settling;
mod status;
mod topics;
/// Work that happens as a whole or not at all (semantics §12; decision D3).
mod transactions {
    mod atomic;
    mod entities;
    mod limits;
    mod locks;
    mod sending;
    mod settling;
    mod via;
}
mod updating;
mod world;

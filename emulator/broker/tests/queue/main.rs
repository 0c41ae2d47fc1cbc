//! The rules of a queue, one at a time (semantics §2 to §11, §14 to §17 and the decisions on them).

mod bus;
mod credit;
mod dead_letter_forwarding;
mod dead_letters;
mod deferral;
mod detaching;
mod duplicates;
mod expiry;
mod forwarding;
mod idle;
mod limits;
mod locks;
mod nothing_lost;
mod on_receive;
mod partitions;
mod peeking;
mod scheduling;
mod sessions;
mod settling;
mod status;
mod topics;
mod transactions;
mod updating;
mod world;

//! The control API, by which tests own time and look inside.

mod clock;
mod counts;
mod doors;
mod errors;
mod namespaces;
mod queues;
mod settled;
mod timeline;

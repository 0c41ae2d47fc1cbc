//! The control API, by which tests own time and look inside.

mod automatic_clock;
mod clock;
mod errors;
mod explain;
mod faults;
mod messages;
mod openapi;
mod operations;
mod queues;
mod sessions;
mod settled;
mod timeline;
mod topics;
mod virtual_namespaces;

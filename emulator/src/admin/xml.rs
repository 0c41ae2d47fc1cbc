//! XML as the admin API uses it: a small tree of what a client wrote, and a writer of what it reads.
//!
//! The tree keeps elements of the namespaces that mean something here; everything else is left out, because clients
//! send back what they did not understand (admin-http.md §4.1).

mod element;
mod read;
mod write;

pub(super) use element::{Element, Space, XsiType};
pub(super) use read::read;
pub(super) use write::Writer;

/// The Atom Syndication Format.
pub(super) const ATOM: &str = "http://www.w3.org/2005/Atom";
/// Descriptions of entities.
pub(super) const CONNECT: &str =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// The counters in `CountDetails`.
pub(super) const COUNTS: &str = "http://schemas.microsoft.com/netservices/2011/06/servicebus";
/// `xsi:type` and `xsi:nil`.
pub(super) const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// The types of values.
pub(super) const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
/// The type of durations, as the service writes it.
pub(super) const SERIALIZATION: &str = "http://schemas.microsoft.com/2003/10/Serialization/";

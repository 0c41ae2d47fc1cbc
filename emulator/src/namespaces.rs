//! The namespaces that one process serves: made, found and removed while others go on.
//!
//! They share the listeners and nothing else. What chooses one (a name, the name of a key, an address) belongs to one only, so
//! that a connection's namespace never depends on which was made first.

mod choose;
mod create;
mod served;

pub(crate) use choose::ConnectionOrigin;
pub(crate) use create::{CreateError, Permit};
pub(crate) use served::Namespaces;
pub(crate) use served::Place;
pub(crate) use served::RemoveError;
pub use servicebus_control_api::NamespaceInfo;

//! The REST data plane through `azure_messaging_servicebus` 0.21, the Rust SDK for it, against the documentation of the
//! service's runtime operations.
//!
//! The SDK builds its own URLs, signs them and reads what comes back; nothing about it is changed but the host that its
//! requests go to, by the HTTP client that it lets its users bring.

mod http_client;
mod operations;

//! The default ports of clients.

/// AMQP; connection strings leave it out.
pub const AMQP_PORT: u16 = 5672;
/// AMQP over TLS.
pub const AMQPS_PORT: u16 = 5671;
/// The control API, and the admin API of the official emulator.
pub const HTTP_PORT: u16 = 5300;
/// The service's administration API and WebSockets. Clients with fixed ports use it as they use 5671.
pub const HTTPS_PORT: u16 = 443;

//! The ports that clients know.

/// The port of AMQP; connection strings leave it out.
pub const AMQP_PORT: u16 = 5672;
/// The port of AMQP over TLS.
pub const AMQPS_PORT: u16 = 5671;
/// The port of the control API, and of the admin API of the official emulator.
pub const HTTP_PORT: u16 = 5300;
/// The port of the service's administration and WebSockets, to which code that knows no other goes as it does to that of AMQP
/// over TLS.
pub const HTTPS_PORT: u16 = 443;

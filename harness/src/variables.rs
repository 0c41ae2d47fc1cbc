//! The environment variables that configure test runs, unless the code does.

/// The environment variable that selects the mode.
pub const MODE_VARIABLE: &str = "SERVICEBUS_HARNESS_MODE";
/// The environment variable with the loopback address of all namespaces, for systems that have only 127.0.0.1.
pub const ADDRESS_VARIABLE: &str = "SERVICEBUS_HARNESS_ADDRESS";
/// The environment variable that keeps the `ServiceBus` of failed tests: with `1` or `true`; `0` and `false` are
/// as if it were not set.
pub const KEEP_VARIABLE: &str = "SERVICEBUS_HARNESS_KEEP";
/// The environment variable with a directory to which every failed test writes a page with the content of its namespace.
pub const REPORT_VARIABLE: &str = "SERVICEBUS_HARNESS_REPORT";
/// The environment variable that limits, in seconds, how long assertions, receives and waits for an idle namespace wait,
/// unless the builder does.
pub const WITHIN_VARIABLE: &str = "SERVICEBUS_HARNESS_WITHIN";
/// The environment variable that skips assertions that cannot be checked: with `skip`.
pub const UNCHECKED_VARIABLE: &str = "SERVICEBUS_HARNESS_UNCHECKED";
/// The environment variable with the connection string of mode [`Mode::Namespace`](crate::Mode::Namespace).
pub const CONNECTION_STRING_VARIABLE: &str = "SERVICEBUS_CONNECTION_STRING";
/// The environment variable that limits, in seconds, how long an advance of the clock may wait in real time in mode
/// [`Mode::Namespace`](crate::Mode::Namespace), unless the builder does.
pub const MAX_REAL_WAIT_VARIABLE: &str = "SERVICEBUS_HARNESS_MAX_REAL_WAIT";
/// The environment variable that selects another image.
#[cfg(feature = "container")]
pub(crate) const IMAGE_VARIABLE: &str = "SERVICEBUS_EMULATOR_IMAGE";

//! The environment variables that say how tests run, where the code does not.

/// The environment variable that picks a mode without touching the code.
pub const MODE_VARIABLE: &str = "SERVICEBUS_HARNESS_MODE";
/// The environment variable that names a loopback address for all namespaces, as where the system has no other than 127.0.0.1.
pub const ADDRESS_VARIABLE: &str = "SERVICEBUS_HARNESS_ADDRESS";
/// The environment variable that keeps the `ServiceBus` values of failed tests: `1` or `true` does, anything else does not.
pub const KEEP_VARIABLE: &str = "SERVICEBUS_HARNESS_KEEP";
/// The environment variable that names a directory in which every failed test leaves a page with what its namespace held.
pub const REPORT_VARIABLE: &str = "SERVICEBUS_HARNESS_REPORT";
/// The environment variable that says for how many seconds assertions, receives and waits for an idle namespace wait at
/// most, where the builder does not say it.
pub const WITHIN_VARIABLE: &str = "SERVICEBUS_HARNESS_WITHIN";
/// The environment variable that lets tests go on where an assertion cannot be checked: `skip` does, anything else does not.
pub const UNCHECKED_VARIABLE: &str = "SERVICEBUS_HARNESS_UNCHECKED";
/// The environment variable that names the namespace of mode [`Mode::Namespace`](crate::Mode::Namespace), by its
/// connection string.
pub const CONNECTION_STRING_VARIABLE: &str = "SERVICEBUS_CONNECTION_STRING";
/// The environment variable that says for how many seconds an advance of the clock may really wait in mode
/// [`Mode::Namespace`](crate::Mode::Namespace), where the builder does not say it.
pub const MAX_REAL_WAIT_VARIABLE: &str = "SERVICEBUS_HARNESS_MAX_REAL_WAIT";
/// The environment variable that names another image.
#[cfg(feature = "container")]
pub(crate) const IMAGE_VARIABLE: &str = "SERVICEBUS_EMULATOR_IMAGE";

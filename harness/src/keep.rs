//! Keeps the `ServiceBus` of a failed test for inspection.
//!
//! With `SERVICEBUS_HARNESS_KEEP=1` the namespace of a panicking test remains. An emulator inside the test's process lives
//! no longer than the process, so the end of the test waits until Enter is pressed or it is interrupted. An emulator in a
//! process of its own keeps running while the tests continue; with a shared emulator, or the only address, the end of the
//! test waits as well. In a namespace that runs elsewhere the test's entities remain while the end of the test waits, and
//! later tests wait too. Standard error shows how to connect, past the capture of the test runner.

use std::{
    env,
    io::{self, BufRead as _, Write as _},
    sync::Arc,
    thread,
};

use crate::{
    connections::Connections, endpoints::Namespace, error::Error, inspector,
    variables::KEEP_VARIABLE,
};

/// Returns whether `ServiceBus` values of failed tests are kept.
pub(crate) fn is_asked() -> Result<bool, Error> {
    parsed(
        &env::var_os(KEEP_VARIABLE)
            .unwrap_or_default()
            .to_string_lossy(),
    )
}

fn parsed(value: &str) -> Result<bool, Error> {
    match value {
        "1" | "true" => Ok(true),
        "" | "0" | "false" => Ok(false),
        _ => Err(Error::start(format!(
            "{KEEP_VARIABLE} is \"{value}\"; allowed: 1 or true, 0 or false"
        ))),
    }
}

/// Keeps a `ServiceBus` that a panic drops.
#[derive(Debug)]
pub(crate) struct KeepOnFailure {
    message: String,
    namespace: String,
    connections: Arc<Connections>,
    /// The id of the emulator's process, unless it is this one.
    process: Option<u32>,
}

impl KeepOnFailure {
    /// Returns `None` unless the environment requests it.
    pub(crate) fn new(
        namespace: &Namespace,
        connections: &Arc<Connections>,
        process: Option<u32>,
    ) -> Result<Option<Self>, Error> {
        let keep_on_failure = || {
            let message = format!(
                "  connection string  {}\n  administration     {}",
                &*namespace.connection_string, &*namespace.admin_connection_string
            );
            Self {
                message,
                namespace: namespace.name.clone(),
                connections: Arc::clone(connections),
                process,
            }
        };
        Ok(is_asked()?.then(keep_on_failure))
    }

    fn announce(&self) {
        let test = thread::current().name().unwrap_or("a test").to_owned();
        let how = match self.process {
            Some(id) => format!("it is process {id}; end it with `kill {id}`"),
            None => "it ends when you press Enter, or interrupt the test".to_owned(),
        };
        let shown = self.connections.backend.control_url().map(|url| {
            let evidence = self.connections.evidence.lock();
            let link = inspector::link(&url, &self.namespace, evidence.as_ref());
            format!("\n  control API        {url}\n  inspector          {link}")
        });
        let message = format!(
            "\n{KEEP_VARIABLE}: the namespace of {test} is kept\n{}{}\n  {how}\n",
            self.message,
            shown.unwrap_or_default()
        );
        // Without standard error it cannot be shown.
        let _ = io::stderr().write_all(message.as_bytes());
    }
}

impl Drop for KeepOnFailure {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        self.announce();
        if self.process.is_none() {
            wait_for_enter();
        }
    }
}

/// Waits for a line on standard input. Returns at once if that is closed, as under most test runners.
fn wait_for_enter() {
    let read = io::stdin().lock().read_line(&mut String::new());
    if !matches!(read, Ok(1..)) {
        let message = "  standard input is closed, so it ends now; run the test with an open one (`cargo nextest run --no-capture`), or in mode process, where it stays\n";
        let _ = io::stderr().write_all(message.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_value_is_refused() {
        for (value, is_asked) in [("1", true), ("true", true), ("", false), ("0", false)] {
            assert_eq!(parsed(value).ok(), Some(is_asked), "{value}");
        }
        assert_eq!(
            parsed("yes").unwrap_err().to_string(),
            "SERVICEBUS_HARNESS_KEEP is \"yes\"; allowed: 1 or true, 0 or false"
        );
    }
}

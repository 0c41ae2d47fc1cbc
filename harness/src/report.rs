//! The report of a failed test: one HTML file with the inspector's page and the content of the namespace, which explains the
//! failure after the emulator has ended.
//!
//! With `SERVICEBUS_HARNESS_REPORT=<dir>` each `ServiceBus` that a panic drops writes a report to that directory. A panic
//! hook, installed only then, stores the panic's message and calls the previous hook.

mod document;
mod record;

use std::{
    cell::RefCell,
    collections::HashMap,
    env, fs, io, panic,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Once},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use crate::{connections::Connections, variables::REPORT_VARIABLE};

/// How long the namespace may take to return its content.
const WITHIN: Duration = Duration::from_secs(20);

/// Writes a report when a panic drops it.
#[derive(Debug)]
pub(crate) struct ReportOnFailure {
    directory: PathBuf,
    namespace: String,
    connections: Arc<Connections>,
}

impl ReportOnFailure {
    /// Returns `None` unless the environment requests reports. An exploration, which fails many times, and a namespace that
    /// runs elsewhere write none.
    pub(crate) fn new(namespace: &str, connections: &Arc<Connections>) -> Option<Self> {
        let directory = env::var_os(REPORT_VARIABLE).filter(|directory| !directory.is_empty())?;
        let is_explored = connections.background.activity().is_some();
        if is_explored || connections.backend.control_url().is_none() {
            return None;
        }
        remember_panics();
        // That of an earlier test on this thread.
        LAST_PANIC.set(None);
        Some(Self {
            directory: directory.into(),
            namespace: namespace.to_owned(),
            connections: Arc::clone(connections),
        })
    }

    /// Writes the report; returns its path, or why there is none.
    fn write(&self, test: &str) -> Result<PathBuf, String> {
        let connections = Arc::clone(&self.connections);
        let evidence = self.connections.evidence.lock().clone();
        // Stays for the next report: a test may have several namespaces.
        let failure = LAST_PANIC.with_borrow(Option::clone);
        let (test_name, namespace) = (test.to_owned(), self.namespace.clone());
        let gathering = async move {
            let backend = &*connections.backend;
            let mut report = record::collect(backend, &namespace, evidence.as_ref()).await?;
            report["test"] = test_name.into();
            report["failure"] = failure.into();
            Ok(document::with(&report))
        };
        let gathered = self.connections.background.wait_for(WITHIN, gathering);
        let text: Result<String, String> =
            gathered.unwrap_or_else(|| Err("the emulator did not answer in time".to_owned()));
        let path = file(&self.directory, test);
        save(&path, &text?).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

impl Drop for ReportOnFailure {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        let test = test_name();
        match self.write(&test) {
            Ok(path) => eprintln!("{REPORT_VARIABLE}: {test} left {}", path.display()),
            Err(why) => eprintln!("{REPORT_VARIABLE}: {test} left no report: {why}"),
        }
    }
}

thread_local! {
    /// The message of the last panic on this thread.
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let text = panic.payload_as_str().unwrap_or("the test panicked");
            let text = match panic.location() {
                Some(place) => format!("{text}\n\nat {}:{}", place.file(), place.line()),
                None => text.to_owned(),
            };
            LAST_PANIC.set(Some(text));
            before(panic);
        }));
    });
}

/// Returns the name of the test on this thread; if tests run on the main thread, the one on the command line.
fn test_name() -> String {
    let current = thread::current();
    match current.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => {
            let mut arguments = env::args().skip_while(|argument| argument != "--exact");
            arguments.nth(1).unwrap_or_else(|| "test".to_owned())
        }
    }
}

/// Returns the path for the report of a test, replacing its last one. A test with several namespaces writes several.
fn file(directory: &Path, test: &str) -> PathBuf {
    static WRITTEN: LazyLock<Mutex<HashMap<String, u32>>> = LazyLock::new(Mutex::default);
    let kept = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let name = test.replace("::", ".").replace(|c| !kept(c), "-");
    let mut written = WRITTEN.lock();
    let number = written.entry(name.clone()).or_default();
    *number += 1;
    directory.join(match number {
        1 => format!("{name}.html"),
        number => format!("{name}-{number}.html"),
    })
}

fn save(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}

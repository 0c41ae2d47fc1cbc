//! The log on standard error.
//!
//! Lines wait in memory for a thread that writes them. A parent process that does not read standard error fills its pipe;
//! if connections wrote there themselves, each that logs a line would hold a thread of the runtime for ever, so that nothing
//! was served any more and no signal ended the process. If too much waits, lines are left out and counted.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::time::Duration;
use std::{env, mem, thread};

use parking_lot::{Condvar, Mutex};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// The log filter.
const VARIABLE: &str = "SERVICEBUS_EMULATOR_LOG";
/// The beginning of our targets.
const TARGETS: &str = "servicebus_";
/// Maximum bytes that wait.
const CAPACITY: usize = 1 << 20;
/// How long the end of the process waits for a reader of the last lines.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The lines that wait to be written.
#[derive(Debug)]
pub struct Log {
    waiting: Mutex<Waiting>,
    /// Notified when lines arrive, and when all were written.
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    /// Lines left out since the last one in `text`.
    left_out: u64,
    is_writing: bool,
}

impl Log {
    /// Sets up the log by the environment; an error describes an invalid filter.
    pub fn to_stderr() -> Result<Arc<Self>, String> {
        let variable = env::var_os(VARIABLE);
        let variable = variable.map(|variable| variable.to_string_lossy().into_owned());
        let filter = filter(variable.as_deref().unwrap_or_default())?;
        let log = Arc::new(Self::new(CAPACITY));
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(io::stderr().is_terminal())
            .with_writer(Arc::clone(&log));
        tracing_subscriber::registry()
            .with(lines)
            .with(filter)
            .init();
        let writer = Arc::clone(&log);
        let started = thread::Builder::new().name("log".to_owned());
        let started = started.spawn(move || writer.write_to(io::stderr()));
        started.map_err(|error| format!("cannot start the thread of the log: {error}"))?;
        Ok(log)
    }

    fn new(capacity: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            capacity,
        }
    }

    /// Waits until all lines are written, or for a second if they are not read.
    pub fn finish(&self) {
        let mut waiting = self.waiting.lock();
        waiting.admit_left_out();
        self.changed.notify_all();
        let is_unfinished = |waiting: &mut Waiting| waiting.is_writing || !waiting.text.is_empty();
        self.changed
            .wait_while_for(&mut waiting, is_unfinished, TIMEOUT);
    }

    fn add(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.text.len() + line.len() > self.capacity {
            waiting.left_out += 1;
            return;
        }
        waiting.admit_left_out();
        waiting.text.extend_from_slice(line);
        self.changed.notify_all();
    }

    /// Writes lines as they arrive, for ever.
    fn write_to(&self, mut output: impl Write) {
        loop {
            let text = self.take();
            // A closed output leaves nothing else to do.
            let _ = output.write_all(&text);
        }
    }

    /// Waits for lines and takes them; the ones that were taken before are written.
    fn take(&self) -> Vec<u8> {
        let mut waiting = self.waiting.lock();
        waiting.is_writing = false;
        self.changed.notify_all();
        let is_idle = |waiting: &mut Waiting| waiting.text.is_empty();
        self.changed.wait_while(&mut waiting, is_idle);
        waiting.is_writing = true;
        mem::take(&mut waiting.text)
    }
}

impl Waiting {
    /// Adds a line where lines were left out.
    fn admit_left_out(&mut self) {
        let left_out = mem::take(&mut self.left_out);
        if left_out > 0 {
            let text = "lines of the log were left out: standard error was not read";
            self.text
                .extend(format!("{left_out} {text}\n").into_bytes());
        }
    }
}

/// Takes each line in one call, as `tracing_subscriber` writes it.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Parses the filter of the variable; without one, warnings and errors are logged.
fn filter(variable: &str) -> Result<Targets, String> {
    let variable = if variable.is_empty() {
        "warn"
    } else {
        variable
    };
    let refused = |reason: String| {
        format!(
            "{VARIABLE} is {variable:?}: {reason}; allowed: off, error, warn, info, debug or trace, also for single \
             targets, as in servicebus_emulator=debug"
        )
    };
    let directives = variable.split(',').map(str::trim);
    let directives = Vec::from_iter(directives.filter(|directive| !directive.is_empty()));
    // It would be the name of a target, all of whose lines are logged, and no others.
    let is_misspelt = |directive: &&&str| {
        let is_target = directive.contains('=') || directive.starts_with(TARGETS);
        !is_target && directive.parse::<LevelFilter>().is_err()
    };
    if let Some(directive) = directives.iter().find(is_misspelt) {
        return Err(refused(format!("{directive:?} is not a level")));
    }
    let filter = directives.join(",").parse::<Targets>();
    filter.map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_neither_a_level_nor_our_target_is_refused() {
        for variable in [
            "",
            "off",
            "WARN",
            "Debug",
            " info , servicebus_emulator=trace,",
            "servicebus_emulator",
            "servicebus_amqp::connection",
            "rustls=debug",
        ] {
            assert!(filter(variable).is_ok(), "{variable}");
        }
        for (variable, word) in [
            ("warning", "warning"),
            ("verbose", "verbose"),
            ("Information", "Information"),
            ("warn,servicebus_emulator=debug,rustls", "rustls"),
        ] {
            let text = filter(variable).expect_err(variable);
            let expected = format!(
                "SERVICEBUS_EMULATOR_LOG is {variable:?}: {word:?} is not a level; allowed: off, error, warn, info,"
            );
            assert!(text.starts_with(&expected), "{text}");
        }
        assert!(filter("servicebus_emulator=loud").is_err());
    }

    #[test]
    fn lines_beyond_the_capacity_are_left_out_and_counted() {
        let log = Log::new(20);
        for line in ["first\n", "second\n", "too long\n", "too long\n", "3\n"] {
            (&log).write_all(line.as_bytes()).expect("it never fails");
        }
        let text = |taken: Vec<u8>| String::from_utf8(taken).expect("text");
        let gap = "2 lines of the log were left out: standard error was not read\n";
        assert_eq!(text(log.take()), format!("first\nsecond\n{gap}3\n"));
        // Those at the end are counted too.
        log.add(b"last\n");
        log.add(&[b'x'; 21]);
        log.waiting.lock().admit_left_out();
        let gap = gap.replace('2', "1");
        assert_eq!(text(log.take()), format!("last\n{gap}"));
    }

    #[test]
    fn all_lines_are_written_when_the_log_is_finished() {
        let log = Arc::new(Log::new(CAPACITY));
        let (reader, output) = io::pipe().expect("a pipe");
        let writer = Arc::clone(&log);
        thread::spawn(move || writer.write_to(output));
        log.add(b"a line\n");
        log.finish();
        let mut line = String::new();
        let read = io::BufRead::read_line(&mut io::BufReader::new(reader), &mut line);
        assert_eq!((read.ok(), line.as_str()), (Some(7), "a line\n"));
    }
}

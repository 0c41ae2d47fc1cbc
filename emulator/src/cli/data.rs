//! What `data` does with a directory that no emulator serves: `check`, `export` and `compact`.

mod export;

use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use servicebus_broker::{EntityKind, SubQueue};

use crate::config::NamespaceConfig;
use crate::durable::{Disk, LoadedEntity, OfflineStore, Visitor, compact, open_offline, walk};
use crate::options::DataError;

/// Rows that are told to be damaged.
const MOST_TOLD: usize = 100;

/// A directory, and what to do with it.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DataVerb {
    /// The directory that --data names
    directory: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum Verb {
    /// Read all of it, print what it holds, and list what is damaged, with exit code 1
    Check,
    /// Print what it holds as JSON: of each namespace the topology, and the messages as the control API shows them
    Export,
    /// Make the file as small as it can be
    Compact,
}

/// Does it; an error is what to say before ending with 1.
pub fn run_data(data: &DataVerb) -> Result<(), String> {
    let directory = &data.directory;
    match data.verb {
        Verb::Check => check(directory),
        Verb::Export => export::run(directory),
        Verb::Compact => compact(directory)
            .map_err(|error| error.to_string())
            .map(|(before, after)| say(&format!("{before} bytes before, {after} bytes after"))),
    }
}

fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn opened(directory: &Path) -> Result<OfflineStore, String> {
    open_offline(directory).map_err(|error: DataError| error.to_string())
}

#[derive(Default)]
struct Counted {
    lines: Vec<String>,
    problems: Vec<String>,
    messages: u64,
}

impl Visitor for Counted {
    fn namespace(&mut self, config: &NamespaceConfig) {
        self.lines.push(format!("namespace {}", config.name));
    }

    fn entity(&mut self, loaded: LoadedEntity, _disk: &dyn Disk) {
        let LoadedEntity { entity, definition } = loaded;
        let path = &definition.path;
        if definition.kind == EntityKind::Topic {
            self.lines.push(format!("  {path}: {}", definition.kind));
        }
        let held = SubQueue::ALL.map(|kind| {
            let counts = entity.counts(kind);
            counts.active + counts.scheduled + counts.transfer
        });
        let [own, dead, transfer] = held.map(|count| count as u64);
        self.messages += own + dead + transfer;
        if definition.kind != EntityKind::Topic || own + dead + transfer > 0 {
            let line = format!(
                "  {path}: {own} messages, {dead} dead-lettered, {transfer} that could not be forwarded"
            );
            self.lines.push(line);
        }
    }

    fn damaged(&mut self, problem: String) {
        match self.problems.len() {
            ..MOST_TOLD => self.problems.push(problem),
            MOST_TOLD => self.problems.push("and more".to_owned()),
            _ => {}
        }
    }
}

fn check(directory: &Path) -> Result<(), String> {
    // Pages of a damaged file may be anything, and then a panic is what tells; what is said of it below says so better.
    std::panic::set_hook(Box::new(|_| {}));
    let OfflineStore { disk, file, damage } = opened(directory)?;
    let mut counted = Counted::default();
    let walked = catch_unwind(AssertUnwindSafe(|| walk(&*disk, &mut counted)));
    let walked = walked.unwrap_or_else(|payload| {
        let text = crate::failures::panic_text(&*payload);
        Err(crate::durable::LoadError::Disk(text))
    });
    counted.lines.iter().for_each(|line| say(line));
    let mut problems = counted.problems;
    problems.extend(damage.map(|damage| format!("the checksums of the file: {damage}")));
    match walked {
        Ok(bodies) => say(&format!(
            "{} messages with {} bodies of {} bytes; {} bodies are left over and go at the next start",
            counted.messages, bodies.count, bodies.bytes, bodies.unused
        )),
        Err(error) => problems.push(format!("what follows cannot be read: {error}")),
    }
    match problems.is_empty() {
        true => {
            say(&format!("{}: nothing is damaged", file.display()));
            Ok(())
        }
        false => Err(format!("{file:?} is damaged:\n  {}", problems.join("\n  "))),
    }
}

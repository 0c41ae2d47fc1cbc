//! The subcommands of `data` for a directory that no running emulator uses: `check`, `export` and `compact`.

mod export;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use servicebus_broker::{EntityKind, SubQueue};

use super::output::print;
use crate::config::NamespaceConfig;
use crate::durable::{Disk, LoadedEntity, OfflineStore, Visitor, compact, open_offline, walk};
use crate::options::DataError;

/// Maximum number of problems that `check` lists.
const MAX_PROBLEMS: usize = 100;

/// A data directory and the operation on it.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct DataCommand {
    /// The data directory (the value of --data)
    directory: PathBuf,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
enum Action {
    /// Read the whole directory, print its entities with their message counts, list damage and exit with 1 if there is any
    Check,
    /// Print the topology and the messages of each namespace as JSON, in the format of the control API
    Export,
    /// Shrink the file to the size of its contents
    Compact,
}

/// Runs the operation; the error is the text to print before exiting with 1.
pub fn run_data(data: &DataCommand) -> Result<(), String> {
    let directory = &data.directory;
    match data.action {
        Action::Check => check(directory),
        Action::Export => export::run(directory),
        Action::Compact => compact(directory)
            .map_err(|error| error.to_string())
            .and_then(|(before, after)| {
                print(&format!("{before} bytes before, {after} bytes after\n"))
            }),
    }
}

fn open(directory: &Path) -> Result<OfflineStore, String> {
    open_offline(directory).map_err(|error: DataError| error.to_string())
}

#[derive(Default)]
struct Contents {
    lines: Vec<String>,
    problems: Vec<String>,
    messages: u64,
}

impl Visitor for Contents {
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
            ..MAX_PROBLEMS => self.problems.push(problem),
            MAX_PROBLEMS => self.problems.push("and more".to_owned()),
            _ => {}
        }
    }
}

fn check(directory: &Path) -> Result<(), String> {
    // Damaged pages can make the store panic; the problem below replaces the text of the panic.
    std::panic::set_hook(Box::new(|_| {}));
    let opened = open_offline(directory).map_err(|error| {
        // Its own text refers to this command.
        if let DataError::Damaged { file, reason } = &error {
            format!("the file {file:?} is damaged: {reason}")
        } else {
            error.to_string()
        }
    });
    let OfflineStore { disk, file, damage } = opened?;
    let mut contents = Contents::default();
    let walked = catch_unwind(AssertUnwindSafe(|| walk(&*disk, &mut contents)));
    let walked = walked.unwrap_or_else(|payload| {
        let text = crate::failures::panic_text(&*payload);
        Err(crate::durable::LoadError::Disk(text))
    });
    let mut lines = contents.lines;
    let mut problems = contents.problems;
    problems.extend(damage.map(|damage| format!("the checksums of the file: {damage}")));
    match walked {
        Ok(bodies) => lines.push(format!(
            "{} messages with {} bodies of {} bytes; the next start removes {} bodies without a message",
            contents.messages, bodies.count, bodies.bytes, bodies.unused
        )),
        Err(error) => problems.push(format!("the rest cannot be read: {error}")),
    }
    if problems.is_empty() {
        lines.push(format!("{}: no damage found", file.display()));
    }
    let printed = print(&String::from_iter(
        lines.into_iter().map(|line| line + "\n"),
    ));
    match problems.is_empty() {
        true => printed,
        false => Err(format!("{file:?} is damaged:\n  {}", problems.join("\n  "))),
    }
}

//! Builds the tests of a package with all mutants of a crate that compile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::mutant::Mutant;
use crate::rewrite::{CHOSEN, rewritten};
use crate::{Outcome, run};

/// What chooses a mutant, at the end of the crate.
const SWITCH: &str = include_str!("switch.rs.txt");
/// Mutants divide by zero and never use what they have computed.
const FLAGS: &str = "--cap-lints warn -Awarnings -Aarithmetic_overflow -Aunconditional_panic";
/// It is built again for every mutant that does not compile.
const QUICK: [&str; 2] = ["opt-level=1", "codegen-units=16"];

/// A test program and the directory in which cargo would run it.
pub struct Binary {
    pub path: PathBuf,
    pub directory: PathBuf,
}

/// A line that cargo prints, as far as it matters here.
#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Artifact {
        executable: Option<PathBuf>,
        manifest_path: PathBuf,
    },
    #[serde(rename = "compiler-message")]
    Diagnostic { message: Diagnostic },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
    spans: Vec<DiagnosticSpan>,
}

#[derive(Deserialize)]
struct DiagnosticSpan {
    file_name: PathBuf,
    line_start: usize,
    column_start: usize,
    is_primary: bool,
}

/// The mutants that compile, by their numbers, and the test programs that have them.
pub fn build(
    copy: &Path,
    folder: &Path,
    mutants: &[Mutant],
    package: &str,
) -> Outcome<(BTreeSet<usize>, Vec<Binary>)> {
    // An iterator of another type is not a value of a function that returns one.
    let is_iterator = |mutant: &Mutant| mutant.replacement.contains("::std::iter::");
    let numbers = 0..mutants.len();
    let mut fitting: BTreeSet<usize> = numbers.filter(|at| !is_iterator(&mutants[*at])).collect();
    loop {
        fitting = put_in(copy, folder, mutants, &fitting)?;
        let mut cargo = Command::new("cargo");
        cargo.args([
            "test",
            "--no-run",
            "--message-format=json",
            "--package",
            package,
        ]);
        for setting in QUICK {
            let name = &mutants[0].package;
            cargo
                .arg("--config")
                .arg(format!("profile.test.package.{name}.{setting}"));
        }
        let output = cargo.env("RUSTFLAGS", FLAGS).current_dir(copy).output()?;
        let text = String::from_utf8(output.stdout)?;
        let messages: Vec<Message> = text.lines().flat_map(serde_json::from_str).collect();
        if output.status.success() {
            return Ok((fitting, messages.into_iter().filter_map(binary).collect()));
        }
        let unfit: BTreeSet<_> = messages
            .iter()
            .filter_map(|own| culprit(copy, own))
            .collect();
        if unfit.is_disjoint(&fitting) {
            let errors = messages
                .iter()
                .filter_map(error)
                .filter_map(|own| own.rendered.as_deref());
            return Err(Vec::from_iter(errors).join("\n").into());
        }
        fitting = &fitting - &unfit;
    }
}

fn binary(message: Message) -> Option<Binary> {
    let Message::Artifact {
        executable: Some(path),
        manifest_path,
    } = message
    else {
        return None;
    };
    // Programs that tests start are among them.
    let is_test = path.parent()?.ends_with("deps");
    let directory = manifest_path.parent()?.to_owned();
    is_test.then_some(Binary { path, directory })
}

fn error(message: &Message) -> Option<&Diagnostic> {
    match message {
        Message::Diagnostic { message } if message.level == "error" => Some(message),
        _ => None,
    }
}

/// The mutant that an error is about: the last that begins before it.
fn culprit(copy: &Path, message: &Message) -> Option<usize> {
    let place = error(message)?.spans.iter().find(|span| span.is_primary)?;
    let source = fs::read_to_string(copy.join(&place.file_name)).ok()?;
    let lines: Vec<&str> = source.lines().take(place.line_start).collect();
    let (last, before) = lines.split_last()?;
    let before = &before[before.len().saturating_sub(3)..];
    let last: String = last.chars().take(place.column_start).collect();
    let text = before
        .iter()
        .chain([&&*last])
        .copied()
        .collect::<Vec<_>>()
        .join("\n");
    let (_, number) = text.rsplit_once(&format!("{CHOSEN}("))?;
    number.split_once(')')?.0.parse().ok()
}

/// Makes branches of these mutants, in sources that have none; returns those of which it could.
fn put_in(
    copy: &Path,
    folder: &Path,
    mutants: &[Mutant],
    fitting: &BTreeSet<usize>,
) -> Outcome<BTreeSet<usize>> {
    let sources = folder.join("src");
    run(Command::new("git")
        .args(["checkout", "--quiet"])
        .arg(&sources)
        .current_dir(copy))?;
    let mut by_file: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for number in fitting {
        let mutant = &mutants[*number];
        by_file
            .entry(&mutant.file)
            .or_default()
            .push((*number, mutant));
    }
    let mut done = BTreeSet::new();
    for (file, own) in by_file {
        let path = copy.join(file);
        let (source, own) = rewritten(&fs::read_to_string(&path)?, &own)?;
        fs::write(&path, source)?;
        done.extend(own);
    }
    let root = copy.join(sources).join("lib.rs");
    let mut whole = fs::read_to_string(&root)?;
    whole.push_str(SWITCH);
    fs::write(&root, whole)?;
    Ok(done)
}

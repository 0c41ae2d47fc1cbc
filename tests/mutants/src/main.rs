//! Tries the mutants that cargo-mutants finds in a crate, all of them with one build.
//!
//! ```sh
//! cargo install cargo-mutants
//! cargo mutants --list --json --package servicebus-broker > target/mutants.json
//! cargo run --release --manifest-path tests/mutants/Cargo.toml -- \
//!     target/mutants.json emulator/broker servicebus-broker
//! ```
//!
//! In a copy of the repository, `target/mutants`, each mutant becomes a branch that an environment variable chooses. Those that do
//! not compile are left out. Each test of the first package says which mutants it reaches; a mutant is then tried with those
//! tests alone. What is alive afterwards is tried with the tests of the next package, where more are named.

mod build;
mod mutant;
mod rewrite;
mod tests;

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use mutant::Mutant;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: mutants LIST.json FOLDER PACKAGE [PACKAGE ...]: the mutants of the crate in a folder of the repository, and the packages whose tests are to catch them";

fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [list, folder, packages @ ..] = &arguments[..] else {
        return Err(USAGE.into());
    };
    let mutants: Vec<Mutant> = serde_json::from_str(&fs::read_to_string(list)?)?;
    let copy = copied()?;
    let mut left: BTreeSet<usize> = (0..mutants.len()).collect();
    for package in packages {
        let (built, binaries) = build::build(&copy, Path::new(folder), &mutants, package)?;
        if left.len() == mutants.len() {
            println!("{} of {} mutants compile", built.len(), mutants.len());
            left = built;
        }
        let tests = tests::covering(&copy, binaries)?;
        left = tests.alive(&left);
        println!("{} are alive after the tests of {package}", left.len());
    }
    for number in left {
        println!("{}", mutants[number].name);
    }
    Ok(())
}

/// A copy of what is committed here, in `target/mutants`; what was built there before stays.
fn copied() -> Outcome<PathBuf> {
    let copy = env::current_dir()?.join("target/mutants");
    if !copy.exists() {
        run(Command::new("git")
            .args(["clone", "--quiet", "."])
            .arg(&copy))?;
    }
    run(Command::new("git")
        .args(["fetch", "--quiet"])
        .current_dir(&copy))?;
    let reset = ["reset", "--quiet", "--hard", "origin/HEAD"];
    run(Command::new("git").args(reset).current_dir(&copy))?;
    Ok(copy)
}

fn run(command: &mut Command) -> Outcome {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}

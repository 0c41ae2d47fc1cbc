//! The tests of a package, each with the mutants that it reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use wait_timeout::ChildExt as _;

use crate::Outcome;
use crate::build::Binary;

/// Histories of the model are as good in small numbers: a mutant is tried with every test that reaches it.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("MODEL_HISTORIES", "600"),
    ("INSTA_UPDATE", "no"),
    ("SERVICEBUS_SKIP_BROWSER", "1"),
];
/// Longer ones are left out, since they would be run for many mutants.
const MAX_DURATION: Duration = Duration::from_secs(8);
/// What a test may take beside four times what it takes without a mutant.
const GRACE: Duration = Duration::from_secs(10);
/// How many tests a mutant is tried with first; four times as many next.
const FIRST: usize = 4;
/// KiB of addresses that a test may have.
const MEMORY: u32 = 6_000_000;

pub struct Tests {
    binaries: Vec<Binary>,
    /// Those that pass, the quickest first.
    all: Vec<Test>,
}

struct Test {
    binary: usize,
    name: String,
    duration: Duration,
    reached: BTreeSet<usize>,
}

/// Runs each test once by itself.
pub fn covering(copy: &Path, binaries: Vec<Binary>) -> Outcome<Tests> {
    let mut named = Vec::new();
    for (at, binary) in binaries.iter().enumerate() {
        let output = command(binary).arg("--list").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        named.extend(names.map(|name| (at, name.to_owned())));
    }
    let reached = copy.join("target/reached");
    fs::create_dir_all(&reached)?;
    let jobs = named.into_iter().enumerate();
    let tried = side_by_side(jobs, |(number, (binary, name))| {
        let file = reached.join(number.to_string());
        // None is there unless another run has left it.
        let _ = fs::remove_file(&file);
        let began = Instant::now();
        let passed = run(
            &binaries[binary],
            &[&name],
            ("MUTANTS_REACHED", &file),
            MAX_DURATION,
        );
        let text = fs::read_to_string(&file).unwrap_or_default();
        let reached = text.split_whitespace().flat_map(str::parse).collect();
        let duration = began.elapsed();
        passed.then_some(Test {
            binary,
            name,
            duration,
            reached,
        })
    });
    let (ran, mut all) = (tried.len(), Vec::from_iter(tried.into_iter().flatten()));
    println!(
        "{} of {ran} tests pass by themselves within {MAX_DURATION:?}",
        all.len()
    );
    all.sort_by_key(|test| test.duration);
    Ok(Tests { binaries, all })
}

impl Tests {
    /// Those of these mutants that no test notices.
    pub fn survivors(&self, mutants: &BTreeSet<usize>) -> BTreeSet<usize> {
        let tried = side_by_side(mutants.iter().copied().enumerate(), |(at, mutant)| {
            if at % 100 == 0 {
                eprintln!("{at} of {} tried", mutants.len());
            }
            (!self.is_detected(mutant)).then_some(mutant)
        });
        tried.into_iter().flatten().collect()
    }

    fn is_detected(&self, mutant: usize) -> bool {
        let reach = self
            .all
            .iter()
            .filter(|test| test.reached.contains(&mutant));
        let mut left: Vec<&Test> = reach.collect();
        let mut size = FIRST;
        while !left.is_empty() {
            let rest = left.split_off(size.min(left.len()));
            let mut by_binary: BTreeMap<usize, Vec<&Test>> = BTreeMap::new();
            for test in left {
                by_binary.entry(test.binary).or_default().push(test);
            }
            let fails = |(binary, tests): (usize, Vec<&Test>)| {
                let names: Vec<&str> = tests.iter().map(|test| &*test.name).collect();
                let within = 4 * tests.iter().map(|test| test.duration).sum::<Duration>() + GRACE;
                let chosen = mutant.to_string();
                !run(
                    &self.binaries[binary],
                    &names,
                    ("MUTANT", chosen.as_ref()),
                    within,
                )
            };
            if by_binary.into_iter().any(fails) {
                return true;
            }
            left = rest;
            size *= 4;
        }
        false
    }
}

/// Whether these tests pass in time.
fn run(binary: &Binary, tests: &[&str], (name, value): (&str, &Path), within: Duration) -> bool {
    let mut command = command(binary);
    command
        .args(["--exact", "--test-threads=8"])
        .args(tests)
        .env(name, value)
        .stdout(Stdio::null());
    let mut child = command.spawn().expect("a test program starts");
    let ended = child
        .wait_timeout(within)
        .expect("a child can be waited for");
    if ended.is_none() {
        // It may have ended just now.
        let _ = child.kill();
        child.wait().expect("a child can be waited for");
    }
    ended.is_some_and(|status| status.success())
}

fn command(binary: &Binary) -> Command {
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
    command.args(["-c", &limited]).arg(&binary.path);
    command
        .envs(ENVIRONMENT)
        .env("CARGO_MANIFEST_DIR", &binary.directory);
    command.current_dir(&binary.directory).stderr(Stdio::null());
    command
}

/// Does the same to many, on as many threads as there are processors.
fn side_by_side<T: Send, R: Send>(
    jobs: impl Iterator<Item = T> + Send,
    act: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let (jobs, done) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let next = || jobs.lock().expect("no thread panics").next();
    let threads = available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let result = act(job);
                    done.lock().expect("no thread panics").push(result);
                }
            });
        }
    });
    done.into_inner().expect("no thread panics")
}

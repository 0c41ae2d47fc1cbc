//! Simulates many seeds, as many at a time as there are processors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::world;

/// Tells a process which seed it is to simulate; `chance.c` reads it too.
const SEED_VARIABLE: &str = "SIMULATION_SEED";
/// Tells it to write down what happens.
const VERBOSE_VARIABLE: &str = "SIMULATION_STORY";
/// As a test of `cargo test`.
const NAME: &str = "simulation";
/// Seeds of a plain `cargo test`.
const SEEDS: u64 = 200;
/// Every so many seeds are simulated twice, and must be the same both times.
const REPEAT_EVERY: u64 = 20;
/// Findings after which no more is looked for, if nothing else is said.
const MAX_FINDINGS: u64 = 20;

const USAGE: &str =
    "tests/simulation/run [--seeds N] [--from SEED] [--jobs N] [--findings N] | --seed SEED";

/// What the command line asks for.
#[derive(Debug)]
pub(crate) struct Wanted {
    from: u64,
    seeds: u64,
    jobs: usize,
    /// After so many findings no more is looked for.
    findings: u64,
    /// Whether one seed is to be told as a story.
    is_verbose: bool,
    is_listed: bool,
}

/// What a process said of its seed: its trace and what else, or why it failed.
type Outcome = Result<String, String>;

impl Wanted {
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        let mut wanted = Self {
            from: 0,
            seeds: SEEDS,
            jobs,
            findings: MAX_FINDINGS,
            is_verbose: false,
            is_listed: false,
        };
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
                value.ok_or_else(|| format!("{argument} takes a number: {USAGE}"))
            };
            match argument.as_str() {
                "--seeds" => wanted.seeds = number()?,
                "--from" => wanted.from = number()?,
                "--findings" => wanted.findings = number()?,
                "--jobs" => wanted.jobs = number()?.max(1) as usize,
                "--seed" => {
                    wanted.from = number()?;
                    wanted.seeds = 1;
                    wanted.is_verbose = true;
                }
                "--list" => wanted.is_listed = true,
                "--help" => return Err(USAGE.into()),
                // `cargo test` hands to every test program which tests are meant, and options of its own.
                name if !name.starts_with('-') && !NAME.contains(name) => wanted.seeds = 0,
                _ => {}
            }
        }
        Ok(wanted)
    }
}

/// The seed that this process was started for.
pub(crate) fn seed_of_this_process() -> Option<u64> {
    std::env::var(SEED_VARIABLE).ok()?.parse().ok()
}

/// Simulates one seed and says what came of it.
pub(crate) fn simulate(seed: u64) -> ExitCode {
    let report = world::simulate(seed, std::env::var_os(VERBOSE_VARIABLE).is_some());
    for finding in &report.findings {
        println!("{finding}");
    }
    println!(
        "trace {:016x} bytes {} messages {} simulated seconds {}",
        report.trace, report.bytes, report.messages, report.seconds
    );
    match report.findings.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Simulates all that are wanted.
pub(crate) fn run(wanted: &Wanted) -> ExitCode {
    if wanted.seeds == 0 {
        return ExitCode::SUCCESS;
    }
    if wanted.is_listed {
        println!("{NAME}: test");
        return ExitCode::SUCCESS;
    }
    let preload = preload();
    if wanted.is_verbose {
        return match run_seed(wanted.from, preload.as_deref(), true) {
            Ok(stdout) => {
                println!("{stdout}");
                ExitCode::SUCCESS
            }
            Err(stdout) => {
                println!("{stdout}");
                ExitCode::FAILURE
            }
        };
    }
    let begun = Instant::now();
    let (next, failed) = (AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    let totals = [const { AtomicU64::new(0) }; 3];
    thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= wanted.seeds
                        || failed.lock().expect("no panic").len() as u64 >= wanted.findings
                    {
                        return;
                    }
                    let seed = wanted.from + number;
                    match run_twice(seed, preload.as_deref()) {
                        Ok(stdout) => add(&totals, &stdout),
                        Err(why) => {
                            print_failure(seed, &why);
                            failed.lock().expect("no panic").insert(seed, why);
                        }
                    }
                    progress(number + 1, wanted.seeds, begun.elapsed());
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    let [bytes, messages, seconds] = totals.map(AtomicU64::into_inner);
    let took = begun.elapsed();
    println!(
        "simulation: {} seeds from {}, {} with findings; {messages} messages, {bytes} bytes over the network, {} hours simulated in {} s ({:.1} seeds/s)",
        next.into_inner().min(wanted.seeds),
        wanted.from,
        failed.len(),
        seconds / 3600,
        took.as_secs(),
        wanted.seeds as f64 / took.as_secs_f64(),
    );
    match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn progress(done: u64, all: u64, took: Duration) {
    if done.is_multiple_of(1000) {
        let rate = done as f64 / took.as_secs_f64();
        println!("{done} of {all} seeds, {rate:.1} a second");
    }
}

fn print_failure(seed: u64, why: &str) {
    println!("seed {seed} fails:");
    for line in why.lines() {
        println!("    {line}");
    }
    println!("    again, with its story: tests/simulation/run --seed {seed}");
}

/// Simulates a seed, some of them once more: they must be the same bit for bit.
fn run_twice(seed: u64, preload: Option<&Path>) -> Outcome {
    let first = run_seed(seed, preload, false)?;
    if seed.is_multiple_of(REPEAT_EVERY) && preload.is_some() {
        let second = run_seed(seed, preload, false)?;
        if first != second {
            return Err(format!("it is not the same twice:\n{first}{second}"));
        }
    }
    Ok(first)
}

/// Simulates a seed in a process of its own.
fn run_seed(seed: u64, preload: Option<&Path>, is_verbose: bool) -> Outcome {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .env(SEED_VARIABLE, seed.to_string())
        .stdin(Stdio::null());
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    if is_verbose {
        command.env(VERBOSE_VARIABLE, "1").stderr(Stdio::inherit());
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(stdout),
        false => Err(format!(
            "{stdout}{}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

/// Adds up what processes said.
fn add(totals: &[AtomicU64; 3], stdout: &str) {
    let mut words = stdout.split_whitespace();
    let numbers = std::iter::from_fn(|| words.find_map(|word| word.parse::<u64>().ok()));
    // The trace is hexadecimal; by chance it has digits alone.
    let numbers: Vec<u64> = numbers.collect();
    for (total, number) in totals.iter().rev().zip(numbers.iter().rev()) {
        total.fetch_add(*number, Ordering::Relaxed);
    }
}

/// What is preloaded so that chance comes from the seed; none where there is no compiler for it or no preloading, and
/// seeds do not repeat then.
fn preload() -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/simulation/chance.c");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("chance.so");
    // Another process may be making it, too: the last one wins, and all are the same.
    let own = made.with_extension(format!("{}.so", std::process::id()));
    let compiled = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .arg(&own)
        .arg(source)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("simulation: cc cannot compile {source}: seeds do not repeat exactly");
        return None;
    }
    std::fs::rename(&own, &made).ok()?;
    Some(made)
}

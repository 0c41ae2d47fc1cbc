//! The time from the start of the process to its ready line, compared with the smallest possible server; and the size of the
//! program.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use crate::Outcome;
use crate::arguments::Effort;
use crate::process::{Emulator, scratch, time_to_first_line};
use crate::report::Report;
use crate::statistics::Rounds;

const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    match compile_empty_program() {
        Ok(program) => measure_start(effort, &program, report)?,
        Err(error) => report.miss("start ÷ that of an empty program", &error.to_string()),
    }
    match stripped_size() {
        Ok(size) => {
            let size = [size as f64 / MEBIBYTE].into_iter().collect();
            report.at_most("program, stripped", &size, " MB", 9.0);
        }
        Err(error) => report.miss("program, stripped", &error.to_string()),
    }
    Ok(())
}

fn measure_start(effort: Effort, empty: &PathBuf, report: &mut Report) -> Outcome {
    let starts = effort.pick(1, 20);
    let (mut theirs, mut ours, mut ratio) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        let (mut empty_starts, mut our_starts) = (Rounds::default(), Rounds::default());
        for _ in 0..starts {
            let took = time_to_first_line(&mut Command::new(empty))?;
            empty_starts.push(took.as_secs_f64() * 1000.0);
            let mut emulator = Command::new(Emulator::binary());
            emulator.args(["--amqp-port", "0", "--http-port", "0"]);
            our_starts.push(time_to_first_line(&mut emulator)?.as_secs_f64() * 1000.0);
        }
        theirs.push(empty_starts.median());
        ours.push(our_starts.median());
        ratio.push(our_starts.median() / empty_starts.median());
    }
    report.show("empty program, start to first line", &theirs, " ms");
    report.show("emulator, start to ready line", &ours, " ms");
    report.at_most("start ÷ that of an empty program", &ratio, "", 4.0);
    Ok(())
}

/// Compiles `empty_program.rs`: a program of its own, because this executable in another role would be as large as
/// the emulator.
fn compile_empty_program() -> io::Result<PathBuf> {
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/benches/measure/empty_program.rs"
    );
    let program = scratch("empty_program");
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(compiler);
    command.args(["--edition", "2024", "-O", "-C", "strip=symbols", "-o"]);
    let compiled = command.arg(&program).arg(source).status()?;
    match compiled.success() {
        true => Ok(program),
        false => Err(io::Error::other("the empty program does not compile")),
    }
}

/// Returns the size of the program without debug information, as in the release profile.
fn stripped_size() -> io::Result<u64> {
    let copy = scratch("servicebus-emulator.stripped");
    fs::copy(Emulator::binary(), &copy)?;
    let stripped = Command::new("strip").arg(&copy).status()?;
    match stripped.success() {
        true => Ok(fs::metadata(&copy)?.len()),
        false => Err(io::Error::other("strip failed")),
    }
}

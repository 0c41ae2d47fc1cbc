//! Runs the conformance suite against two targets and prints their results side by side, by case and observation. A
//! difference that is not in the ledger fails.
//!
//! ```text
//! cargo run --example compare -- emulator "$SERVICEBUS_CONNECTION_STRING" [path of cases]...
//! ```
//!
//! A target is `emulator`, `process`, the path of an emulator's binary, or the connection string of a namespace with the
//! right to manage it. `SSL_CERT_FILE` names the CA certificate of an emulator's namespace; a case may wait there for
//! `SERVICEBUS_HARNESS_MAX_REAL_WAIT` seconds of real time: 90 lets locks of a minute expire.

#![expect(clippy::print_stdout, reason = "what it prints is what it is for")]

use std::{env, error::Error, path::Path, process::ExitCode};

use servicebus_comparison::{Comparison, Ledger, Suite, Target};

const USAGE: &str = "usage: compare LEFT RIGHT [CASES]...; LEFT and RIGHT are emulator, process, the path of a binary or a connection string";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(left), Some(right)) = (arguments.next(), arguments.next()) else {
        return Err(USAGE.into());
    };
    let mut only = Vec::from_iter(arguments.map(|path| format!("conformance::{path}")));
    if only.is_empty() {
        only.push("conformance::".to_owned());
    }
    // Cases that run the suite themselves are left out.
    let suite = Suite::of_cargo("suites")?
        .except(["conformance::comparison::", "conformance::transports::"])
        .only(only);
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/ledger.json");
    let ledger = Ledger::read(&ledger)?;

    let comparison = Comparison::new(
        suite.run(&target(&left, "left"))?,
        suite.run(&target(&right, "right"))?,
        &ledger,
    );
    print!("{comparison}");
    Ok(match comparison.is_as_known() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

fn target(argument: &str, side: &str) -> Target {
    match argument {
        "emulator" => Target::emulator(),
        "process" => Target::process(),
        binary if Path::new(binary).is_file() => {
            let target = Target::process().variable("SERVICEBUS_EMULATOR_BIN", binary);
            target.named(format!("binary ({side})"))
        }
        connection_string => {
            Target::namespace(connection_string).named(format!("namespace ({side})"))
        }
    }
}

//! Runs the conformance suite against two targets and prints them side by side, case by case and observation by
//! observation; what differs and is not in the ledger fails.
//!
//! ```text
//! cargo run --example compare -- emulator "$SERVICEBUS_CONNECTION_STRING" [path of cases]...
//! ```
//!
//! A target is `emulator`, `process`, the path of an emulator's binary, or the connection string of a namespace with the
//! right to manage it. The certificate authority of an emulator's namespace is named in `SSL_CERT_FILE`, and `SERVICEBUS_HARNESS_MAX_REAL_WAIT`
//! says how many seconds a case may really wait there: 90 lets locks of a minute run out.

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
    // Cases that run cases are none.
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

fn target(said: &str, side: &str) -> Target {
    match said {
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

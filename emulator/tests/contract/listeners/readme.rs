//! `curl` and `openssl` work as the README says, with nothing but the certificate that it fetches.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::*;

#[test]
fn the_commands_of_the_readme_work() {
    for (tool, version) in [("curl", "--version"), ("openssl", "version")] {
        let asked = Command::new(tool)
            .arg(version)
            .stdout(Stdio::null())
            .status();
        if asked.is_err() {
            let note = format!("the README's commands are left out: {tool} cannot be run\n");
            let _ = std::io::stderr().write_all(note.as_bytes());
            return;
        }
    }
    let process = Process::start(&[]);
    let commands = commands()
        .replace("localhost:5300", &process.http().0.to_string())
        .replace(":5671", &format!(":{}", process.address("amqps").port()));
    let directory = format!("readme-{}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
    fs::create_dir_all(&directory).expect("a directory can be made");
    let output = Command::new("sh")
        .args(["-ec", &commands])
        .current_dir(&directory)
        .output()
        .expect("there is a shell");
    let _ = fs::remove_dir_all(&directory);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success()
            && said.contains("healthy")
            && said.contains("Verify return code: 0 (ok)"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The block of shell commands that fetches the certificate.
fn commands() -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(readme).expect("there is a README");
    let blocks = readme.split("```sh\n").skip(1);
    let mut blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0));
    let commands = blocks.find(|commands| commands.contains("ca.pem"));
    commands
        .expect("the README says how to trust the emulator")
        .to_owned()
}

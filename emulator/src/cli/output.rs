//! Writes the results of commands to standard output.

use std::io::{self, Write as _};

/// Writes `text` to standard output; an error is the text to print before exiting with 1.
pub fn print(text: &str) -> Result<(), String> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    check_written(written.and_then(|()| stdout.flush()))
}

/// A closed pipe is not an error: its reader, for example `head`, needs no more.
pub(super) fn check_written(written: io::Result<()>) -> Result<(), String> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

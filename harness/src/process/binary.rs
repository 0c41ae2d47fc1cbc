//! Where the `servicebus-emulator` binary is.
//!
//! Searched in this order: the builder, `SERVICEBUS_EMULATOR_BIN`, beside the test executable's target
//! directory, `PATH`. A place that was named and holds nothing is an error, not a reason to look further.

use std::{
    env,
    path::{Path, PathBuf},
};

use crate::start_error::StartError;

const VARIABLE: &str = "SERVICEBUS_EMULATOR_BIN";
const NAME: &str = "servicebus-emulator";

/// Finds the binary.
pub(crate) fn find(named: Option<&Path>) -> Result<PathBuf, StartError> {
    if let Some(path) = named {
        return existing(path, "the builder");
    }
    if let Some(path) = env::var_os(VARIABLE) {
        return existing(Path::new(&path), VARIABLE);
    }
    let searched = directories(env::current_exe().ok(), env::var_os("PATH"));
    searched
        .iter()
        .map(|directory| {
            directory
                .join(NAME)
                .with_extension(env::consts::EXE_EXTENSION)
        })
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| StartError::NoBinary {
            name: NAME,
            beside: searched.first().cloned().unwrap_or_default(),
        })
}

fn existing(path: &Path, named_by: &'static str) -> Result<PathBuf, StartError> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    Err(StartError::NamedBinaryMissing {
        path: path.to_owned(),
        named_by,
    })
}

fn directories(executable: Option<PathBuf>, path: Option<std::ffi::OsString>) -> Vec<PathBuf> {
    // Test executables are in `target/debug/deps`, examples in `target/debug/examples`, programs above.
    let beside = executable.and_then(|file| Some(file.parent()?.to_owned()));
    let above = beside.as_ref().and_then(|directory| directory.parent());
    let mut searched: Vec<PathBuf> = above.map(Path::to_owned).into_iter().collect();
    searched.extend(beside);
    searched.extend(path.iter().flat_map(env::split_paths));
    searched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_directory_comes_before_the_path() {
        let searched = directories(
            Some(PathBuf::from("/target/debug/deps/test-1")),
            Some("/usr/bin".into()),
        );
        let expected = ["/target/debug", "/target/debug/deps", "/usr/bin"];
        assert_eq!(searched, expected.map(PathBuf::from));
    }

    #[test]
    fn a_named_binary_that_is_missing_is_an_error() {
        let error = find(Some(Path::new("/nowhere/servicebus-emulator"))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no emulator binary at /nowhere/servicebus-emulator, named by the builder; run `cargo build -p servicebus-emulator`, and name none to have it found"
        );
    }
}

//! Finding and reading a topology file.
//!
//! Cargo runs tests in the directory of their package, other runners do not, and a test of a workspace may
//! keep its fixtures at either place: both are tried, and a failure names them.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use super::TopologyError;

/// Returns where the file was found, and its text.
pub(super) fn read(path: &Path) -> Result<(PathBuf, String), TopologyError> {
    let tried = candidates(path, env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from));
    for path in &tried {
        let path = path.clone();
        match fs::read_to_string(&path) {
            Ok(text) => return Ok((path, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(TopologyError::Unreadable { path, source }),
        }
    }
    Err(TopologyError::Missing { tried })
}

fn candidates(path: &Path, manifest: Option<PathBuf>) -> Vec<PathBuf> {
    // Joining an absolute path gives that path, so it is tried once.
    let current = env::current_dir().unwrap_or_default();
    let mut tried: Vec<PathBuf> = [manifest, Some(current)]
        .into_iter()
        .flatten()
        .map(|directory| directory.join(path))
        .collect();
    tried.dedup();
    tried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_tried_against_the_package_first() {
        let tried = candidates(Path::new("a.json"), Some(PathBuf::from("/package")));
        assert_eq!(tried[0], Path::new("/package/a.json"));
        assert_eq!(tried.len(), 2);
    }

    #[test]
    fn an_absolute_path_is_tried_once() {
        let tried = candidates(Path::new("/a.json"), Some(PathBuf::from("/package")));
        assert_eq!(tried, [Path::new("/a.json")]);
    }
}

//! A topology in the official emulator's JSON: written from the builder, read from a file, or exported from a running
//! namespace.
//!
//! Cargo runs tests in the directory of their package, other runners do not, and a test of a workspace may have its fixtures
//! in either place: the harness tries both, and an error names both.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use servicebus_broker::NamespaceSettings;
use servicebus_config::config::setting_names;

use super::{Queue, Topic, Topology};
use crate::error::Error;

/// The namespace of the official emulator, which some clients expect.
pub(crate) const NAMESPACE: &str = "sbemulatorns";

/// The namespace settings; those that were not set are not written, so that the emulator's defaults apply.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    values: NamespaceSettings,
    /// The names of those that were set.
    set: BTreeSet<&'static str>,
}

impl Settings {
    /// Sets the setting of this name.
    pub(crate) fn set(&mut self, name: &'static str, change: impl FnOnce(&mut NamespaceSettings)) {
        change(&mut self.values);
        self.set.insert(name);
    }

    /// Returns the `Emulator` block of the namespace; empty without settings.
    pub(crate) fn document(&self) -> Map<String, Value> {
        let set = setting_names(&self.values).filter(|(name, _)| self.set.contains(name));
        set.map(|(name, value)| (name.to_owned(), value.into()))
            .collect()
    }
}

/// Writes the topology as a configuration file.
pub(crate) fn text(topology: &Topology) -> String {
    let queues: Vec<Value> = topology.queues.iter().map(Queue::document).collect();
    let topics: Vec<Value> = topology.topics.iter().map(Topic::document).collect();
    let mut namespace = json!({ "Name": NAMESPACE, "Queues": queues, "Topics": topics });
    let settings = topology.settings.document();
    if !settings.is_empty() {
        namespace["Emulator"] = Value::Object(settings);
    }
    of(vec![namespace])
}

/// Writes a configuration file with these namespaces.
pub(crate) fn of(namespaces: Vec<Value>) -> String {
    let document = json!({
        "UserConfig": { "Namespaces": namespaces, "Logging": { "Type": "Console" } }
    });
    format!("{document:#}")
}

/// The largest number of files that the error for a missing file names.
const MAX_NAMES: usize = 10;

/// Returns the path of the file, and its text.
pub(crate) fn read(path: &Path) -> Result<(PathBuf, String), Error> {
    let tried = candidates(path, env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from));
    for path in &tried {
        let path = path.clone();
        match fs::read_to_string(&path) {
            Ok(text) => return Ok((path, text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let path = path.display();
                let sentence = format!("cannot read the topology file {path}: {error}");
                return Err(Error::topology(sentence));
            }
        }
    }
    let paths = Vec::from_iter(tried.iter().map(|path| path.display().to_string()));
    Err(Error::topology(format!(
        "no topology file at {}; {}",
        paths.join(" nor at "),
        existing_files(&tried)
    )))
}

/// Lists the files that exist instead, or says where the harness looks.
fn existing_files(tried: &[PathBuf]) -> String {
    let mut directories = tried.iter().filter_map(|path| path.parent());
    let found = directories.find_map(|directory| {
        let mut names = json_files(directory);
        names.sort_unstable();
        (!names.is_empty()).then(|| format!("{} has {}", directory.display(), listed(&names)))
    });
    found.unwrap_or_else(|| {
        "the harness searches for a relative path in the package under test, then in the current directory"
            .to_owned()
    })
}

/// Returns the names of the JSON files in a directory.
fn json_files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".json")).collect()
}

/// Joins the first names, and the number of the others.
fn listed(names: &[String]) -> String {
    let shown = names.len().min(MAX_NAMES);
    let more = match names.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    names[..shown].join(", ") + &more
}

fn candidates(path: &Path, manifest: Option<PathBuf>) -> Vec<PathBuf> {
    // Joining an absolute path returns that path, so it is tried once.
    let current = env::current_dir().unwrap_or_default();
    let mut tried: Vec<PathBuf> = [manifest, Some(current)]
        .into_iter()
        .flatten()
        .map(|directory| directory.join(path))
        .collect();
    tried.dedup();
    tried
}

impl Topology {
    /// Returns the topology in the official emulator's JSON: the text of the file, of the builder or of the export.
    pub fn json(&self) -> Result<String, Error> {
        Ok(self.resolve()?.text)
    }
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
    fn a_directory_with_many_files_names_some() {
        let names: Vec<String> = (0..12).map(|number| format!("{number}.json")).collect();
        let text = listed(&names);
        assert!(text.ends_with(", 9.json and 2 more"), "{text}");
        assert_eq!(listed(&names[..2]), "0.json, 1.json");
    }

    #[test]
    fn an_absolute_path_is_tried_once() {
        let tried = candidates(Path::new("/a.json"), Some(PathBuf::from("/package")));
        assert_eq!(tried, [Path::new("/a.json")]);
    }
}

//! Validates the keys of a namespace.
//!
//! The key name may select the namespace of a connection, so key names are unique within a process. A namespace without keys
//! gets the default key, under another name if that is taken; so does one that declares this key, as exports do.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use super::{Files, NamespaceBlock};
use crate::auth::{
    Claim, Claims, Jwt, Key, KeySet, MAX_KEY_SET_SIZE, WELL_KNOWN_KEY, WELL_KNOWN_KEY_NAME,
};
use crate::config::document::{JwtBlock, KeyBlock, KeysBlock};
use crate::config::reader::{Located, Report};

/// The maximum length of a name and of a key in characters, as in the service.
const MAX_LENGTH: usize = 256;

/// The key names in use, with the paths of their declarations.
pub(crate) struct KeyNames<'a> {
    taken: HashMap<String, String>,
    /// Returns whether a namespace that is already served has the name.
    is_taken: &'a dyn Fn(&str) -> bool,
}

/// Returns the key of a namespace without keys: the default one, under an unused name.
pub(crate) fn generate_key(namespace: &str, is_taken: impl Fn(&str) -> bool) -> Key {
    Key {
        name: key_name(WELL_KNOWN_KEY_NAME, namespace, is_taken),
        key: WELL_KNOWN_KEY.to_owned(),
        claims: Claims::ALL,
    }
}

/// Returns the wanted name of a key, extended by that of its namespace if it is taken.
pub(crate) fn key_name(wanted: &str, namespace: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let first = [wanted.to_owned(), format!("{wanted}-{namespace}")];
    let others = (2_u32..).map(|number| format!("{wanted}-{namespace}-{number}"));
    let mut free = first
        .into_iter()
        .chain(others)
        .filter(|name| !is_taken(name));
    free.next().unwrap_or_default()
}

/// Returns whether [`generate_key`] could have returned a key, for any namespace.
fn is_default(key: &Key) -> bool {
    let ending = key.name.strip_prefix(WELL_KNOWN_KEY_NAME);
    ending.is_some_and(|ending| ending.is_empty() || ending.starts_with('-'))
        && key.key == WELL_KNOWN_KEY
        && key.claims == Claims::ALL
}

impl<'a> KeyNames<'a> {
    /// Collects all declared names, so that no generated name collides with them, and reports repeated ones. The emulator
    /// rejects declared names that it already serves.
    pub(crate) fn declared(
        report: &Report<'_>,
        blocks: &[NamespaceBlock],
        is_taken: &'a dyn Fn(&str) -> bool,
    ) -> Self {
        let mut taken: HashMap<String, String> = HashMap::new();
        let keys = blocks
            .iter()
            .filter_map(|block| block.emulator.keys.as_ref());
        let names = keys
            .flat_map(|keys| &keys.value)
            .filter_map(|key| key.name.as_ref());
        for Located { location, value } in names {
            if let Some(first) = taken.get(value) {
                let what = format!(
                    "names another key already, at {first}; a key name chooses the namespace"
                );
                report.wrong_value(location, what, None);
            } else {
                taken.insert(value.clone(), location.path.clone());
            }
        }
        Self { taken, is_taken }
    }

    pub(crate) fn keys(
        &mut self,
        report: &Report<'_>,
        namespace: &str,
        blocks: Option<Located<Vec<KeyBlock>>>,
    ) -> Vec<Key> {
        let Some(Located {
            location,
            value: blocks,
        }) = blocks
        else {
            return vec![self.made_up(namespace)];
        };
        if blocks.is_empty() {
            report.problem(
                &location,
                "no client could enter; leave the key out for the well-known one",
                None,
            );
        }
        let keys = blocks.into_iter().filter_map(|block| key(report, block));
        let keys = Vec::from_iter(keys);
        match &keys[..] {
            [only] if is_default(only) && (self.is_taken)(&only.name) => {
                vec![self.made_up(namespace)]
            }
            _ => keys,
        }
    }

    fn made_up(&mut self, namespace: &str) -> Key {
        let is_taken = |name: &str| self.taken.contains_key(name) || (self.is_taken)(name);
        let key = generate_key(namespace, is_taken);
        self.taken.insert(key.name.clone(), String::new());
        key
    }
}

fn key(report: &Report<'_>, block: KeyBlock) -> Option<Key> {
    let claims = claims(report, block.claims);
    for text in [&block.name, &block.key].into_iter().flatten() {
        check_text(report, text);
    }
    Some(Key {
        name: block.name?.value,
        key: block.key?.value,
        claims,
    })
}

fn claims(report: &Report<'_>, written: Option<Located<Vec<Claim>>>) -> Claims {
    let Some(Located { location, value }) = written else {
        return Claims::ALL;
    };
    let claims: Claims = value.iter().copied().collect();
    let both = claims.contains(Claim::Send) && claims.contains(Claim::Listen);
    if claims.contains(Claim::Manage) && !both {
        report.problem(
            &location,
            "Manage is only granted together with Send and Listen",
            None,
        );
    }
    claims
}

/// Reports a text that a connection string cannot contain.
fn check_text(report: &Report<'_>, text: &Located<String>) {
    let Located { location, value } = text;
    let length = value.encode_utf16().count();
    let illegal = value.chars().any(|c| c == ';' || c.is_control());
    if length == 0 || length > MAX_LENGTH || illegal {
        let allowed = format!("1 to {MAX_LENGTH} characters other than ';' and control characters");
        report.wrong_value(
            location,
            "cannot stand in a connection string",
            Some(allowed),
        );
    }
}

/// Returns the setting; an invalid one is reported, and its value does not matter.
pub(crate) fn jwt(report: &Report<'_>, block: Option<JwtBlock>, files: Files<'_>) -> Jwt {
    let (keys, audience) = match block {
        None => return Jwt::default(),
        Some(JwtBlock::Accept) => return Jwt::Accept,
        Some(JwtBlock::Refuse) => return Jwt::Refuse,
        Some(JwtBlock::Check { keys, audience }) => (keys, audience),
    };
    let Some(Located { location, value }) = keys else {
        return Jwt::default();
    };
    let set = match (value, files) {
        (KeysBlock::Inline(set), _) => KeySet::from_json(set, audience),
        (KeysBlock::File(file), Files::RelativeTo(directory)) => {
            read(&directory.join(file)).and_then(|text| KeySet::parse(&text, audience))
        }
        (KeysBlock::File(_), Files::Refused) => {
            let allowed = "a JSON web key set: {\"keys\": […]}".to_owned();
            let what = "names a file, and none is read for a request";
            report.wrong_value(&location, what, Some(allowed));
            return Jwt::default();
        }
    };
    match set {
        Ok(set) => Jwt::Check(Arc::new(set)),
        Err(reason) => {
            let name = report.excerpt(&location);
            report.problem(&location, format!("cannot use {name}: {reason}"), None);
            Jwt::default()
        }
    }
}

/// Reads a regular file. Opening others may block, and reading them may never end.
fn read(file: &Path) -> Result<String, String> {
    let reason = |error: io::Error| error.to_string();
    let kind = fs::metadata(file).map_err(reason)?.file_type();
    if kind.is_dir() {
        return Err("it is a directory".to_owned());
    }
    if !kind.is_file() {
        return Err("it is not a regular file, but a pipe, socket or device".to_owned());
    }
    let mut bytes = Vec::new();
    let read =
        File::open(file).and_then(|file| file.take(MAX_KEY_SET_SIZE + 1).read_to_end(&mut bytes));
    read.map_err(reason)?;
    if bytes.len() as u64 > MAX_KEY_SET_SIZE {
        let most = MAX_KEY_SET_SIZE / 1024 / 1024;
        return Err(format!("it is larger than {most} MiB"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

//! The differences that are known, each with where it is written and since when.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::Difference;

/// The ledger of known differences: a JSON list.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    pub(super) known: Vec<Known>,
}

/// One difference that is known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// By what it is cited; no other has it.
    pub id: String,
    /// The path of the case, or the beginning of it that ends with `::` and means every case below.
    pub case: String,
    /// What was observed: `outcome`, or as the suite calls it.
    pub what: String,
    /// What the left target says; anything where it is left out.
    #[serde(default)]
    pub left: Option<String>,
    /// What the right target says; anything where it is left out.
    #[serde(default)]
    pub right: Option<String>,
    /// Where it is written that it is so.
    pub source: String,
    /// Since when it is known: `2026-11-22`.
    pub date: String,
}

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It is not there, or may not be read.
    #[error("cannot read the ledger {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else than a list of known differences.
    #[error("the ledger {} is wrong: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// Two have the same id.
    #[error("the ledger {} has the id \"{id}\" twice", path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
    },
    /// One does not say where it is written, or since when it is known.
    #[error("the ledger {} has no {field} for \"{id}\"", path.display())]
    Unfounded {
        /// The file.
        path: PathBuf,
        /// The id.
        id: String,
        /// What is empty.
        field: &'static str,
    },
}

impl Ledger {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self, LedgerError> {
        let text = fs::read_to_string(path).map_err(|source| LedgerError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, LedgerError> {
        let path = || path.to_owned();
        let known: Vec<Known> =
            serde_json::from_str(text).map_err(|source| LedgerError::Malformed {
                path: path(),
                source,
            })?;
        for (index, entry) in known.iter().enumerate() {
            let id = || entry.id.clone();
            if known[..index].iter().any(|other| other.id == entry.id) {
                return Err(LedgerError::Twice {
                    path: path(),
                    id: id(),
                });
            }
            let founded = [("source", &entry.source), ("date", &entry.date)];
            if let Some((field, _)) = founded.into_iter().find(|(_, text)| text.trim().is_empty()) {
                return Err(LedgerError::Unfounded {
                    path: path(),
                    id: id(),
                    field,
                });
            }
        }
        Ok(Self { known })
    }

    /// Finds the entry that a difference is.
    pub(super) fn find(&self, case: &str, difference: &Difference) -> Option<&Known> {
        self.known.iter().find(|known| known.is(case, difference))
    }
}

impl Known {
    fn is(&self, case: &str, difference: &Difference) -> bool {
        let is_case =
            self.case == case || (self.case.ends_with("::") && case.starts_with(&self.case));
        let fits = |wanted: &Option<String>, found: &Option<String>| {
            wanted
                .as_ref()
                .is_none_or(|wanted| Some(wanted) == found.as_ref())
        };
        is_case
            && self.what == difference.what
            && fits(&self.left, &difference.left)
            && fits(&self.right, &difference.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = r#"{"id":"1","case":"a::","what":"w","right":"r","source":"s","date":"d"}"#;

    #[test]
    fn an_entry_matches_only_its_own_difference() {
        let ledger = Ledger::parse(&format!("[{ENTRY}]"), Path::new("l")).unwrap();
        let difference = |right: &str| Difference {
            what: "w".to_owned(),
            left: None,
            right: Some(right.to_owned()),
            known: None,
        };
        assert!(ledger.find("a::b", &difference("r")).is_some());
        assert!(ledger.find("a::b", &difference("other")).is_none());
        assert!(ledger.find("b::a", &difference("r")).is_none());
    }

    #[test]
    fn a_ledger_without_ids_or_sources_is_refused() {
        let unfounded = ENTRY.replace(r#""s""#, r#"" ""#);
        let cases = [
            (format!("[{ENTRY},{ENTRY}]"), "has the id \"1\" twice"),
            (format!("[{unfounded}]"), "has no source for \"1\""),
            ("[{}]".to_owned(), "missing field"),
        ];
        for (text, expected) in cases {
            let error = Ledger::parse(&text, Path::new("l"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

//! How a namespace takes JSON web tokens; a key set is read here, so that a bad one is found before anything serves.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use crate::auth::{Jwt, KeySet, MAX_KEY_SET_SIZE};
use crate::config::document::JwtBlock;
use crate::config::reader::{Located, Report};

/// The setting; what is not legal is reported and then does not matter.
pub(super) fn jwt(report: &Report<'_>, block: Option<JwtBlock>, directory: &Path) -> Jwt {
    let (keys, audience) = match block {
        None => return Jwt::default(),
        Some(JwtBlock::Accept) => return Jwt::Accept,
        Some(JwtBlock::Refuse) => return Jwt::Refuse,
        Some(JwtBlock::Check { keys, audience }) => (keys, audience),
    };
    let Some(Located { place, value }) = keys else {
        return Jwt::default();
    };
    let file = directory.join(&value);
    let set = read(&file).and_then(|text| KeySet::parse(&text, file.clone(), audience));
    match set {
        Ok(set) => Jwt::Check(Arc::new(set)),
        Err(reason) => {
            let message = format!("cannot use {value}: {reason}");
            report.problem(&place, message, None);
            Jwt::default()
        }
    }
}

fn read(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    File::open(file)
        .and_then(|file| file.take(MAX_KEY_SET_SIZE + 1).read_to_string(&mut text))
        .map_err(|error| error.kind().to_string())?;
    if text.len() as u64 > MAX_KEY_SET_SIZE {
        return Err(format!(
            "it is larger than {} MiB",
            MAX_KEY_SET_SIZE / 1024 / 1024
        ));
    }
    Ok(text)
}

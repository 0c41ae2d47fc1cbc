//! How a namespace takes JSON web tokens. A key set is read here, so that a bad one is found before the namespace
//! serves.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use super::Files;
use crate::auth::{Jwt, KeySet, MAX_KEY_SET_SIZE};
use crate::config::document::{JwtBlock, KeysBlock};
use crate::config::reader::{Located, Report};

/// The setting; what is not legal is reported and then does not matter.
pub(crate) fn jwt(report: &Report<'_>, block: Option<JwtBlock>, files: Files<'_>) -> Jwt {
    let (keys, audience) = match block {
        None => return Jwt::default(),
        Some(JwtBlock::Accept) => return Jwt::Accept,
        Some(JwtBlock::Refuse) => return Jwt::Refuse,
        Some(JwtBlock::Check { keys, audience }) => (keys, audience),
    };
    let Some(Located { place, value }) = keys else {
        return Jwt::default();
    };
    let name = report.excerpt(&place);
    let set = match (value, files) {
        (KeysBlock::Inline(set), _) => KeySet::from_json(set, audience),
        (KeysBlock::File(file), Files::Beside(directory)) => {
            read(&directory.join(file)).and_then(|text| KeySet::parse(&text, audience))
        }
        (KeysBlock::File(_), Files::Refused) => {
            let message = format!("{name} names a file, and none is read for a request");
            let allowed = "a JSON web key set: {\"keys\": […]}".to_owned();
            report.problem(&place, message, Some(allowed));
            return Jwt::default();
        }
    };
    match set {
        Ok(set) => Jwt::Check(Arc::new(set)),
        Err(reason) => {
            report.problem(&place, format!("cannot use {name}: {reason}"), None);
            Jwt::default()
        }
    }
}

/// The text of a regular file; of anything else opening may block, or reading never end.
fn read(file: &Path) -> Result<String, String> {
    let said = |error: io::Error| error.kind().to_string();
    let kind = fs::metadata(file).map_err(said)?.file_type();
    if kind.is_dir() {
        return Err("it is a directory".to_owned());
    }
    if !kind.is_file() {
        return Err("it is no regular file, but a pipe, socket or device".to_owned());
    }
    let mut bytes = Vec::new();
    let read =
        File::open(file).and_then(|file| file.take(MAX_KEY_SET_SIZE + 1).read_to_end(&mut bytes));
    read.map_err(said)?;
    if bytes.len() as u64 > MAX_KEY_SET_SIZE {
        let most = MAX_KEY_SET_SIZE / 1024 / 1024;
        return Err(format!("it is larger than {most} MiB"));
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())
}

//! Tests of keys: a key set is inline or in a file beside the configuration, and no problem quotes a key.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::*;

const SECRET: &str = "hunter2-hunter2";
const SET: &str = include_str!("../../../../../fixtures/tokens/jwks.json");

fn with_block(block: &str) -> String {
    format!(r#"{{"UserConfig":{{"Namespaces":[{{"Name":"a","Emulator":{{{block}}}}}]}}}}"#)
}

fn requested(block: &str) -> Result<NamespaceConfig, ConfigError> {
    NamespaceConfig::parse_as("a", &with_block(block), Tier::Standard, &|_| false)
}

#[test]
fn a_key_set_may_stand_in_the_configuration() {
    let block = format!(r#""Jwt":{{"Keys":{SET} /* and no more */,"Audience":"me"}}"#);
    let Jwt::Check(inline) = requested(&block).unwrap().jwt else {
        panic!("a key set is declared");
    };
    let file = valid("token-keys.json").namespaces.remove(0);
    let Jwt::Check(named) = &file.jwt else {
        panic!("a key set is declared");
    };
    assert_eq!(inline.to_json(), named.to_json());
    assert_eq!(inline.audience.as_deref(), Some("me"));
    assert_eq!(
        Config::parse(&with_block(&block)).unwrap().namespaces[0].jwt,
        Jwt::Check(inline)
    );
}

#[test]
fn a_request_cannot_name_a_key_set_file() {
    for file in [
        "/dev/zero",
        "/dev/tty",
        "/",
        "nowhere",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ] {
        let error = requested(&format!(r#""Jwt":{{"Keys":"{file}"}}"#)).unwrap_err();
        let [problem] = &error.problems[..] else {
            panic!("{error}");
        };
        assert!(
            problem
                .message
                .ends_with("names a file, and none is read for a request"),
            "{problem}"
        );
        assert_eq!(
            problem.allowed.as_deref(),
            Some("a JSON web key set: {\"keys\": […]}")
        );
    }
}

#[cfg(unix)]
#[test]
fn a_key_set_path_must_be_a_regular_file() {
    let directory =
        std::env::temp_dir().join(format!("servicebus-emulator-keys-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let fifo = directory.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let large = directory.join("large");
    fs::write(
        &large,
        " ".repeat(crate::auth::MAX_KEY_SET_SIZE as usize + 1),
    )
    .unwrap();
    let reason = |file: &Path| {
        let block = format!(r#""Jwt":{{"Keys":{}}}"#, json!(file));
        let error = Config::parse(&with_block(&block)).unwrap_err();
        error.problems[0].message.clone()
    };
    for (file, expected) in [
        (
            fifo.as_path(),
            ": it is not a regular file, but a pipe, socket or device",
        ),
        (
            Path::new("/dev/zero"),
            ": it is not a regular file, but a pipe, socket or device",
        ),
        (directory.as_path(), ": it is a directory"),
        (large.as_path(), ": it is larger than 1 MiB"),
        (
            Path::new("/missing.json"),
            ": No such file or directory (os error 2)",
        ),
    ] {
        let reason = reason(file);
        assert!(reason.ends_with(expected), "{reason}");
    }
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn problems_do_not_contain_key_values() {
    let rsa = format!(r#"{{"kty":"RSA","n":"AQ","e":"AQAB","d":"{SECRET}"}}"#);
    for block in [
        format!(r#""Keys":[{{"Name":"a","Key":"{SECRET};"}}]"#),
        format!(r#""Keys":[{{"Name":"a","Key":["{SECRET}"]}}]"#),
        format!(r#""Keys":["{SECRET}"]"#),
        format!(r#""Keys":"{SECRET}""#),
        format!(r#""Keys":{{"{SECRET}":"{SECRET}"}}"#),
        format!(r#""Keys":[{{"Name":"a","Key":"{SECRET}","Claims":"Send"}}]"#),
        format!(r#""Keys":[{{"Name":"a","key":"{SECRET}"}}]"#),
        format!(r#""Keys":[{{"Name":"a","Key":"{SECRET}"#),
        format!(r#""Keys":[{{"Name":"a","Key":"{SECRET}"}} {SECRET}"#),
        format!(r#""Jwt":{{"Keys":{{"keys":[{{"d":"{SECRET}"}}]}}}}"#),
        format!(r#""Jwt":{{"Keys":{{"keys":"{SECRET}"}}}}"#),
        format!(r#""Jwt":{{"Keys":["{SECRET}"]}}"#),
        format!(r#""Jwt":{{"Keys":{{"keys":[{rsa},{{"kty":5,"d":"{SECRET}"}}]}}}}"#),
    ] {
        let error = requested(&block).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{block}: {error:?}"
        );
    }
    let block =
        format!(r#""Keys":[{{"Name":"a","Key":"{SECRET}"}}],"Jwt":{{"Keys":{{"keys":[{rsa}]}}}}"#);
    let read = requested(&block).unwrap();
    assert!(!format!("{read:?}").contains("hunter2"), "{read:?}");
    let text = with_block(&block);
    let report = reader::Report::new(&text);
    let tree = reader::parse(&report).unwrap();
    let document = document::read(&report, &tree, Tier::default()).unwrap();
    assert!(!format!("{document:?}").contains("hunter2"), "{document:?}");
    assert!(
        !export(&read)["UserConfig"]["Namespaces"][0]["Emulator"]["Jwt"]
            .to_string()
            .contains("hunter2")
    );
}

//! The files of the inspector page: how they are sent, and that no other script can run in it. `inspector/run` tests the
//! page.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};
use servicebus_inspector::{ASSETS, CONTENT_SECURITY_POLICY};

use crate::support::*;

/// Maximum size of the page in the program, in bytes.
const BUDGET: usize = 80 * 1024;

fn get(bus: &Bus, path: &str, headers: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    bus.http.text(request.as_bytes())
}

#[test]
fn the_inspector_page_is_compressed_and_has_a_content_security_policy() {
    let bus = Bus::with_queues(&["q"]);
    let answer = get(&bus, "/$emulator/", "").to_lowercase();
    assert_starts_with(&answer, "http/1.1 200");
    let policy = CONTENT_SECURITY_POLICY.to_lowercase();
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-encoding: gzip",
        "cache-control: no-cache",
        "x-content-type-options: nosniff",
        &format!("content-security-policy: {policy}"),
    ] {
        assert_contains(&answer, header);
    }
}

#[test]
fn a_cached_inspector_file_is_answered_with_304() {
    let bus = Bus::with_queues(&["q"]);
    let asset = servicebus_inspector::asset("app.js").expect("the page has a script");
    let known = format!("If-None-Match: {}\r\n", asset.etag);
    let answer = get(&bus, "/$emulator/app.js", &known);
    assert_starts_with(&answer, "HTTP/1.1 304");
    let other = get(&bus, "/$emulator/app.js", "If-None-Match: \"0\"\r\n");
    assert_starts_with(&other, "HTTP/1.1 200");
}

#[test]
fn only_browsers_are_redirected_to_the_inspector() {
    let bus = Bus::with_queues(&["q"]);
    let browser = "Accept: text/html,application/xhtml+xml\r\n";
    for path in ["/", "/$emulator"] {
        let answer = get(&bus, path, browser);
        assert_starts_with(&answer, "HTTP/1.1 303");
        assert_contains(&answer, "location: /$emulator/");
    }
    for headers in ["", "Accept: text/html\r\nAuthorization: x\r\n"] {
        let answer = get(&bus, "/", headers);
        assert!(!answer.contains("location:"), "{answer}");
    }
}

#[test]
fn a_missing_inspector_file_is_not_found() {
    let bus = Bus::with_queues(&["q"]);
    for path in [
        "/$emulator/no.js",
        "/$emulator/vendor",
        "/$emulator/../Cargo.toml",
    ] {
        let answer = get(&bus, path, "");
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    }
    let posted = bus.http.post("/$emulator/app.js", &serde_json::Value::Null);
    assert_eq!(posted.status, 404, "{posted:?}");
}

#[test]
fn only_the_import_map_of_the_inspector_is_inline_script() {
    let page = include_str!("../../../inspector/page/index.html");
    let (_, map) = page
        .split_once("<script type=\"importmap\">")
        .expect("the page has an import map");
    let (map, rest) = map.split_once("</script>").expect("it ends");
    let hash = BASE64_STANDARD.encode(digest(&SHA256, map.as_bytes()));
    assert_contains(CONTENT_SECURITY_POLICY, &format!("'sha256-{hash}'"));
    assert_eq!(
        rest.matches("<script").count(),
        rest.matches("src=\"").count()
    );
}

#[test]
fn the_inspector_files_stay_within_their_size_budget() {
    let size: usize = ASSETS.iter().map(|asset| asset.content.len()).sum();
    assert!(size <= BUDGET, "{size} bytes of at most {BUDGET}");
    assert!(size > BUDGET / 10, "{size} bytes are not a page");
}

//! The encoding of the control API's description. `openapi.rs` tests its contents.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::Value;
use servicebus_control_api::openapi;

use crate::support::*;

#[test]
fn the_openapi_description_is_compressed_for_clients_accepting_gzip() {
    let bus = Bus::with_queues(&["q"]);
    let path = "/$emulator/v1/openapi.json";
    for (accepted, is_packed) in [
        ("gzip", true),
        ("deflate, GZIP;q=0.5, br", true),
        ("identity", false),
        ("gzip;q=0", false),
        ("gzip; q=0.000", false),
    ] {
        let headers = format!("Accept-Encoding: {accepted}\r\nConnection: close\r\n");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let answer = bus.http.exchange(request.as_bytes());
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = answer.split_at(end.expect("an answer has a head") + 4);
        let head = String::from_utf8_lossy(head).to_lowercase();
        assert!(head.contains("vary: accept-encoding"), "{head}");
        let packed = head.contains("content-encoding: gzip");
        assert_eq!(packed, is_packed, "{accepted}: {head}");
        let mut text = String::new();
        match packed {
            true => GzDecoder::new(body).read_to_string(&mut text),
            false => { body }.read_to_string(&mut text),
        }
        .expect("the description is text");
        let told: Value = serde_json::from_str(&text).expect("the description is JSON");
        assert!(
            told == openapi::document(),
            "{accepted}: another one is served"
        );
    }
}

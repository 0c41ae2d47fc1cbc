//! What the control API says of itself is true: every answer that is described is provoked, and is as described.

mod description;
mod tour;

use serde_json::{Value, json};
use servicebus_emulator::{Options, TlsOptions, UserCertificate};

use crate::support::*;
use description::Description;
use tour::Tour;

#[test]
fn every_answer_that_is_described_is_given_and_is_as_described() {
    let description = Description::read();
    let mut tour = Tour::begin(&description);
    tour.process();
    tour.namespaces();
    tour.clocks();
    tour.messages();
    tour.faults();
    tour.sessions();
    tour.entities();
    tour.limits();
    without_authority(&mut tour);
    without_tls(&mut tour);
    tour.hold();
    let missing: Vec<_> = description
        .answers()
        .difference(&tour.seen)
        // Only a mistake in the emulator provokes it: see `tests/harness/health.rs`.
        .filter(|(_, path, status)| !(path.ends_with("/health") && *status == 503))
        .cloned()
        .collect();
    assert_eq!(missing, [], "described, and not seen");
}

#[test]
fn what_any_operation_may_answer_is_described() {
    let description = Description::read();
    let bus = Bus::with_queues(&["q"]);
    let post =
        "POST /$emulator/v1/clock/freeze HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n";
    for (response, headers, status) in [
        ("Malformed", "", 400),
        ("Misdirected", "Host: evil.example\r\n", 421),
        (
            "Forbidden",
            "Host: x\r\nOrigin: http://evil.example\r\n",
            403,
        ),
    ] {
        let answer = bus.http.raw(format!("{post}{headers}\r\n").as_bytes());
        assert_eq!(answer.status, status, "{answer:?}");
        description.check_common(response, &answer.body);
    }
    // 401 is given to no client on loopback: `src/http/guard/tests.rs`.
    let unauthorized = json!({"error": {"code": "unauthorized", "message": "m", "problems": []}});
    description.check_common("Unauthorized", &unauthorized);
    let late = json!({"error": {"code": "request-timeout", "message": "m", "problems": []}});
    // Given where the body of a request does not come: `errors.rs`.
    description.check_common("RequestTimeout", &late);
    let all = [
        "Forbidden",
        "Malformed",
        "Misdirected",
        "RequestTimeout",
        "Unauthorized",
    ];
    assert!(
        description.common().iter().eq(all),
        "{:?}",
        description.common()
    );
    assert_eq!(bus.http.get("/$emulator/v1/clock").ok()["frozen"], false);
}

#[test]
fn the_description_is_served_as_it_stands_in_the_file() {
    let bus = Bus::with_queues(&["q"]);
    let served = bus.http.get("/$emulator/v1/openapi.json");
    assert!(
        served
            .head
            .to_lowercase()
            .contains("content-type: application/json")
    );
    assert_eq!(served.ok(), Description::read().document);
}

/// Where a certificate was given there is none of ours to trust.
fn without_authority(tour: &mut Tour<'_>) {
    let given = UserCertificate {
        chain: "chain.pem".into(),
        key: "key.pem".into(),
    };
    let bus = Bus::started(Options {
        tls: TlsOptions {
            certificate: Some(given),
            ..TlsOptions::default()
        },
        ..Options::default()
    });
    tour.at(bus.http, "GET /$emulator/v1/ca.pem", 404);
}

/// Where the authority cannot be kept there is no TLS.
fn without_tls(tour: &mut Tour<'_>) {
    let file = TemporaryFile::new("");
    let process = Process::start(&["--amqps-port", "off", "--tls-directory", file.path()]);
    tour.at(process.http(), "GET /$emulator/v1/ca.pem", 500);
}

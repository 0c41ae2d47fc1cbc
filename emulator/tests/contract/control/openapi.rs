//! What the control API says of itself is true: every answer that is described is provoked, and is as described.

mod description;
mod tour;

use serde_json::{Value, json};
use servicebus_emulator::{GivenCertificate, Options, TlsOptions};

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
    let given = GivenCertificate {
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

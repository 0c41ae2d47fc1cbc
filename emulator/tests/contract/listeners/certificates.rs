//! The certificate that clients must trust: created once, available everywhere, or given by the user.

use std::fs;
use std::path::PathBuf;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

use crate::support::*;

const ROUTE: &[u8] =
    b"GET /$emulator/v1/ca.pem HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn text(path: &std::path::Path) -> String {
    path.to_str().expect("a path that is text").to_owned()
}

#[test]
fn emulators_of_one_tls_directory_share_and_show_their_ca() {
    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    let arguments = ["--tls-directory", temporary.path()];
    let [one, other] = [Process::start(&arguments), Process::start(&arguments)];
    let file = directory.join("ca.pem");
    let ca = fs::read_to_string(&file).expect("it was made");
    for process in [&one, &other] {
        assert_eq!(process.ready["ca_certificate"], text(&file).as_str());
        let trust_store = file.with_extension("p12");
        assert_eq!(process.ready["trust_store"], text(&trust_store).as_str());
        let answer = process.http().text(ROUTE);
        assert_contains(
            &answer.to_lowercase(),
            "content-type: application/pem-certificate-chain",
        );
        assert_contains(&answer, &ca);
        let stream = Stream::secured(process.address("amqps"), "localhost", &ca);
        let mut peer = Peer::open_over(stream.expect("one authority"), &Open::default());
        peer.let_in();
        peer.sender("queue.1");
    }
}

#[test]
fn the_ca_is_created_only_when_tls_is_used() {
    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    let arguments = ["--amqps-port", "off", "--tls-directory", temporary.path()];
    let process = Process::start(&arguments);
    assert_eq!(process.ready["amqps"], Value::Null);
    assert_eq!(process.ready["ca_certificate"], Value::Null);
    assert_eq!(process.http().get("/health").status, 200);
    assert!(!directory.exists());
    let ca = process.http().text(ROUTE);
    let ca = &ca[ca.find("-----BEGIN").expect("a certificate")..];
    let kept = fs::read_to_string(directory.join("ca.pem")).expect("a file");
    assert_starts_with(ca, &kept);
    Stream::secured(process.amqp(), "localhost", ca).expect("TLS at the listener of AMQP");
}

#[test]
fn additional_tls_names_are_certified_by_a_ca_of_the_run() {
    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    let own = "servicebus.test,10.1.2.3";
    let process = Process::start(&["--tls-name", own, "--tls-directory", temporary.path()]);
    let kept = fs::read_to_string(directory.join("ca.pem")).expect("it was made");
    let file = process.ready["ca_certificate"]
        .as_str()
        .expect("a file")
        .to_owned();
    let ca = fs::read_to_string(&file).expect("it can be read");
    assert!(ca.starts_with(&kept) && ca.len() > kept.len(), "{ca}");
    assert_ends_with(&process.http().text(ROUTE), &ca);
    let trust_store = PathBuf::from(&file).with_extension("p12");
    assert_eq!(process.ready["trust_store"], text(&trust_store).as_str());
    let both = fs::read(&trust_store).expect("it was written");
    let of_kept = fs::read(directory.join("ca.p12"));
    assert!(of_kept.is_err(), "a run writes no more than it says");
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        let certificate = certificate.expect("a certificate");
        assert!(
            both.windows(certificate.len())
                .any(|part| part == &*certificate)
        );
    }
    for name in [
        "servicebus.test",
        "10.1.2.3",
        "sbemulatorns",
        "sbemulatorns.localhost",
    ] {
        Stream::secured(process.address("amqps"), name, &ca).expect(name);
    }
    assert!(Stream::secured(process.address("amqps"), "other.test", &ca).is_err());
    // The user's authority issues certificates only for this machine and the service.
    for (name, is_believed) in [
        ("localhost", true),
        ("sbemulatorns.localhost", true),
        ("any.servicebus.windows.net", true),
        ("servicebus.test", false),
        ("sbemulatorns", false),
        ("10.1.2.3", false),
    ] {
        let stream = Stream::secured(process.address("amqps"), name, &kept);
        assert_eq!(stream.is_ok(), is_believed, "{name}");
    }
    let log = process.ended_by("TERM").stderr;
    assert_contains(&log, &format!("let it trust {file}"));
    assert!(!PathBuf::from(&file).exists(), "{file}");
    assert!(!trust_store.exists(), "{}", trust_store.display());
}

#[test]
fn certificate_files_of_a_killed_run_are_removed_by_the_next() {
    let temporary = TemporaryDirectory::unused();
    let arguments = [
        "--tls-name",
        "bus.test",
        "--tls-directory",
        temporary.path(),
    ];
    let files = |process: &Process| {
        ["ca_certificate", "trust_store"]
            .map(|name| PathBuf::from(process.ready[name].as_str().expect("a file")))
    };
    let mut killed = Process::start(&arguments);
    let running = Process::start(&arguments);
    let of_killed = files(&killed);
    assert!(of_killed.iter().all(|file| file.exists()));
    killed.signal("KILL");
    killed.exit_code();
    let next = Process::start(&arguments);
    assert!(of_killed.iter().all(|file| !file.exists()));
    for process in [running, next] {
        assert!(files(&process).iter().all(|file| file.exists()));
    }
}

#[test]
fn an_unconstrained_ca_in_the_tls_directory_is_replaced() {
    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    fs::create_dir_all(directory).expect("a directory can be made");
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut old = rcgen::CertificateParams::default();
    old.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
    let old = old.self_signed(&key).expect("a certificate").pem();
    fs::write(directory.join("ca.pem"), &old).expect("a file can be written");
    fs::write(directory.join("ca-key.pem"), key.serialize_pem()).expect("a file can be written");
    let process = Process::start(&["--tls-directory", temporary.path()]);
    let file = text(&directory.join("ca.pem"));
    assert_eq!(process.ready["ca_certificate"], file.as_str());
    let kept = fs::read_to_string(&file).expect("it can be read");
    Stream::secured(process.address("amqps"), "localhost", &kept).expect("the new one");
    assert!(Stream::secured(process.address("amqps"), "localhost", &old).is_err());
    let log = process.ended_by("TERM").stderr;
    let expected =
        format!("the certificate authority in {file} could vouch for any name and is replaced");
    assert_eq!(log.matches(&expected).count(), 1, "{log}");
}

#[test]
fn a_given_certificate_is_served() {
    let temporary = TemporaryDirectory::unused();
    let directory = &temporary.0;
    fs::create_dir_all(directory).expect("a directory can be made");
    let key = rcgen::KeyPair::generate().expect("a key");
    let own = rcgen::CertificateParams::new(["own.test".to_owned()]).expect("a name");
    let own = own.self_signed(&key).expect("a certificate").pem();
    let [certificate_file, key_file] = ["c.pem", "k.pem"].map(|name| text(&directory.join(name)));
    fs::write(&certificate_file, &own).expect("a file can be written");
    fs::write(&key_file, key.serialize_pem()).expect("a file can be written");
    let given = [
        "--tls-certificate",
        &certificate_file,
        "--tls-key",
        &key_file,
    ];
    let process = Process::start(&given);
    assert_eq!(process.ready["ca_certificate"], Value::Null);
    Stream::secured(process.address("amqps"), "own.test", &own).expect("it is shown");
    let answer = process.http().get("/$emulator/v1/ca.pem");
    let (code, message) = answer.error(404);
    assert!(
        code == "not-found" && message.contains("--tls-certificate"),
        "{message}"
    );

    for (file, content, reason) in [
        (
            &key_file,
            "nothing",
            "cannot read an unencrypted private key in PEM from ",
        ),
        (
            &key_file,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "may be RSA of 2,048 to 4,096 bits, EC P-256 or P-384, or Ed25519",
        ),
        (
            &certificate_file,
            "nothing",
            "cannot read a certificate in PEM from ",
        ),
    ] {
        fs::write(file, content).expect("a file can be written");
        let log = failure(1, &[&FREE_PORTS[..], &given].concat());
        assert_contains(&log, reason);
        let is_named = log.contains(file.as_str());
        assert!(is_named || log.contains("cannot use"), "{log}");
    }
}

#[test]
fn an_unusable_tls_directory_is_named() {
    let file = TemporaryFile::new("a file");
    let below = format!("{}/below", file.path());
    let log = failure(1, &[&FREE_PORTS[..], &["--tls-directory", &below]].concat());
    assert_contains(&log, &below);
    assert_contains(&log, "--tls-directory");
    // A data directory that cannot be used is not a problem of TLS, which would keep its files there without a home.
    let data = [&FREE_PORTS[..], &["--data", &below]].concat();
    let ran = run(&data, &[("XDG_CACHE_HOME", ""), ("HOME", "")]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_contains(&ran.stderr, "cannot use the data directory");
    // Without a cache directory of the user TLS still works.
    let variables = [("XDG_CACHE_HOME", below.as_str())];
    let process = Process::start_with(&FREE_PORTS, &variables);
    assert_eq!(process.ready["ca_certificate"], Value::Null);
    let ca = process.http().text(ROUTE);
    let ca = &ca[ca.find("-----BEGIN").expect("a certificate")..];
    Stream::secured(process.address("amqps"), "localhost", ca).expect("TLS from memory");
    assert_contains(
        &process.ended_by("TERM").stderr,
        "valid until the emulator stops",
    );
}

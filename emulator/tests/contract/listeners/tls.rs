//! AMQP and HTTP inside TLS, at every listener. `curl` and `openssl` work as the README says, with only the fetched
//! certificate.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use super::send_and_receive;
use crate::support::*;

#[test]
fn every_listener_accepts_amqp_over_tls() {
    let bus = Bus::with_queues(&["q"]);
    let ca = bus.ca();
    for listener in [bus.amqp, bus.http.0] {
        for name in [
            "localhost",
            "127.0.0.1",
            "sbemulatorns.servicebus.windows.net",
        ] {
            let stream = Stream::secured(listener, name, &ca).expect("the client trusts us");
            send_and_receive(stream);
        }
    }
}

#[test]
fn every_listener_accepts_http_over_tls() {
    let bus = Bus::with_queues(&["q"]);
    for listener in [bus.amqp, bus.http.0] {
        let mut stream = Stream::secured(listener, "localhost", &bus.ca()).expect("TLS begins");
        let request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request).expect("a request can be written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer comes");
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("healthy"));
    }
}

#[test]
fn a_client_that_does_not_trust_the_ca_is_logged() {
    let process = Process::start(&[]);
    let other_ca = rcgen_authority();
    let refused = Stream::secured(process.address("amqps"), "localhost", &other_ca);
    let error = refused.map(|_| ()).expect_err("it trusts somebody else");
    assert_contains(&error.to_string(), "UnknownIssuer");
    let file = process.ready["ca_certificate"]
        .as_str()
        .expect("a file")
        .to_owned();
    let log = process.ended_by("TERM").stderr;
    assert_eq!(
        log.matches("does not trust the emulator").count(),
        1,
        "{log}"
    );
    assert_contains(&log, &file);
}

#[test]
fn the_sni_name_selects_the_namespace() {
    let names = ["alpha", "beta"];
    let namespaces = names.map(|name| {
        format!(
            r#"{{"Name":"{name}","Queues":[{{"Name":"q"}}],"Emulator":{{"Keys":[{{"Name":"{name}","Key":"k"}}]}}}}"#
        )
    });
    let config = format!(
        r#"{{"UserConfig":{{"Namespaces":[{}]}}}}"#,
        namespaces.join(",")
    );
    let bus = Bus::configured(&config);
    for name in names {
        let host = format!("{name}.servicebus.windows.net");
        let stream = Stream::secured(bus.amqp, &host, &bus.ca()).expect("TLS begins");
        let mut peer = Peer::over(stream);
        // The key of the other namespace is not known here.
        let other = names.iter().find(|other| **other != name).expect("two");
        let response = format!("\0{other}\0k");
        assert_eq!(peer.sasl("PLAIN", response.as_bytes()), 1);
        let stream = Stream::secured(bus.amqp, &host, &bus.ca()).expect("TLS begins");
        let mut peer = Peer::over(stream);
        assert_eq!(peer.sasl("PLAIN", format!("\0{name}\0k").as_bytes()), 0);
        peer.introduce(&Open::to("localhost"));
        peer.sender("q");
    }
}

#[test]
fn a_stop_sends_a_close_over_tls() {
    let bus = Bus::with_queues(&["q"]);
    let stream = Stream::secured(bus.amqp, "localhost", &bus.ca()).expect("TLS begins");
    let mut peer = Peer::open_over(stream, &Open::default());
    let stopping = std::thread::spawn(move || bus.stop());
    assert_eq!(peer.closed().condition, "amqp:connection:forced");
    stopping.join().expect("the emulator stops");
}

/// The certificate of an unrelated authority.
fn rcgen_authority() -> String {
    let key = rcgen::KeyPair::generate().expect("a key");
    let mut authority = rcgen::CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.self_signed(&key).expect("a certificate").pem()
}

#[test]
fn the_location_of_a_lock_has_the_scheme_of_its_request() {
    let bus = Bus::with_queues(&["q"]);
    let (ca, rest) = (bus.ca(), bus.rest());
    let token = root_token("http://localhost");
    let request = format!(
        "POST /q/messages/head?timeout=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: {token}\r\nContent-Length: 0\r\n\r\n"
    );
    for listener in [bus.http.0, bus.amqp] {
        let secured = Stream::secured(listener, "localhost", &ca).expect("TLS begins");
        for (mut stream, scheme) in [(Stream::plain(listener), "http"), (secured, "https")] {
            rest.send("q", &[], "hello");
            let written = stream.write_all(request.as_bytes());
            written.expect("a request can be written");
            let mut answer = Vec::new();
            stream.set_read_timeout(TIMEOUT);
            stream.read_to_end(&mut answer).expect("it is answered");
            let answer = Response::parse(&answer);
            let location = answer.header("Location").expect("a lock has a location");
            let begin = format!("{scheme}://localhost/q/messages/");
            assert_starts_with(location, &begin);
        }
    }
}

#[test]
fn the_commands_of_the_readme_work() {
    for (tool, version) in [("curl", "--version"), ("openssl", "version")] {
        let started = Command::new(tool)
            .arg(version)
            .stdout(Stdio::null())
            .status();
        if started.is_err() {
            let note = format!("the README's commands are left out: {tool} cannot be run\n");
            let _ = std::io::stderr().write_all(note.as_bytes());
            return;
        }
    }
    let process = Process::start(&[]);
    let commands = commands()
        .replace("localhost:5300", &process.http().0.to_string())
        .replace(":5671", &format!(":{}", process.address("amqps").port()));
    let directory = format!("readme-{}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(directory);
    fs::create_dir_all(&directory).expect("a directory can be made");
    let output = Command::new("sh")
        .args(["-ec", &commands])
        .current_dir(&directory)
        .output()
        .expect("there is a shell");
    let _ = fs::remove_dir_all(&directory);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success()
            && stdout.contains("healthy")
            && stdout.contains("Verify return code: 0 (ok)"),
        "{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The block of shell commands that fetches the certificate.
fn commands() -> String {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(readme).expect("there is a README");
    let blocks = readme.split("```sh\n").skip(1);
    let mut blocks = blocks.filter_map(|block| Some(block.split_once("```")?.0));
    let commands = blocks.find(|commands| commands.contains("ca.pem"));
    commands
        .expect("the README says how to trust the emulator")
        .to_owned()
}

//! The ready line: one line of JSON when, and only when, everything serves.
//!
//! `--seed`: the same client gets the same tokens and ids in every run.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::support::*;

#[cfg(target_os = "linux")]
#[test]
fn a_ready_line_that_cannot_be_written_is_logged() {
    let full = std::fs::File::options().write(true).open("/dev/full");
    // It ends by itself: its standard input is closed.
    let ran = run_into(full.expect("it can be written"), &["--for-tests"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_contains(
        &ran.stderr,
        "WARN servicebus_emulator: the ready line cannot be written",
    );
    assert_contains(&ran.stderr, "No space left on device");
}

#[test]
fn the_ready_line_is_the_only_output_and_has_every_field() {
    let process = Process::start(&[]);
    let ready = process.ready.clone();
    let fields = ready.as_object().expect("an object").keys().cloned();
    let known = "amqp amqps ca_certificate control_api event http https inspector message namespaces \
                 pid trust_store version";
    assert_eq!(Vec::from_iter(fields).join(" "), known);
    assert_eq!(ready["event"], "ready");
    // Observed 71: tools for the official emulator wait for these words in the log.
    assert_eq!(ready["message"], "Emulator Service is Successfully Up!");
    assert_eq!(ready["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(ready["pid"], process.pid());
    assert_eq!(ready["https"], Value::Null);
    let file = ready["ca_certificate"].as_str().expect("there is a file");
    let certificate = std::fs::read_to_string(file).expect("it can be read");
    assert_starts_with(&certificate, "-----BEGIN CERTIFICATE-----");
    let (amqp, http) = (process.amqp(), process.http().0);
    assert!(amqp.ip().is_loopback() && amqp.port() != 0 && amqp.port() != http.port());
    assert_eq!(ready["inspector"], format!("http://{http}/"));
    let tail = "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;";
    let secure = tail.replace(";UseDevelopmentEmulator=true;", "");
    let amqps = ready["amqps"]
        .as_str()
        .expect("an address")
        .parse::<SocketAddr>();
    let amqps = amqps.expect("an address").port();
    let namespaces = json!([{
        "name": "sbemulatorns",
        "connection_string": format!("Endpoint=sb://127.0.0.1:{};{tail}", amqp.port()),
        "tls_connection_string": format!("Endpoint=sb://127.0.0.1:{amqps};{secure}"),
        "admin_connection_string": format!("Endpoint=sb://127.0.0.1:{};{tail}", http.port()),
        "token_check": "signature",
        "jwt": "accept",
    }]);
    assert_eq!(ready["namespaces"], namespaces);
    let mut peer = process.client();
    peer.send_to("queue.1", &Message::new("m"));
    peer.close();
    let ended = process.ended_by("TERM");
    assert_eq!(
        ended.stdout,
        Vec::<String>::new(),
        "something came after the ready line"
    );
}

#[test]
fn the_ready_line_is_printed_once_all_listeners_accept() {
    // Connecting at once, to every listener, however often.
    for _ in 0..5 {
        let process = Process::start(&[]);
        let mut peer = Peer::connect(process.amqp());
        assert_eq!(peer.sasl("ANONYMOUS", b""), 0);
        assert_eq!(process.http().get("/health").status, 200);
    }
}

#[test]
fn localhost_listens_on_ipv4_and_ipv6_with_one_port() {
    let process = Process::start_with(&["--amqp-port", "0", "--http-port", "0"], &[]);
    for (amqp, http) in [(process.amqp(), process.http().0)] {
        assert!(amqp.ip().is_ipv4() && http.ip().is_ipv4());
        for listener in [amqp, http] {
            let mut other = listener;
            other.set_ip(std::net::Ipv6Addr::LOCALHOST.into());
            if std::net::TcpListener::bind("[::1]:0").is_ok() {
                assert_eq!(Http(other).get("/health").status, 200);
            }
        }
    }
    let string = process.ready["namespaces"][0]["connection_string"]
        .as_str()
        .unwrap_or_default();
    let expected = format!("Endpoint=sb://localhost:{};", process.amqp().port());
    assert_starts_with(string, &expected);
}

#[test]
fn a_connection_string_has_the_configured_host() {
    for (host, endpoint) in [
        ("127.0.0.2", "127.0.0.2"),
        ("0.0.0.0", "localhost"),
        ("::1", "[::1]"),
    ] {
        if std::net::TcpListener::bind((host, 0)).is_err() {
            continue;
        }
        let process = Process::start_with(
            &["--host", host, "--amqp-port", "0", "--http-port", "0"],
            &[],
        );
        let namespace = &process.ready["namespaces"][0];
        // Unsigned tokens give every right, but not to clients from elsewhere.
        let jwt = if host == "0.0.0.0" {
            "refuse"
        } else {
            "accept"
        };
        assert_eq!(namespace["jwt"], jwt, "{host}");
        for (name, port) in [
            ("connection_string", process.amqp().port()),
            ("admin_connection_string", process.http().0.port()),
        ] {
            let string = namespace[name].as_str().unwrap_or_default();
            assert_starts_with(string, &format!("Endpoint=sb://{endpoint}:{port};"));
        }
    }
}

#[test]
fn a_connection_string_omits_the_default_port() {
    let Some(host) = own_loopback(57) else {
        return;
    };
    let process = Process::start_with(&["--host", &host], &[]);
    assert_eq!(
        (process.amqp().port(), process.http().0.port()),
        (5672, 5300)
    );
    let namespace = &process.ready["namespaces"][0];
    let start = |name: &str| {
        namespace[name]
            .as_str()
            .unwrap_or_default()
            .split(';')
            .next()
            .map(str::to_owned)
    };
    assert_eq!(
        start("connection_string").as_deref(),
        Some(format!("Endpoint=sb://{host}").as_str())
    );
    assert_eq!(
        start("admin_connection_string").as_deref(),
        Some(format!("Endpoint=sb://{host}:5300").as_str())
    );
}

/// Everything that the emulator generates in a fixed conversation.
fn made_up(arguments: &[&str]) -> Vec<String> {
    let process = Process::start(arguments);
    let mut all = Vec::new();
    for _ in 0..2 {
        let mut peer = process.client();
        let sender = peer.sender("queue.1");
        let receiver = peer.receiver("queue.1");
        for _ in 0..3 {
            peer.send(&sender, &Message::default().body(*b"no id"));
            let delivery = peer.receive_one(&receiver);
            all.push(delivery.id());
            all.push(delivery.token().to_string());
            peer.complete(&delivery);
        }
        all.push(
            peer.refused(&Attach::sender("nowhere"))
                .tracking_id()
                .to_owned(),
        );
        peer.close();
    }
    all
}

#[test]
fn runs_with_one_seed_are_equal() {
    let first = made_up(&["--seed", "42"]);
    assert_eq!(first, made_up(&["--seed", "42"]));
    assert_ne!(first, made_up(&["--seed", "43"]));
    let mut distinct = first.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), first.len(), "something came twice");
}

#[test]
fn runs_without_a_seed_differ() {
    assert_ne!(made_up(&[]), made_up(&[]));
}

//! Valid and invalid configurations, and ports in use.

use std::net::TcpListener;

use crate::support::*;

const BAD: &str = r#"{"UserConfig":{"Namespaces":[{"Name":"ns","Queues":[
    {"Name":"q","Properties":{"LockDuration":"PT10M","MaxDeliveryCount":0}},
    {"Name":"q","Propertys":{}}]}]}}"#;

#[test]
fn an_invalid_configuration_exits_with_code_1_and_every_problem() {
    let file = TemporaryFile::new(BAD);
    let arguments = [&FREE_PORTS[..], &["--config", file.path()]].concat();
    for arguments in [&arguments[..], &["check", file.path()]] {
        let text = failure(1, arguments);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        for (path, value, allowed) in [
            (
                "UserConfig.Namespaces[0].Queues[0].Properties.LockDuration",
                "PT10M",
                "PT5M",
            ),
            (
                "UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount",
                "0",
                "1 to 2147483647",
            ),
            ("UserConfig.Namespaces[0].Queues[1].Name", "\"q\"", ""),
            (
                "UserConfig.Namespaces[0].Queues[1]",
                "Propertys",
                "Properties",
            ),
        ] {
            let is_it =
                |line: &&str| line.contains(path) && line.contains(value) && line.contains(allowed);
            assert!(
                lines.iter().any(is_it),
                "{path}, {value}, {allowed}: {text}"
            );
        }
        assert!(
            lines.iter().all(|line| line.starts_with(file.path())),
            "{text}"
        );
    }
}

#[test]
fn an_invalid_configuration_opens_no_listener() {
    // The ports are taken: if the emulator tried them first, it would end with three.
    let amqp = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = amqp
        .local_addr()
        .expect("it has an address")
        .port()
        .to_string();
    let file = TemporaryFile::new(BAD);
    let ports = [
        "--host",
        "127.0.0.1",
        "--amqp-port",
        &port,
        "--http-port",
        &port,
    ];
    failure(1, &[&ports[..], &["--config", file.path()]].concat());
}

#[test]
fn a_missing_or_malformed_configuration_file_is_refused() {
    let broken = TemporaryFile::new("{ // no end");
    for path in ["/nowhere/at/all.json", broken.path()] {
        for arguments in [["--config", path], ["check", path]] {
            assert_starts_with(&failure(1, &arguments), path);
        }
    }
}

#[test]
fn check_prints_the_effective_configuration() {
    let file = TemporaryFile::new(&queues(
        r#""LocksOnDetach":"release""#,
        &[("orders", r#""MaxDeliveryCount":3"#)],
    ));
    let text = printed(&["check", file.path()]);
    let has = |name: &str, value: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        line.is_some_and(|line| line.ends_with(value))
    };
    for (name, value) in [
        ("namespace sbemulatorns", ""),
        ("queue orders", ""),
        ("LocksOnDetach", "release"),
        ("Expiry", "eager"),
        ("TokenCheck", "signature"),
        ("MaxDeliveryCount", "3"),
        ("LockDuration", "PT1M"),
        ("key RootManageSharedAccessKey", "Send, Listen, Manage"),
    ] {
        assert!(has(name, value), "{name} {value}: {text}");
    }
    assert!(!text.contains("SAS_KEY_VALUE"), "a secret is printed");
}

#[test]
fn check_takes_the_tier_of_the_run() {
    let file = |properties: &str| TemporaryFile::new(&queues("", &[("q", properties)]));
    let large = file(r#""MaxMessageSizeInKilobytes":2048"#);
    printed(&["check", large.path(), "--tier", "premium"]);
    let session = file(r#""RequiresSession":true"#);
    printed(&["check", session.path()]);
    for (file, tier) in [(&large, "standard"), (&session, "basic")] {
        failure(1, &["check", file.path(), "--tier", tier]);
        let arguments = ["--config", file.path(), "--tier", tier];
        failure(1, &[&FREE_PORTS[..], &arguments].concat());
    }
}

#[test]
fn an_address_of_another_machine_exits_with_code_3_and_names_host() {
    // An address for documentation (RFC 5737).
    let text = failure(3, &["--host", "192.0.2.1", "--amqp-port", "0"]);
    let remedy = "; select an address of this machine with --host";
    assert_ends_with(text.trim_end(), remedy);
}

#[test]
fn a_port_in_use_exits_with_code_3_and_the_address() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it has an address");
    let port = address.port().to_string();
    for taken in ["--amqp-port", "--http-port", "--amqps-port", "--https-port"] {
        let others = FREE_PORTS.iter().copied();
        let others = others.filter(|option| !option.starts_with(taken));
        let arguments = Vec::from_iter(others.chain([taken, &*port]));
        let text = failure(3, &arguments);
        assert_contains(&text, &address.to_string());
        let remedy = format!("; select another port with {taken}");
        assert_ends_with(text.trim_end(), &remedy);
    }
    let text = failure(3, &["--host", "no such host", "--amqp-port", "0"]);
    assert_contains(&text, "no such host");
}

#[test]
fn a_port_can_be_reused_right_after_a_stop() {
    let host = own_loopback(58).unwrap_or_else(|| "127.0.0.1".into());
    let start = |port: &str| {
        let arguments = ["--host", &host, "--amqp-port", port, "--http-port", "0"];
        Process::start_with(&arguments, &[])
    };
    let process = start("0");
    let port = process.amqp().port().to_string();
    // A client that is still there when the emulator stops: its side of the connection lingers.
    let peer = process.client();
    process.signal("TERM");
    drop(peer);
    assert_eq!(process.ended().code, Some(0));
    let again = start(&port);
    assert_eq!(again.amqp().port().to_string(), port);
}

#[test]
fn unsigned_tokens_beside_a_limited_key_are_warned_of() {
    let text = |jwt: &str| {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Queues":[],"Emulator":{{{jwt}
                "Keys":[{{"Name":"all","Key":"a key"}},{{"Name":"reader","Key":"a key","Claims":["Listen"]}}]}}}}]}}}}"#
        )
    };
    for (jwt, is_warned) in [
        (r#""Jwt":"accept","#, true),
        (r#""Jwt":"refuse","#, false),
        ("", false),
    ] {
        let file = TemporaryFile::new(&text(jwt));
        let arguments = [&FREE_PORTS[..], &["--config", file.path()]].concat();
        let process = Process::start_with(&arguments, &[("SERVICEBUS_EMULATOR_LOG", "info")]);
        let warnings = process.ready["namespaces"][0]["warnings"].to_string();
        let ended = process.ended_by("TERM");
        for output in [warnings, ended.stderr] {
            let names_both = output.contains("reader") && output.contains("Listen");
            assert_eq!(names_both, is_warned, "{output}");
        }
    }
}

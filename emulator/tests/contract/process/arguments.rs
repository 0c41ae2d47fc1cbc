//! Arguments, variables, help, and errors in them.

use serde_json::Value;
use servicebus_emulator::auth::{Key, sas};

use crate::support::*;

#[test]
fn invalid_arguments_exit_with_code_2_and_a_hint() {
    for arguments in [
        &["--nonsense"][..],
        &["--amqp-port", "70000"],
        &["--amqp-port", "-1"],
        &["--tier", "gold"],
        &["--seed", "x"],
        &["--exit-when-idle", "0"],
        &["--amqps-port", "on"],
        &["--connection-memory", "0"],
        &["--process-memory", "65535"],
        &["--tls-key", "key.pem"],
        &["check"],
        &["serve"],
        &["--host"],
    ] {
        let text = failure(2, arguments);
        assert_contains(&text, "error: ");
        assert_contains(&text, "--help");
    }
    assert_contains(&failure(2, &["--amqp-prot", "1"]), "'--amqp-port'");
}

#[test]
fn help_shows_the_connection_string_and_first_steps() {
    for arguments in [&["--help"][..], &["run", "--help"]] {
        let text = printed(arguments);
        for line in [
            "Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
            "--config <FILE>",
            "--host <ADDRESS>",
            "--amqp-port <PORT>",
            "--amqps-port <PORT>",
            "--http-port <PORT>",
            "--https-port <PORT>",
            "--tls-directory <DIRECTORY>",
            "--tls-name <NAME>",
            "--tls-certificate <FILE>",
            "--tls-key <FILE>",
            "--tier <TIER>",
            "--seed <N>",
            "--allow-host <NAME>",
            "--allow-origin <ORIGIN>",
            "--control-token <TOKEN>",
            "--trust-gateway",
            "--exit-with-stdin",
            "--exit-when-idle <SECONDS>",
            "[env: SERVICEBUS_EMULATOR_CONFIG=]",
            "[env: SERVICEBUS_EMULATOR_HOST=]",
            "[env: SERVICEBUS_EMULATOR_AMQP_PORT=]",
            "[env: SERVICEBUS_EMULATOR_AMQPS_PORT=]",
            "[env: EMULATOR_HTTP_PORT=]",
            "[env: SERVICEBUS_EMULATOR_HTTPS_PORT=]",
            "[env: SERVICEBUS_EMULATOR_TLS_DIRECTORY=]",
            "[env: SERVICEBUS_EMULATOR_TLS_NAME=]",
            "[env: SERVICEBUS_EMULATOR_TLS_CERTIFICATE=]",
            "[env: SERVICEBUS_EMULATOR_TLS_KEY=]",
            "[env: SERVICEBUS_EMULATOR_ALLOW_HOST=]",
            "[env: SERVICEBUS_EMULATOR_ALLOW_ORIGIN=]",
            "[env: SERVICEBUS_EMULATOR_CONTROL_TOKEN]",
            "SERVICEBUS_EMULATOR_LOG",
            "servicebus-emulator check config.json",
            "servicebus-emulator client-settings --https-port 443",
            "Exit codes: 0 stopped on request, 1 invalid configuration or data directory, 2 invalid arguments, 3 cannot listen.",
        ] {
            assert_contains(&text, line);
        }
    }
    assert_eq!(
        printed(&["--version"]).trim(),
        concat!("servicebus-emulator ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn for_tests_ignores_environment_variables() {
    let variables = [
        ("SERVICEBUS_EMULATOR_CONFIG", "none.json"),
        ("SERVICEBUS_EMULATOR_DATA", "/dev/null/data"),
        ("SERVICEBUS_EMULATOR_HOST", "no such host"),
        ("SERVICEBUS_EMULATOR_HTTPS_PORT", "1"),
        ("EMULATOR_HTTP_PORT", "nonsense"),
    ];
    // It ends by itself: its standard input is closed.
    let output = run(&["--for-tests"], &variables);
    assert_eq!(output.code, Some(0), "{output:?}");
    let ready: Value = serde_json::from_str(&output.stdout).expect("a ready line");
    assert_eq!(ready["event"], "ready");
    let amqp = ready["amqp"].as_str().expect("an address");
    assert_starts_with(amqp, "127.0.0.1:");
}

#[test]
fn options_take_precedence_over_environment_variables() {
    let file = TemporaryFile::new(&queues("", &[("from-a-variable", "")]));
    let variables = [
        ("SERVICEBUS_EMULATOR_HOST", "127.0.0.1"),
        ("SERVICEBUS_EMULATOR_AMQP_PORT", "0"),
        ("EMULATOR_HTTP_PORT", "0"),
        ("SERVICEBUS_EMULATOR_CONFIG", file.path()),
        ("SERVICEBUS_EMULATOR_LOG", "off"),
    ];
    let process = Process::start_with(&["run"], &variables);
    assert!(process.amqp().ip().is_ipv4() && process.amqp().port() != 5672);
    assert_eq!(process.http().held("from-a-variable"), (0, 0));
    let mut weaker = variables;
    weaker[1].1 = "nonsense";
    weaker[0].1 = "no such host";
    let process = Process::start_with(&["--host", "127.0.0.1", "--amqp-port", "0"], &weaker);
    assert_eq!(process.http().get("/health").status, 200);
    let output = run(&["--host", "127.0.0.1"], &weaker);
    assert_eq!(
        output.code,
        Some(2),
        "a variable is judged as its option is"
    );
    let named = "invalid value 'nonsense' for 'SERVICEBUS_EMULATOR_AMQP_PORT': expected a port";
    assert_contains(&output.stderr, named);
    let output = run(&["--amqp-port=no"], &weaker);
    assert_contains(
        &output.stderr,
        "invalid value 'no' for '--amqp-port <PORT>'",
    );
    let output = run(&["health"], &[("EMULATOR_HTTP_PORT", "http")]);
    assert_contains(&output.stderr, "for 'EMULATOR_HTTP_PORT': expected a port");
    // As Compose files write them with `${NAME:-}`.
    let mut empty = variables;
    empty[3].1 = "";
    let others = [
        "SERVICEBUS_EMULATOR_AMQPS_PORT",
        "SERVICEBUS_EMULATOR_HTTPS_PORT",
        "SERVICEBUS_EMULATOR_TRUST_GATEWAY",
        "SERVICEBUS_EMULATOR_CONTROL_TOKEN",
        "SERVICEBUS_EMULATOR_ALLOW_HOST",
        "SERVICEBUS_EMULATOR_DATA",
        "SERVICEBUS_EMULATOR_SYNC",
    ];
    let empty = Vec::from_iter(empty.into_iter().chain(others.map(|name| (name, ""))));
    let process = Process::start_with(&["run"], &empty);
    assert_eq!(process.http().held("queue.1"), (0, 0));
}

#[test]
fn variables_of_switches_may_be_numbers() {
    let variables = [
        ("SERVICEBUS_EMULATOR_TRUST_GATEWAY", "1"),
        ("SERVICEBUS_EMULATOR_NO_OUTCOME_DELAY", "0"),
    ];
    let process = Process::start_with(&FREE_PORTS, &variables);
    assert_eq!(process.http().get("/health").status, 200);
}

#[test]
fn an_invalid_log_filter_is_refused() {
    let output = run(&[], &[("SERVICEBUS_EMULATOR_LOG", "servicebus=loud=quiet")]);
    assert_eq!(output.code, Some(2));
    let text = output.stderr;
    let begin = r#"SERVICEBUS_EMULATOR_LOG is "servicebus=loud=quiet": "#;
    assert!(
        text.starts_with(begin) && text.contains("allowed: off, error, warn"),
        "{text}"
    );
    let output = run(&[], &[("SERVICEBUS_EMULATOR_LOG", "warning")]);
    assert_eq!(output.code, Some(2));
    let expected = r#""warning" is not a level; allowed: off, error, warn"#;
    assert_contains(&output.stderr, expected);
    // As if it were not set.
    let process = Process::start_with(&FREE_PORTS, &[("SERVICEBUS_EMULATOR_LOG", "")]);
    assert_eq!(process.http().get("/health").status, 200);
}

#[test]
fn the_control_token_is_never_printed() {
    let token = ("SERVICEBUS_EMULATOR_CONTROL_TOKEN", "S3cret-token");
    let help = run(&["--help"], &[token]);
    let wrong = run(
        &[],
        &[("SERVICEBUS_EMULATOR_CONTROL_TOKEN", "S3cret token")],
    );
    assert_eq!(wrong.code, Some(2));
    let process = Process::start_with(
        &["--host", "0.0.0.0", "--amqp-port", "0", "--http-port", "0"],
        &[token, ("SERVICEBUS_EMULATOR_LOG", "trace")],
    );
    assert_eq!(process.ready["control_api"], "token");
    let request = "GET /$emulator/v1/namespaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                   Authorization: Bearer S3cret-token\r\n\r\n";
    assert_eq!(process.http().raw(request.as_bytes()).status, 200);
    let ready = process.ready.to_string();
    let ended = process.ended_by("TERM");
    assert_contains(
        &ended.stderr,
        "the control API accepts clients outside loopback with the control token",
    );
    for text in [help.stdout, wrong.stderr, ready, ended.stderr] {
        assert!(!text.contains("S3cret"), "{text}");
    }
}

#[test]
fn the_start_logs_that_the_control_api_is_loopback_only() {
    for (host, is_said) in [("0.0.0.0", true), ("127.0.0.1", false)] {
        let arguments = ["--host", host, "--amqp-port", "0", "--http-port", "0"];
        let process = Process::start_with(&arguments, &[]);
        assert_eq!(process.ready["control_api"], "loopback");
        let ended = process.ended_by("TERM");
        assert_eq!(
            ended.stderr.contains("--control-token"),
            is_said,
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn the_log_goes_to_standard_error_with_the_given_filter() {
    let for_tests = &["--for-tests"][..];
    for (arguments, filter, logged) in [
        (&FREE_PORTS[..], "debug", true),
        (&FREE_PORTS[..], "off", false),
        (for_tests, "info", true),
        (for_tests, "", false),
    ] {
        let variables = [("SERVICEBUS_EMULATOR_LOG", filter)];
        let process = Process::start_with(arguments, &variables);
        let mut peer = process.client();
        peer.refused(&Attach::sender("nowhere"));
        peer.close();
        let ended = process.ended_by("INT");
        assert_eq!(
            ended.stderr.contains("amqp:not-found"),
            logged,
            "{}",
            ended.stderr
        );
        assert!(
            !ended.stderr.contains("SAS_KEY_VALUE"),
            "a secret is in the log"
        );
    }
}

#[test]
fn a_refused_token_is_logged_once_for_each_connection() {
    let process = Process::start(&[]);
    let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
    let named = Open {
        container_id: "shop".into(),
        ..Open::default()
    };
    let mut peer = process.client_as(&named);
    for audience in ["sb://localhost/nowhere", "sb://localhost/gone"] {
        assert_eq!(peer.put_token(audience, &token).cbs_status(), 404);
    }
    peer.close();
    let logged = process.ended_by("INT").stderr;
    let lines = Vec::from_iter(logged.lines().filter(|line| line.contains("WARN")));
    assert_eq!(lines.len(), 1, "{logged}");
    assert_contains(lines[0], "a token was refused");
    assert_contains(lines[0], "client=\"shop\"");
    assert_contains(lines[0], "'sb://localhost/nowhere' could not be found.");
}

#[test]
fn the_tier_argument_applies_to_the_default_namespace() {
    for (tier, limit) in [("basic", 262_144), ("premium", 1_048_576)] {
        let process = Process::start(&["--tier", tier]);
        let mut peer = process.client();
        assert_eq!(peer.sender("queue.1").answer.field(10), &ulong(limit));
    }
}

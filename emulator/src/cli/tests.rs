//! The command line as scripts use it, and what `check` prints.

use super::*;
use crate::config::Config;

/// The arguments of a command line without quotes.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn parse(arguments: &[&str]) -> Result<Command, clap::Error> {
    let program = std::iter::once("servicebus-emulator");
    Command::from_arguments(program.chain(arguments.iter().copied()))
}

fn defaults() -> RunOptions {
    RunOptions {
        config: None,
        host: "localhost".into(),
        amqp_port: 5672,
        amqps_port: Some(5671),
        http_port: 5300,
        https_port: None,
        tls: TlsOptions::default(),
        tier: None,
        seed: None,
        record_messages: false,
        access: AccessOptions::default(),
        exit_with_stdin: false,
        exit_when_idle: None,
        outcome_delay: true,
        connection_memory: 64 << 20,
        process_memory: 1 << 30,
        data: None,
    }
}

fn refused(arguments: &[&str]) -> String {
    let error = parse(arguments).expect_err("these arguments are refused");
    assert_eq!(error.exit_code(), 2, "{error}");
    error.to_string()
}

#[test]
fn the_clap_definition_is_consistent() {
    <Cli as clap::CommandFactory>::command().debug_assert();
}

#[test]
fn the_run_command_may_be_omitted() {
    assert_eq!(parse(&[]).unwrap(), Command::Run(defaults()));
    assert_eq!(parse(&["run"]).unwrap(), Command::Run(defaults()));
    let all = words(
        "--config c.json --host 0.0.0.0 --amqp-port 0 --amqps-port off --http-port 8080 --https-port off \
         --tier premium --seed 7 --record-messages --exit-with-stdin --exit-when-idle 20 \
         --connection-memory 1000000 --process-memory 2000000 --data /data --sync process --prune",
    );
    let expected = RunOptions {
        config: Some("c.json".into()),
        host: "0.0.0.0".into(),
        amqp_port: 0,
        amqps_port: None,
        http_port: 8080,
        tier: Some(Tier::Premium),
        seed: Some(7),
        record_messages: true,
        exit_with_stdin: true,
        exit_when_idle: Some(Duration::from_secs(20)),
        outcome_delay: true,
        connection_memory: 1_000_000,
        process_memory: 2_000_000,
        data: Some(DataOptions {
            directory: "/data".into(),
            sync: Sync::Process,
            prune: true,
        }),
        ..defaults()
    };
    assert_eq!(parse(&all).unwrap(), Command::Run(expected.clone()));
    assert_eq!(
        parse(&[&["run"], &all[..]].concat()).unwrap(),
        Command::Run(expected)
    );
}

#[test]
fn for_tests_has_its_own_defaults_and_ignores_variables() {
    let expected = RunOptions {
        host: "127.0.0.1".into(),
        amqp_port: 0,
        amqps_port: Some(0),
        http_port: 0,
        record_messages: true,
        exit_with_stdin: true,
        ..defaults()
    };
    assert_eq!(
        parse(&["--for-tests"]).unwrap(),
        Command::Run(expected.clone())
    );
    let options = words("run --for-tests --amqp-port 7 --tier premium");
    let expected = RunOptions {
        amqp_port: 7,
        tier: Some(Tier::Premium),
        ..expected
    };
    assert_eq!(parse(&options).unwrap(), Command::Run(expected));
    let command = for_tests(Cli::command());
    assert!(command.get_arguments().all(|it| it.get_env().is_none()));
}

#[test]
fn check_takes_exactly_one_file() {
    assert_eq!(
        parse(&["check", "c.json"]).unwrap(),
        Command::Check {
            file: "c.json".into(),
            tier: None
        }
    );
    let premium = Command::Check {
        file: "c.json".into(),
        tier: Some(Tier::Premium),
    };
    assert_eq!(
        parse(&["check", "c.json", "--tier", "premium"]).unwrap(),
        premium
    );
    refused(&["check"]);
    refused(&["check", "c.json", "--seed", "1"]);
    refused(&["--seed", "1", "check", "c.json"]);
}

#[test]
fn client_settings_take_the_options_of_run() {
    let expected = RunOptions {
        https_port: Some(443),
        ..defaults()
    };
    assert_eq!(
        parse(&["client-settings", "--https-port", "443"]).unwrap(),
        Command::ClientSettings(expected)
    );
}

#[test]
fn the_control_api_requires_its_token() {
    let access = run(&[
        "--allow-host",
        "CI.example.com, bus.example.com",
        "--allow-host",
        "third.example.com",
        "--allow-origin",
        "http://localhost:3000, https://a.example.com",
        "--control-token",
        "S3cret",
        "--trust-gateway",
    ])
    .access;
    let hosts: Vec<String> = access
        .allowed_hosts
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        hosts,
        ["ci.example.com", "bus.example.com", "third.example.com"]
    );
    assert_eq!(access.allowed_origins.len(), 2);
    assert_eq!(access.control_token, Some("S3cret".parse().unwrap()));
    assert!(access.trust_gateway);
    for (option, wrong, allowed) in [
        ("--allow-host", "http://a", "a name without scheme and port"),
        ("--allow-host", "", "a name without scheme and port"),
        (
            "--allow-origin",
            "localhost",
            "scheme, host and port without a path",
        ),
    ] {
        let text = refused(&[option, wrong]);
        assert!(text.contains(option) && text.contains(allowed), "{text}");
    }
}

#[test]
fn debug_output_and_errors_hide_a_given_control_token() {
    let options = run(&["--control-token", "S3cret"]);
    assert!(!format!("{options:?}").contains("S3cret"), "{options:?}");
    let text = refused(&["--control-token", "S3 cret"]);
    assert!(
        text.contains("--control-token") && text.contains("RFC 6750") && !text.contains("S3"),
        "{text}"
    );
}

fn run(arguments: &[&str]) -> RunOptions {
    match parse(arguments) {
        Ok(Command::Run(options)) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tls_listeners_are_configured_by_port() {
    let ports = |arguments: &[&str]| {
        let options = run(arguments);
        (options.amqps_port, options.https_port)
    };
    assert_eq!(ports(&[]), (Some(5671), None));
    // A user who wants any free port for AMQP has no use for a fixed one beside it.
    assert_eq!(ports(&["--amqp-port", "0"]), (Some(0), None));
    assert_eq!(ports(&["--amqps-port", "off"]), (None, None));
    let both = ["--amqps-port", "5673", "--https-port", "443"];
    assert_eq!(ports(&both), (Some(5673), Some(443)));
    for option in ["--amqps-port", "--https-port"] {
        assert!(refused(&[option, "on"]).contains("expected a port (0 to 65535) or `off`"));
        assert!(refused(&[option, "65536"]).contains("expected a port"));
    }
}

#[test]
fn a_certificate_requires_its_key() {
    let given = ["--tls-certificate", "c.pem", "--tls-key", "k.pem"];
    let expected = TlsOptions {
        certificate: Some(UserCertificate {
            chain: "c.pem".into(),
            key: "k.pem".into(),
        }),
        ..TlsOptions::default()
    };
    assert_eq!(run(&given).tls, expected);
    assert!(refused(&given[..2]).contains("--tls-key"));
    assert!(refused(&given[2..]).contains("--tls-certificate"));
    let made = [
        "--tls-directory",
        "/d",
        "--tls-name",
        "a, b.test ",
        "--tls-name",
        "::1,[::2]",
    ];
    let expected = TlsOptions {
        directory: Some("/d".into()),
        certificate: None,
        names: ["a", "b.test", "::1", "::2"].map(str::to_owned).to_vec(),
    };
    assert_eq!(run(&made).tls, expected);
    for wrong in ["", "a,,b", "a b", "http://a", "a:5671", "[a]"] {
        let text = refused(&["--tls-name", wrong]);
        assert!(
            text.contains("expected a host name or an IP address"),
            "{text}"
        );
    }
    let text = refused(&["--tls-name", "*.example.com"]);
    let reason = "wildcards are not supported; give each name";
    assert!(text.contains(reason), "{text}");
}

#[test]
fn paths_that_other_programs_get_are_absolute() {
    let options = run(&["--data", "d", "--tls-directory", "t"]);
    let here = std::env::current_dir().unwrap();
    assert_eq!(options.data.unwrap().directory, here.join("d"));
    assert_eq!(options.tls.directory, Some(here.join("t")));
}

#[test]
fn an_ipv6_address_may_be_in_brackets() {
    for (written, host) in [("[::1]", "::1"), ("::1", "::1"), ("[a]", "[a]")] {
        assert_eq!(run(&["--host", written]).host, host);
    }
}

#[test]
fn bad_arguments_are_refused() {
    refused(&["serve"]);
    for option in ["--amqp-port", "--http-port"] {
        for wrong in ["65536", "off"] {
            let text = refused(&[option, wrong]);
            assert!(text.contains("expected a port (0 to 65535)\n"), "{text}");
        }
    }
    refused(&["--seed", "-1"]);
    let tier = refused(&["--tier", "gold"]);
    assert!(tier.contains("basic, standard, premium"), "{tier}");
}

#[test]
fn check_prints_effective_values() {
    let expected = "\
namespace sbemulatorns
  Tier                                   standard
  Expiry                                 eager
  LocksOnDetach                          keep
  FailedForwards                         transfer-dead-letter
  ForwardToDisabled                      refuse
  BatchLimit                             bytes
  IdleTimeouts                           none
  TokenCheck                             signature
  Jwt                                    accept on loopback if every key has all rights, else refuse
  key RootManageSharedAccessKey: Send, Listen, Manage
  queue queue.1
    AutoDeleteOnIdle                     never
    DeadLetteringOnMessageExpiration     false
    DefaultMessageTimeToLive             for ever
    DuplicateDetectionHistoryTimeWindow  PT10M
    EnablePartitioning                   false
    ForwardDeadLetteredMessagesTo        none
    ForwardTo                            none
    LockDuration                         PT1M
    MaxDeliveryCount                     10
    MaxMessageSizeInKilobytes            256
    MaxSizeInMegabytes                   1024
    RequiresDuplicateDetection           false
    RequiresSession                      false
    Status                               Active
";
    assert_eq!(describe(&Config::default()), expected);
}

#[test]
fn check_prints_the_properties_that_a_file_changes() {
    let text = r#"{"UserConfig":{"Namespaces":[{"Name":"a",
        "Queues":[{"Name":"q","Properties":{"AutoDeleteOnIdle":"P1D","MaxMessageSizeInKilobytes":2048}},
            {"Name":"r","Properties":{"ForwardTo":"Q","DefaultMessageTimeToLive":"PT90S"}}],
        "Emulator":{"Tier":"premium","FailedForwards":"dead-letter"}}]}}"#;
    let printed = describe(&Config::parse(text).unwrap());
    let lines: Vec<String> = printed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    for expected in [
        "FailedForwards dead-letter",
        "AutoDeleteOnIdle P1D",
        "AutoDeleteOnIdle never",
        "MaxMessageSizeInKilobytes 2048",
        "MaxMessageSizeInKilobytes 1024",
        "ForwardTo Q",
        "DefaultMessageTimeToLive PT1M30S",
    ] {
        assert!(
            lines.iter().any(|line| line == expected),
            "{expected}:\n{printed}"
        );
    }
}

#[test]
fn check_prints_topics_with_their_subscriptions_and_rules() {
    let text = r#"{"UserConfig":{"Namespaces":[{"Name":"a","Queues":[{"Name":"q"}],"Topics":[{"Name":"prices",
        "Subscriptions":[{"Name":"all","Properties":{"ForwardTo":"q"}},{"Name":"eu","Rules":[
            {"Name":"by-sql","Properties":{"FilterType":"Sql",
                "SqlFilter":{"SqlExpression":"a = 1\n AND b < @b","Parameters":{"@b":2.5}},
                "Action":{"SqlExpression":"SET c = 'x'"}}},
            {"Name":"by-value","Properties":{"FilterType":"Correlation",
                "CorrelationFilter":{"Label":"new","Properties":{"count":2,"kind":"2"}}}},
            {"Name":"never","Properties":{"FilterType":"False"}}]}]}]}]}}"#;
    let printed = describe(&Config::parse(text).unwrap());
    let expected = r#"
  topic prices
    AutoDeleteOnIdle                     never
    DefaultMessageTimeToLive             for ever
    DuplicateDetectionHistoryTimeWindow  PT10M
    EnablePartitioning                   false
    MaxMessageSizeInKilobytes            256
    MaxSizeInMegabytes                   1024
    RequiresDuplicateDetection           false
    Status                               Active
    subscription all
      AutoDeleteOnIdle                           never
      DeadLetteringOnFilterEvaluationExceptions  true
      DeadLetteringOnMessageExpiration           false
      DefaultMessageTimeToLive                   for ever
      ForwardDeadLetteredMessagesTo              none
      ForwardTo                                  q
      LockDuration                               PT1M
      MaxDeliveryCount                           10
      RequiresSession                            false
      Status                                     Active
      rule $Default: every message
    subscription eu
"#;
    assert!(printed.contains(expected), "{printed}");
    let rules = r#"
      rule by-sql: a = 1\n AND b < @b with {"@b":2.5}
        action SET c = 'x'
      rule by-value: sys.Label is "new" and count is 2 and kind is "2"
      rule never: no message
"#;
    assert!(printed.ends_with(rules), "{printed}");
}

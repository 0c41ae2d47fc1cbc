//! Tests with the committed fixtures, and with malicious texts.

mod properties;
mod secrets;
mod topics;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use servicebus_broker::{
    BatchLimit, EntityStatus, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts,
    LocksOnDetach,
};

use super::*;
use crate::auth::{Claim, Claims, WELL_KNOWN_KEY_NAME};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/config");

fn fixtures(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(FIXTURES).join(folder)).expect("the fixtures are there");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths
}

fn valid(name: impl AsRef<Path>) -> Config {
    let path = Path::new(FIXTURES).join(name);
    Config::from_file(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a file with these namespaces.
fn with_namespaces(namespaces: &[String]) -> String {
    let namespaces = namespaces.join(",");
    format!(r#"{{"UserConfig":{{"Namespaces":[{namespaces}]}}}}"#)
}

/// Returns a namespace with queues, given by name and properties.
fn with_queues(queues: impl IntoIterator<Item = (String, String)>) -> String {
    let queue = |(name, properties)| format!(r#"{{"Name":"{name}","Properties":{properties}}}"#);
    let queues: Vec<_> = queues.into_iter().map(queue).collect();
    let queues = queues.join(",");
    with_namespaces(&[format!(r#"{{"Name":"a","Queues":[{queues}]}}"#)])
}

/// Returns a namespace with one queue that has the given properties.
fn with_properties(properties: &str) -> String {
    with_queues([("q".to_owned(), properties.to_owned())])
}

fn problems(text: &str) -> Vec<String> {
    let error = Config::parse(text).expect_err("this configuration is not legal");
    error.to_string().lines().map(str::to_owned).collect()
}

/// With `UPDATE_EXPECTED=1` it writes the results instead of comparing them.
#[test]
fn every_invalid_file_has_the_expected_problems() {
    for path in fixtures("invalid") {
        let error = Config::from_file(&path).expect_err("a file in invalid/ is not legal");
        let file = path.file_name().expect("a file has a name");
        let found = format!("{}\n", error.in_file(Path::new(file)));
        let expected = path.with_extension("expected");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&expected, &found).expect("the fixtures can be written");
        }
        let expected =
            fs::read_to_string(&expected).expect("the expected text stands beside the file");
        assert_eq!(found, expected, "{}", path.display());
    }
}

/// Each is also valid in code, and its export parses to the same.
#[test]
fn every_valid_file_is_read() {
    for path in fixtures("") {
        let config = valid(&path);
        assert_eq!(config.check(), Ok(()), "{}", path.display());
        for namespace in config.namespaces {
            let exported = export(&namespace);
            let read = Config::parse(&exported.to_string());
            let [read] = &read.unwrap_or_else(|error| panic!("{error}")).namespaces[..] else {
                panic!("one namespace is exported: {exported}");
            };
            assert_eq!(export(read), exported, "{}", path.display());
            // JSON objects do not preserve the order of a filter's conditions, which has no meaning.
            let without_rules = |namespace: &NamespaceConfig| NamespaceConfig {
                topics: Vec::new(),
                ..namespace.clone()
            };
            assert_eq!(without_rules(read), without_rules(&namespace));
        }
    }
}

#[test]
fn a_single_namespace_is_parsed_under_a_given_name() {
    let text = with_properties(r#"{"MaxDeliveryCount":4}"#);
    let read = |text: &str, taken: &[&str]| {
        NamespaceConfig::parse_as("mine", text, Tier::Premium, &|key| taken.contains(&key))
    };
    let taken = [WELL_KNOWN_KEY_NAME, "RootManageSharedAccessKey-mine"];
    for (taken, key) in [
        (&taken[..0], WELL_KNOWN_KEY_NAME),
        (&taken[..1], "RootManageSharedAccessKey-mine"),
        (&taken[..], "RootManageSharedAccessKey-mine-2"),
    ] {
        for (text, queues) in [(text.as_str(), 1), ("", 0)] {
            let namespace = read(text, taken).unwrap();
            assert_eq!(
                (namespace.name.as_str(), namespace.queues.len()),
                ("mine", queues)
            );
            assert_eq!(namespace.settings.tier, Tier::Premium);
            assert_eq!(namespace.keys[0].name, key);
        }
    }
    let two = r#"{"UserConfig":{"Namespaces":[{"Name":"a"},{"Name":"b"}]}}"#;
    let refused = read(two, &[]).unwrap_err().to_string();
    let expected = "configuration:1:29: UserConfig.Namespaces: 2 namespaces are declared, and one is to be made; \
                    allowed: one namespace";
    assert_eq!(refused, expected);
}

#[test]
fn a_configuration_declares_at_most_1000_namespaces() {
    let file = |count: usize| {
        let names = (0..count).map(|number| format!(r#"{{"Name":"n{number}"}}"#));
        with_namespaces(&names.collect::<Vec<_>>())
    };
    assert!(Config::parse(&file(MAX_NAMESPACES)).is_ok());
    let found = problems(&file(MAX_NAMESPACES + 1));
    let [problem] = &found[..] else {
        panic!("one thing is wrong: {found:?}");
    };
    assert!(
        problem.ends_with("1001 namespaces are declared; allowed: at most 1000"),
        "{problem}"
    );
}

#[test]
fn the_minimal_file_equals_the_default_configuration() {
    assert_eq!(valid("minimal.json"), Config::default());
}

#[test]
fn a_file_of_the_official_emulator_is_parsed() {
    let config = valid("orders.json");
    let [namespace] = &config.namespaces[..] else {
        panic!("one namespace is declared: {config:?}");
    };
    let expected = EntityDescription {
        lock_duration: Duration::from_secs(60),
        max_delivery_count: 3,
        default_message_time_to_live: Some(Duration::from_secs(3600)),
        dead_lettering_on_message_expiration: true,
        duplicate_detection_history_time_window: Duration::from_secs(20),
        ..EntityDescription::default()
    };
    assert_eq!(namespace.queues, [("orders".parse().unwrap(), expected)]);
}

#[test]
fn every_setting_of_a_file_is_parsed() {
    let config = valid("all-settings.json");
    let [first, second, third] = &config.namespaces[..] else {
        panic!("three namespaces are declared: {config:?}");
    };
    let settings = NamespaceSettings {
        expiry: Expiry::OnReceive,
        locks_on_detach: LocksOnDetach::Release,
        failed_forwards: FailedForwards::DeadLetter,
        forward_to_disabled: ForwardToDisabled::Deliver,
        batch_limit: BatchLimit::Messages,
        idle_timeouts: IdleTimeouts::Service,
        tier: Tier::Premium,
    };
    assert_eq!(first.settings, settings);
    assert_eq!(
        (first.token_check, &first.jwt),
        (TokenCheck::None, &Jwt::Refuse)
    );
    let claims: Vec<_> = first
        .keys
        .iter()
        .map(|key| (&*key.name, key.claims))
        .collect();
    let sender = [Claim::Send].into_iter().collect();
    assert_eq!(claims, [("sender", sender), ("everything", Claims::ALL)]);
    let (path, queue) = &first.queues[0];
    let expected = EntityDescription {
        dead_lettering_on_filter_evaluation_exceptions: true,
        requires_session: true,
        lock_duration: Duration::from_millis(5500),
        max_delivery_count: 2_147_483_647,
        default_message_time_to_live: None,
        dead_lettering_on_message_expiration: true,
        status: EntityStatus::SendDisabled,
        requires_duplicate_detection: true,
        duplicate_detection_history_time_window: Duration::from_secs(7 * 86_400),
        forward_to: None,
        forward_dead_lettered_messages_to: Some("dead".parse().unwrap()),
        auto_delete_on_idle: Some(Duration::from_secs(300)),
        max_size_in_megabytes: 81_920,
        max_message_size_in_kilobytes: Some(102_400),
        enable_partitioning: true,
        ..EntityDescription::default()
    };
    assert_eq!((path.as_str(), queue), ("Team/Orders.v1", &expected));
    assert_eq!(first.queues[1].1, EntityDescription::default());
    let transfer = FailedForwards::TransferDeadLetter;
    assert_eq!(second.settings.failed_forwards, transfer);
    assert_eq!(second.keys, [Key::well_known()]);
    let fortnight = Some(Duration::from_secs(1_209_600));
    let queue = &second.queues[0].1;
    assert_eq!(queue.default_message_time_to_live, fortnight);
    let host = Address::Host("first.example.test".into());
    assert_eq!(first.address, Some(host));
    assert_eq!(second.address, Some(Address::Ip([127, 0, 0, 2].into())));
    assert_eq!(third.address, None);
    assert_eq!(third.keys[0].name, "RootManageSharedAccessKey-third");
    assert_eq!(third.queues, []);
}

#[test]
fn chains_and_cycles_of_forwarding_are_valid() {
    let [namespace] = &valid("forwarding.json").namespaces[..] else {
        panic!("one namespace is declared");
    };
    fn name(path: &Option<EntityPath>) -> &str {
        path.as_ref().map_or("none", EntityPath::as_str)
    }
    let forwards = namespace.queues.iter().map(|(path, queue)| {
        let dead_letters = &queue.forward_dead_lettered_messages_to;
        (path.as_str(), name(&queue.forward_to), name(dead_letters))
    });
    let expected = [
        ("inbox", "Orders", "dead"),
        ("orders", "none", "dead"),
        ("dead", "none", "none"),
        ("ping", "pong", "none"),
        ("pong", "ping", "none"),
    ];
    assert_eq!(forwards.collect::<Vec<_>>(), expected);
}

#[test]
fn an_only_queue_is_not_suggested_as_its_own_target() {
    let text = with_properties(r#"{"ForwardTo":"orders"}"#);
    let found = problems(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0]
            .ends_with(r#""orders" is not allowed; allowed: a queue or topic of the namespace"#),
        "{found:?}"
    );
}

#[test]
fn thousands_of_missing_targets_are_reported_quickly() {
    let forwarding = |number| {
        let properties = format!(r#"{{"ForwardTo":"other-{number}"}}"#);
        (format!("queue-{number}"), properties)
    };
    let error = Config::parse(&with_queues((0..5_000).map(forwarding))).unwrap_err();
    assert_eq!(error.problems.len() + error.more, 5_000);
}

#[test]
fn the_tier_argument_applies_to_namespaces_without_a_tier() {
    let text = r#"{"UserConfig":{"Namespaces":[
        {"Name":"a","Queues":[{"Name":"q"}]},
        {"Name":"b","Queues":[{"Name":"q"}],"Emulator":{"Tier":"premium"}}]}}"#;
    let config = Config::parse_in_tier(text, Tier::Basic).unwrap();
    let seen = |namespace: &NamespaceConfig| {
        let queue = &namespace.queues[0].1;
        (namespace.settings.tier, queue.default_message_time_to_live)
    };
    let basic = (Tier::Basic, Some(Duration::from_secs(1_209_600)));
    let read: Vec<_> = config.namespaces.iter().map(seen).collect();
    assert_eq!(read, [basic, (Tier::Premium, None)]);
    let default = Config::default_in_tier(Tier::Basic);
    assert_eq!(seen(&default.namespaces[0]), basic);
}

#[test]
fn out_of_range_numbers_are_shown_as_written() {
    let huge = "99999999999999999999999";
    for number in ["0", "-1", "2147483648", "4294967297", huge] {
        let text = with_properties(&format!(r#"{{"MaxDeliveryCount":{number}}}"#));
        let expected = format!(
            "configuration:1:97: UserConfig.Namespaces[0].Queues[0].Properties.MaxDeliveryCount: \
             {number} is not allowed; allowed: 1 to 2147483647"
        );
        assert_eq!(problems(&text), [expected]);
    }
}

#[test]
fn a_byte_order_mark_and_crlf_are_accepted() {
    let text = fs::read_to_string(Path::new(FIXTURES).join("orders.json")).unwrap();
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(Config::parse(&windows), Config::parse(&text));
    assert!(problems("\u{feff}\r\n {")[0].starts_with("configuration:2:2: not JSON:"));
}

#[test]
fn files_in_other_encodings_are_refused_by_name() {
    let folder = std::env::temp_dir().join(format!("servicebus-config-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let table: [(&[u8], &str); 3] = [
        (
            b"\xff\xfe{\0}\0",
            "is UTF-16, as some editors save it; it must be UTF-8",
        ),
        (
            b"{\"\xe9\"",
            "is not UTF-8: the byte at offset 2 is not text",
        ),
        (b"", "the text is empty"),
    ];
    for (bytes, message) in table {
        let path = folder.join("config.json");
        fs::write(&path, bytes).unwrap();
        let error = Config::from_file(&path).unwrap_err().to_string();
        assert!(
            error.ends_with(message) && error.starts_with(&path.display().to_string()),
            "{error}"
        );
    }
    let missing = Config::from_file(&folder.join("none.json"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("none.json: cannot be read: "), "{missing}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_size_and_nesting_of_a_file_are_limited() {
    let text = " ".repeat(usize::try_from(MAX_CONFIG_SIZE).unwrap() + 1);
    assert_eq!(problems(&text), ["configuration: is larger than 16 MiB"]);
    for open in ["[", "{\"a\":", "[{\"a\":"] {
        let deep = problems(&open.repeat(100_000));
        assert!(deep[0].contains("nesting depth"), "{deep:?}");
    }
    let hidden = with_properties(&format!(
        r#"{{"LockDuration":{}1{}}}"#,
        "[".repeat(400),
        "]".repeat(400)
    ));
    assert!(problems(&hidden)[0].ends_with("this is an array; allowed: a string"));
}

proptest! {
    #[test]
    fn mutated_files_do_not_panic(
        location in 0.0..1.0_f64,
        length in 0_usize..40,
        put in prop_oneof![
            "[\\[\\]{}\",:/*]{0,3}",
            Just("null".to_owned()),
            Just("1e999".to_owned()),
            Just("\"\\ud800\"".to_owned()),
            "\\PC{0,4}",
        ],
    ) {
        let text = include_str!("../../../../fixtures/config/all-settings.json");
        let boundary = |index: usize| {
            let candidates = index.min(text.len())..=text.len();
            candidates.into_iter().find(|&index| text.is_char_boundary(index)).unwrap_or_default()
        };
        let start = boundary((location * text.len() as f64) as usize);
        let end = boundary(start + length);
        let changed = [&text[..start], &put, &text[end..]].concat();
        if let Err(error) = Config::parse(&changed) {
            prop_assert!(!error.problems.is_empty());
            let positions = error.problems.iter().map(|problem| problem.position);
            prop_assert!(positions.is_sorted(), "{}", error);
        }
    }
}

#[test]
fn the_first_problems_are_reported_and_the_others_counted() {
    let keys: Vec<String> = (0..180_000).map(|key| format!("\"k{key}\":0")).collect();
    let text = with_properties(&format!("{{{}}}", keys.join(",")));
    let error = Config::parse(&text).unwrap_err();
    assert_eq!((error.problems.len(), error.more), (100, 179_900));
    for (index, problem) in error.problems.iter().enumerate() {
        let path = format!("UserConfig.Namespaces[0].Queues[0].Properties.k{index}");
        assert_eq!(problem.path, path);
    }
    let rendered = error.to_string();
    assert!(rendered.ends_with("\nand 179900 more problems"));
    // Problems are reported in the order of the text, not of detection.
    let text = text.replace("\"Name\":\"q\"", "\"Name\":\"\"");
    let error = Config::parse(&text).unwrap_err();
    assert_eq!((error.problems.len(), error.more), (100, 179_901));
    assert_eq!(
        error.problems[0].path,
        "UserConfig.Namespaces[0].Queues[0].Name"
    );
}

#[test]
fn only_reported_problems_have_the_nearest_name() {
    let forwarding = |number| {
        let properties = format!(r#"{{"ForwardTo":"missing-{number:03}"}}"#);
        (format!("{number:03}"), properties)
    };
    let error = Config::parse(&with_queues((0..300).map(forwarding))).unwrap_err();
    assert_eq!((error.problems.len(), error.more), (100, 200));
    let nearest = |problem: &ConfigProblem| {
        problem
            .allowed
            .as_ref()
            .is_some_and(|text| text.contains("nearest"))
    };
    assert!(error.problems.iter().all(nearest), "{error}");
}

/// Returns a namespace with a queue, a topic and a subscription.
fn made() -> NamespaceConfig {
    let mut namespace = NamespaceConfig::new("a");
    namespace.queues = vec![("q".parse().unwrap(), EntityDescription::default())];
    namespace.topics = vec![TopicConfig {
        path: "t".parse().unwrap(),
        description: EntityDescription::default(),
        subscriptions: vec![SubscriptionConfig {
            name: "s".to_owned(),
            description: EntityDescription::default(),
            rules: vec![Rule::default_rule(Timestamp::from_millis(0))],
        }],
    }];
    namespace
}

/// Values that a file cannot express are also rejected in code, wherever they occur.
#[test]
fn a_configuration_built_in_code_is_checked_like_a_file() {
    type Change = fn(&mut NamespaceConfig);
    let changes: [(&str, Change); 9] = [
        ("Queues[0].Properties.MaxDeliveryCount", |a| {
            a.queues[0].1.max_delivery_count = 0
        }),
        ("Queues[0].Properties.ForwardTo", |a| {
            a.queues[0].1.forward_to = "gone".parse().ok()
        }),
        ("Queues[1].Name", |a| a.queues.push(a.queues[0].clone())),
        ("Topics[0].Properties.MaxSizeInMegabytes", |a| {
            a.topics[0].description.max_size_in_megabytes = 0
        }),
        ("Topics[0].Subscriptions[0].Name", |a| {
            a.topics[0].subscriptions[0].name = "a b".into()
        }),
        (
            "Topics[0].Subscriptions[0].Properties.MaxDeliveryCount",
            |a| {
                a.topics[0].subscriptions[0].description.max_delivery_count = 0;
            },
        ),
        ("Topics[0].Subscriptions[0].Properties.ForwardTo", |a| {
            a.topics[0].subscriptions[0].description.forward_to = "gone".parse().ok();
        }),
        ("Topics[0].Subscriptions[0].Rules[1].Name", |a| {
            let rules = &mut a.topics[0].subscriptions[0].rules;
            rules.push(rules[0].clone());
        }),
        ("Emulator.Keys[0].Name", |a| a.keys[0].name = "a;b".into()),
    ];
    let check = |namespaces| Config { namespaces }.check();
    for (path, change) in changes {
        let mut namespace = made();
        change(&mut namespace);
        let error = check(vec![namespace]).unwrap_err();
        let paths: Vec<_> = error.problems.iter().map(|problem| &problem.path).collect();
        let expected = format!("UserConfig.Namespaces[0].{path}");
        assert_eq!(paths, [&expected], "{error}");
    }
    let error = check(vec![NamespaceConfig::new("bad name")]).unwrap_err();
    assert!(error.to_string().contains("bad name"), "{error}");
    assert!(check(Vec::new()).is_err());
}

//! Rules that a test has broken: a key that is known only where they are built in.

use super::*;

const TEXT: &str = r#"{"UserConfig":{"Namespaces":[{"Name":"a","Emulator":{
    "Deviations":["peek-hides-locked","rollback-commits"]}}]}}"#;

#[test]
#[cfg(feature = "deviations")]
fn broken_rules_are_read_and_written_again() {
    use servicebus_broker::{Deviation, Deviations};

    let config = Config::parse(TEXT).unwrap();
    let broken = [Deviation::PeekHidesLocked, Deviation::RollbackCommits];
    let settings = config.namespaces[0].settings;
    assert_eq!(settings.deviations, Deviations::from_iter(broken));

    let written = config.namespaces[0].to_json();
    assert_eq!(Config::parse(&written.to_string()).unwrap(), config);
    let unknown = TEXT.replace("peek-hides-locked", "peek-hides-lock");
    let problems = problems(&unknown).join("\n");
    assert!(problems.contains("\"peek-hides-locked\""), "{problems}");
    let usual = NamespaceConfig::new("a").to_json().to_string();
    assert!(!usual.contains("Deviations"), "{usual}");
}

#[test]
#[cfg(not(feature = "deviations"))]
fn what_is_shipped_does_not_know_the_key() {
    let problems = problems(TEXT).join("\n");
    assert!(problems.contains("Emulator.Deviations"), "{problems}");
}

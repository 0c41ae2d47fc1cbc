//! `import`: a configuration on standard output, what it leaves out on standard error.

use crate::support::*;

#[test]
fn what_is_imported_is_a_configuration_that_check_accepts() {
    let output = run(&["import", "../fixtures/arm/exported.json"], &[]);
    assert_eq!(output.status.code(), Some(0));
    let notes = String::from_utf8(output.stderr).unwrap();
    assert!(
        notes.starts_with("resources[2]: Microsoft.ServiceBus/namespaces/networkrulesets"),
        "{notes}"
    );
    let config = String::from_utf8(output.stdout).unwrap();
    let file = TemporaryFile::new(&config);
    let output = run(&["check", file.path()], &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn what_is_wrong_is_told_with_its_path() {
    let bicep = ["import", "../fixtures/arm/bicep.json"];
    let output = run(&bicep, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = "resources.bus.name: the parameter prefix has no default and needs a value";
    assert!(text.contains(expected), "{text}");
    let named = run(&[&bicep[..], &["--set", "prefix=shop"]].concat(), &[]);
    assert_eq!(named.status.code(), Some(0), "{named:?}");
    let output = run(&[&bicep[..], &["--set", "prefix"]].concat(), &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = run(&["import", "nowhere.json"], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

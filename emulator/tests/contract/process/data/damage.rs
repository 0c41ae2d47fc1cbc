//! Damaged files are reported by name, and nothing that was accepted is lost silently.

use super::{DataDirectory as _, Directory, kill};
use crate::support::*;
use std::fs;

const FILES: [&str; 3] = ["FORMAT", "journal", "store.redb"];

/// The files of a killed process, with a message in them.
fn left() -> (Directory, [Vec<u8>; 3]) {
    let directory = Directory::unused();
    let process = directory.start();
    process.client().send_to("queue.1", &Message::new("a"));
    kill(process);
    let left = FILES.map(|name| fs::read(directory.file(name)).expect("it is there"));
    (directory, left)
}

/// What `data check` finds.
fn check(directory: &Directory) -> String {
    let checked = run(&["data", directory.path(), "check"], &[]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    checked.stderr
}

#[test]
fn a_damaged_data_file_is_reported_by_name() {
    let (directory, left) = left();
    let cut = |bytes: &[u8], length: usize| Some(bytes[..length].to_vec());
    let noise = || Some((0..5_000_u32).map(|at| (at * at % 251) as u8).collect());
    let [_, journal, store] = &left;
    for (file, bytes, reason) in [
        ("store.redb", cut(store, 0), "is damaged: it is empty"),
        ("store.redb", cut(store, 100), "is damaged"),
        ("store.redb", noise(), "is damaged"),
        ("store.redb", None, "is missing"),
        ("journal", cut(journal, 0), "is damaged: it was cut"),
        ("journal", cut(journal, 100), "is damaged: it was cut"),
        ("journal", cut(journal, 60_000), "is damaged: it was cut"),
        ("journal", noise(), "is damaged: it was cut"),
        ("journal", None, "is missing"),
        ("FORMAT", cut(b"\xff\xfe", 2), "is damaged"),
        (
            "FORMAT",
            cut(b"servicebus-emulator data 0", 26),
            "is damaged",
        ),
        ("FORMAT", None, "is missing"),
    ] {
        for (name, whole) in FILES.iter().zip(&left) {
            fs::write(directory.file(name), whole).expect("it can be written");
        }
        let damaged = directory.file(file);
        match bytes {
            Some(bytes) => fs::write(&damaged, bytes).expect("it can be written"),
            None => fs::remove_file(&damaged).expect("it can be removed"),
        }
        let expected = format!("{file}\" {reason}");
        assert_contains(&directory.refusal(None), &expected);
        let found = check(&directory);
        assert_contains(&found, &expected);
        assert!(!found.contains("DIR check"), "{found}");
    }
    for (name, whole) in FILES.iter().zip(&left) {
        fs::write(directory.file(name), whole).expect("it can be written");
    }
    assert_eq!(directory.start().http().held("queue.1"), (1, 0));
}

#[test]
fn a_directory_in_place_of_a_file_is_reported_by_name() {
    let (directory, left) = left();
    for (name, whole) in FILES.iter().zip(&left) {
        let file = directory.file(name);
        fs::remove_file(&file).expect("it can be removed");
        fs::create_dir(&file).expect("it can be made");
        assert_contains(&directory.refusal(None), name);
        assert_contains(&check(&directory), name);
        fs::remove_dir(&file).expect("it can be removed");
        fs::write(&file, whole).expect("it can be written");
    }
}

/// The files of a process that is killed in its first start, or has no disk space for it.
#[test]
fn an_incomplete_store_of_a_first_start_is_replaced() {
    let directory = Directory::unused();
    fs::create_dir_all(&directory.0).expect("it can be made");
    fs::write(directory.file("store.new"), b"the beginning").expect("it can be written");
    let process = directory.start();
    process.client().send_to("queue.1", &Message::new("a"));
    kill(process);
    assert_eq!(directory.start().http().held("queue.1"), (1, 0));
}

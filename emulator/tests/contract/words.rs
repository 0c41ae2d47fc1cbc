//! The field has a word for each of these identifiers, which the code uses instead (`ARCHITECTURE.md`, "Words").

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Home-made identifiers.
const GONE: &str = "\
    Mailbox StoreKind Letter Letters Doorbell Dice Mint Crowd GiveWay give_way crowd_in Spoiled \
    Sighting Blow Strike HangUp Particulars Remarks Vouched Sought Arrival Doors Instants Numbers \
    Stamp let_happen goes_on bring_back lock_ended farewell settleable opened_letter Books Carrier \
    Cover Glance Parked PutOff Sleeper Speaker Standing caller_of_time in_vain nudge outgrown \
    patience told_others vanish";

#[test]
fn replaced_home_made_words_do_not_return() {
    let gone = BTreeSet::from_iter(GONE.split(' '));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut files = 0;
    let folders = ["src", "tests", "benches", "broker", "amqp", "codec"];
    let mut left: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("it can be read");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with(file!())
        {
            files += 1;
            let text = fs::read_to_string(&path).expect("it is text");
            let code = text
                .lines()
                .map(|line| line.split("//").next().unwrap_or_default());
            for (index, line) in code.enumerate() {
                let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
                let returned = words.filter(|word| gone.contains(word));
                found.extend(
                    returned.map(|word| format!("{}:{}: {word}", path.display(), index + 1)),
                );
            }
        }
    }
    assert!(files > 100, "{files} files were read");
    assert_eq!(found, [""; 0]);
}

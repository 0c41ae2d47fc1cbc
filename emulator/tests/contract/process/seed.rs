//! `--seed`: the same client gets the same tokens and ids in every run.

use crate::support::*;

/// Everything made up by the emulator in a fixed conversation.
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
fn a_seed_makes_runs_equal() {
    let first = made_up(&["--seed", "42"]);
    assert_eq!(first, made_up(&["--seed", "42"]));
    assert_ne!(first, made_up(&["--seed", "43"]));
    let mut distinct = first.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), first.len(), "something came twice");
}

#[test]
fn without_a_seed_runs_differ() {
    assert_ne!(made_up(&[]), made_up(&[]));
}

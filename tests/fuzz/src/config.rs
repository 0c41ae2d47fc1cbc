//! Configuration: every text is either served, and then exported as a text that says the same, or refused with a bounded
//! number of problems.

use std::sync::LazyLock;

use servicebus_emulator::broker::Tier;
use servicebus_emulator::config::NamespaceConfig;
use servicebus_emulator::fuzz::namespace_of_request;

use crate::{Input, altered_text, input};

/// Most problems that are told of one text, with the remark that there are more.
const PROBLEMS: usize = 101;

static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let valid = input::files("config", ".json");
    let invalid = input::files("config/invalid", ".json");
    valid.into_iter().chain(invalid).collect()
});

/// A configuration as a request has it, which opens no files.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let tier = input.pick(&[Tier::Standard, Tier::Basic, Tier::Premium]);
    let text = altered_text(&mut input, &SEEDS);
    match namespace_of_request("fuzz", &text, tier) {
        Ok(namespace) => again(&namespace, tier),
        Err(error) => {
            let problems = &error.problems;
            assert!(
                !problems.is_empty() && problems.len() <= PROBLEMS,
                "{} problems",
                problems.len()
            );
            let rendered_len: usize = problems
                .iter()
                .map(|problem| problem.to_string().len())
                .sum();
            assert!(rendered_len < 1024 * 1024, "{rendered_len} bytes");
        }
    }
}

/// What is exported is read as the same.
fn again(namespace: &NamespaceConfig, tier: Tier) {
    let exported = namespace.to_json().to_string();
    let read = namespace_of_request("fuzz", &exported, tier);
    let read =
        read.unwrap_or_else(|error| panic!("{exported} was exported and is refused: {error}"));
    assert_eq!(&read, namespace, "{exported}");
}

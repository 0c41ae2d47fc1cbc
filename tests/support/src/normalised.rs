//! Normalizes failure texts, which differ from run to run.

/// Replaces offsets by `+…` and generated message ids by `<id>`, and rounds remaining waits up to half a minute.
pub fn normalised(text: &str) -> String {
    let lines = text.lines().map(|line| wait(&words(&offset(line))));
    Vec::from_iter(lines).join("\n")
}

/// Changes `due in 598 s` to `due in 600 s`: a busy machine has taken two seconds to get there.
fn wait(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let round = |(index, word): (usize, &&str)| {
        let is_wait =
            words[..index].ends_with(&["due", "in"]) || words[..index].ends_with(&["has"]);
        let unit = words
            .get(index + 1)
            .map(|unit| unit.trim_end_matches([',', ';']));
        match word.parse::<u64>() {
            Ok(seconds) if is_wait && unit == Some("s") => (seconds.div_ceil(30) * 30).to_string(),
            _ => (*word).to_owned(),
        }
    };
    Vec::from_iter(words.iter().enumerate().map(round)).join(" ")
}

/// Changes `  +60.007 s lock expired` to `  +… lock expired`.
fn offset(line: &str) -> String {
    let Some(rest) = line.strip_prefix("  +") else {
        return line.to_owned();
    };
    match rest.split_once(" s ") {
        Some((number, rest)) if number.parse::<f64>().is_ok() => {
            format!("  +… {}", rest.trim_start())
        }
        _ => line.to_owned(),
    }
}

fn words(line: &str) -> String {
    let is_id = |word: &str| word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    let mut text = String::new();
    let mut word = String::new();
    for character in line.chars().chain(['\n']) {
        if character.is_alphanumeric() {
            word.push(character);
            continue;
        }
        text.push_str(if is_id(&word) { "<id>" } else { &word });
        word.clear();
        text.push(character);
    }
    text.trim_end().to_owned()
}

#[test]
fn remaining_waits_are_rounded() {
    for (text, rounded) in [
        (
            "scheduled, due in 571 s — differs",
            "scheduled, due in 600 s — differs",
        ),
        ("hint: o-17 has 60 s to live", "hint: o-17 has 60 s to live"),
        ("due in 300 s (± 1 s)", "due in 300 s (± 1 s)"),
        ("carts has 1 session", "carts has 1 session"),
        ("lock 61 s", "lock 61 s"),
    ] {
        assert_eq!(normalised(text), rounded);
    }
}

#[test]
fn varying_parts_are_replaced() {
    let text = "  +60.007 s lock expired    0123456789abcdef0123456789abcdef, delivery 2 counted";
    assert_eq!(
        normalised(text),
        "  +… lock expired    <id>, delivery 2 counted"
    );
}

//! Failure texts without what differs from run to run.

/// Replaces offsets by `+…`, generated message ids by `<id>`, and the rest of a loopback address by `x`.
pub(crate) fn normalised(text: &str) -> String {
    let lines = text.lines().map(|line| words(&offset(line)));
    Vec::from_iter(lines).join("\n")
}

/// `  +60.007 s lock expired` becomes `  +… lock expired`.
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
    for letter in line.chars().chain(['\n']) {
        if letter.is_alphanumeric() {
            word.push(letter);
            continue;
        }
        text.push_str(if is_id(&word) { "<id>" } else { &word });
        word.clear();
        text.push(letter);
    }
    text.trim_end().to_owned()
}

#[test]
fn what_differs_goes() {
    let text = "  +60.007 s lock expired    0123456789abcdef0123456789abcdef, delivery 2 counted";
    assert_eq!(
        normalised(text),
        "  +… lock expired    <id>, delivery 2 counted"
    );
}

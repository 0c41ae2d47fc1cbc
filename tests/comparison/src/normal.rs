//! What differs between two runs that are the same: ids, times and hosts.

/// The domain of the service's namespaces.
const CLOUD: &str = ".servicebus.windows.net";

/// Returns the text with every UUID, point in time and host replaced by its kind.
pub fn normalised(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(character) = rest.chars().next() {
        let begins = before.is_none_or(|before: char| !before.is_ascii_alphanumeric());
        match found(rest).filter(|_| begins) {
            Some((length, kind)) => {
                normal.push_str(kind);
                before = rest[..length].chars().last();
                rest = &rest[length..];
            }
            None => {
                normal.push(character);
                before = Some(character);
                rest = &rest[character.len_utf8()..];
            }
        }
    }
    normal
}

/// What the text begins with that is replaced, by its length.
fn found(text: &str) -> Option<(usize, &'static str)> {
    let kinds: [(Finder, &str); 7] = [
        (tracker, "SystemTracker:<entity>"),
        (uuid, "<id>"),
        (bare_uuid, "<id>"),
        (bare_id, "<id>"),
        (instant, "<time>"),
        (address, "<host>"),
        (cloud_host, "<host>"),
    ];
    kinds
        .into_iter()
        .find_map(|(find, kind)| Some((find(text)?, kind)))
}

type Finder = fn(&str) -> Option<usize>;

/// Where the service says that it was, which begins with the namespace.
fn tracker(text: &str) -> Option<usize> {
    let named = text.strip_prefix("SystemTracker:")?;
    let ends = |character: char| character.is_whitespace() || matches!(character, ',' | '"' | '\\');
    Some(text.len() - named.len() + run(named, |character| !ends(character)))
}

/// `0f8fad5b-d9cb-469f-a165-70867728950e`, with what the service hangs on: `_G12`.
fn uuid(text: &str) -> Option<usize> {
    let shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    let length = shaped(text, shape, |character| character.is_ascii_hexdigit())?;
    let suffix = text[length..]
        .strip_prefix("_G")
        .or_else(|| text[length..].strip_prefix("_B"));
    Some(match suffix {
        Some(digits) => length + 2 + run(digits, |character| character.is_ascii_digit()),
        None => length,
    })
}

/// The same without hyphens.
fn bare_uuid(text: &str) -> Option<usize> {
    let length = run(text, |character| character.is_ascii_hexdigit());
    let ends = !text[length..].starts_with(|character: char| character.is_ascii_alphanumeric());
    (length == 32 && ends).then_some(length)
}

/// The id of a transaction: `921989af211a5d7a`. A number is none.
fn bare_id(text: &str) -> Option<usize> {
    let length = run(text, |character| character.is_ascii_hexdigit());
    let ends = !text[length..].starts_with(|character: char| character.is_ascii_alphanumeric());
    let is_number = text[..length].bytes().all(|byte| byte.is_ascii_digit());
    (length == 16 && ends && !is_number).then_some(length)
}

/// `2026-11-22T03:04:05.678Z`, and the forms that SDKs print.
fn instant(text: &str) -> Option<usize> {
    let date = shaped(text, "xxxx-xx-xx", |character| character.is_ascii_digit())?;
    let rest = text[date..].strip_prefix(['T', ' '])?;
    let time = run(rest, |character| {
        character.is_ascii_digit() || matches!(character, ':' | '.')
    });
    let has_hours = rest[..time].contains(':');
    let mut length = date + 1 + time;
    for zone in ["Z", " +00:00:00", "+00:00"] {
        if text[length..].starts_with(zone) {
            length += zone.len();
            break;
        }
    }
    has_hours.then_some(length)
}

/// `127.64.3.9`, with a port or without.
fn address(text: &str) -> Option<usize> {
    let length = run(text, |character| {
        character.is_ascii_digit() || character == '.'
    });
    let address = text[..length].trim_end_matches('.');
    let parts = Vec::from_iter(address.split('.'));
    let is_address = parts.len() == 4 && parts.iter().all(|part| part.parse::<u8>().is_ok());
    is_address.then(|| with_port(text, address.len()))
}

fn cloud_host(text: &str) -> Option<usize> {
    let length = run(text, |character| {
        character.is_ascii_alphanumeric() || matches!(character, '-' | '.')
    });
    let host = text[..length].trim_end_matches('.');
    host.ends_with(CLOUD).then(|| with_port(text, host.len()))
}

fn with_port(text: &str, length: usize) -> usize {
    match text[length..].strip_prefix(':') {
        Some(port) if port.starts_with(|character: char| character.is_ascii_digit()) => {
            length + 1 + run(port, |character| character.is_ascii_digit())
        }
        _ => length,
    }
}

fn shaped(text: &str, shape: &str, fits: fn(char) -> bool) -> Option<usize> {
    let mut characters = text.chars();
    let same = shape.chars().all(|wanted| {
        let found = characters.next();
        found.is_some_and(|found| match wanted {
            'x' => fits(found),
            fixed => found == fixed,
        })
    });
    same.then_some(shape.len())
}

fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|character: char| !fits(character))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_hosts_are_normalized() {
        let cases = [
            (
                "TrackingId:0f8fad5b-d9cb-469f-a165-70867728950e_G12, SystemTracker:h, Timestamp:2026-11-22T03:04:05",
                "TrackingId:<id>, SystemTracker:<entity>, Timestamp:<time>",
            ),
            ("0f8fad5bd9cb469fa16570867728950e", "<id>"),
            (
                "transaction 921989af211a5d7a of 9219898521185670",
                "transaction <id> of 9219898521185670",
            ),
            ("at 2026-11-22 3:04:05.678 +00:00:00.", "at <time>."),
            ("amqps://127.64.3.9:5671/orders", "amqps://<host>/orders"),
            ("sb://contoso.servicebus.windows.net/a", "sb://<host>/a"),
            ("1.2 of 300 ä", "1.2 of 300 ä"),
            ("o-17 on 2026-11-22", "o-17 on 2026-11-22"),
        ];
        for (text, expected) in cases {
            assert_eq!(normalised(text), expected);
        }
    }
}

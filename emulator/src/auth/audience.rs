//! What a token is for: from the many spellings of SDKs to one path.
//!
//! The same entity is claimed as `sb://host/orders`, `amqps://host:5671/orders/` or
//! `HTTP://HOST/Orders/$management` (wire.md §2.2). Scheme, host, port and case say nothing in an
//! emulator, so only the lower-case path is kept (decision D14). JavaScript signs the whole URL of an HTTP request: its
//! query says nothing either, and its path may be encoded once more.

use std::borrow::Cow;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;

/// Service Bus host names end in it; a text without scheme that begins with one has an authority.
const SERVICE_SUFFIX: &str = ".servicebus.windows.net";

/// The path of an audience: lower-case, decoded, no slash at either end; empty for a whole namespace.
pub fn audience_path(audience: &str) -> String {
    let once = decode(audience);
    // Some SDKs encode twice: a plain URI has no encoded scheme separator.
    let text = match once.contains("://") {
        true => once,
        false => Cow::Owned(decode(&once).into_owned()),
    };
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => without_authority(&text),
    };
    let path = path.split('?').next().unwrap_or_default();
    decode(path).trim_matches('/').to_lowercase()
}

/// Whether a token for `audience_path` (as [`audience_path`] gives it) holds at the address `entity_path`:
/// for the entity itself and everything below it, be that `$management`, a sub-queue or a subscription.
pub fn covers(audience_path: &str, entity_path: &str) -> bool {
    let entity = entity_path.trim_matches('/').to_lowercase();
    match entity.strip_prefix(audience_path) {
        Some(below) => audience_path.is_empty() || below.is_empty() || below.starts_with('/'),
        None => false,
    }
}

fn decode(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// A text without scheme begins with an authority only when it looks like one: entity names may have dots.
fn without_authority(text: &str) -> &str {
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    if is_authority(first) { rest } else { text }
}

fn is_authority(text: &str) -> bool {
    let host = text.to_ascii_lowercase();
    host == "localhost"
        || host.contains(':')
        || host.ends_with(SERVICE_SUFFIX)
        || host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_has_one_path() {
        let table = [
            ("sb://localhost/orders", "orders"),
            (
                "sb://localhost:5672/Orders/$Management",
                "orders/$management",
            ),
            ("amqps://host.servicebus.windows.net:5671/orders/", "orders"),
            ("amqp://127.0.0.1/orders", "orders"),
            ("amqps://[::1]:5671/orders", "orders"),
            ("HTTP://HOST//T/Subscriptions/S", "t/subscriptions/s"),
            ("amqps://host/", ""),
            ("amqps://host", ""),
            ("sb%3A%2F%2Flocalhost%2Forders", "orders"),
            ("sb%253a%252f%252flocalhost%252forders", "orders"),
            ("ns.servicebus.windows.net/orders", "orders"),
            ("localhost:5672/orders", "orders"),
            (
                "https%3a%2f%2flocalhost%3a5300%2fq1%3fapi-version%3d2021-05",
                "q1",
            ),
            (
                "https://localhost:5300/$resources/queues?%24skip=0",
                "$resources/queues",
            ),
            ("https%3A%2F%2Flocalhost%2Fa%252Fq1", "a/q1"),
            ("queue.1", "queue.1"),
            ("/orders", "orders"),
            ("a/b", "a/b"),
            ("localhost", ""),
            ("", ""),
            ("%ff%zz%", "\u{fffd}%zz%"),
        ];
        for (audience, path) in table {
            assert_eq!(audience_path(audience), path, "{audience}");
        }
    }

    #[test]
    fn a_token_covers_its_entity_and_what_is_below() {
        assert!(covers("", "anything/at/all"));
        assert!(covers("orders", "orders"));
        assert!(covers("orders", "Orders/$management"));
        assert!(covers("orders", "/ORDERS/$DeadLetterQueue"));
        assert!(covers("t", "t/Subscriptions/s"));
        assert!(!covers("orders", "orders2"));
        assert!(!covers("orders", "order"));
        assert!(!covers("orders/$management", "orders"));
        assert!(!covers("orders", ""));
    }

    proptest::proptest! {
        #[test]
        fn no_audience_panics(audience in "\\PC*", entity in "\\PC*") {
            let path = audience_path(&audience);
            let _ = covers(&path, &entity);
            proptest::prop_assert!(covers("", &entity));
        }
    }
}

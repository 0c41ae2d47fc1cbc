//! The address of a link: the entity and its part.
//!
//! Clients write `orders`, `/orders`, `amqps://host:5671/orders`, percent-encoded or not, and in any case (wire.md §3.1,
//! §10.18). This module parses addresses; answers echo them elsewhere.

use percent_encoding::percent_decode_str;
use servicebus_broker::SubQueue;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The entity's path as written, normalised but not looked up; empty for the namespace.
    pub(crate) entity: String,
    pub(crate) destination: Destination,
}

/// A part of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// One of its stores.
    Store(SubQueue),
    /// The request-response node of one of its stores.
    Management(SubQueue),
    /// The node for tokens.
    Cbs,
}

const MANAGEMENT: &str = "/$management";
const DEAD_LETTERS: &str = "/$deadletterqueue";
const TRANSFER_DEAD_LETTERS: &str = "/$transfer/$deadletterqueue";

impl Address {
    pub(crate) fn parse(written: &str) -> Self {
        let path = match written.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => written,
        };
        // The administration API ignores a slash at the end of a name, too.
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.trim_end_matches('/');
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let path = decoded.as_ref();
        if path.eq_ignore_ascii_case("$cbs") {
            return Self {
                entity: String::new(),
                destination: Destination::Cbs,
            };
        }
        let (path, management) = strip(path, MANAGEMENT);
        let (path, transfer) = strip(path, TRANSFER_DEAD_LETTERS);
        let (path, kind) = match transfer {
            true => (path, SubQueue::TransferDeadLetter),
            false => match strip(path, DEAD_LETTERS) {
                (path, true) => (path, SubQueue::DeadLetter),
                (path, false) => (path, SubQueue::Active),
            },
        };
        let destination = match management {
            true => Destination::Management(kind),
            false => Destination::Store(kind),
        };
        Self {
            entity: path.to_owned(),
            destination,
        }
    }

    /// Returns the whole path, normalised: what a token must cover.
    pub(crate) fn path(&self) -> String {
        let entity = &self.entity;
        match self.destination {
            Destination::Store(kind) => format!("{entity}{}", kind.suffix()),
            Destination::Management(kind) => format!("{entity}{}{MANAGEMENT}", kind.suffix()),
            Destination::Cbs => "$cbs".to_owned(),
        }
    }
}

fn strip<'a>(path: &'a str, suffix: &str) -> (&'a str, bool) {
    let at = path.len().saturating_sub(suffix.len());
    match path.split_at_checked(at) {
        Some((entity, end)) if end.eq_ignore_ascii_case(suffix) => (entity, true),
        _ => (path, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_is_parsed() {
        use Destination::{Cbs, Management, Store};
        use SubQueue::{Active, DeadLetter, TransferDeadLetter};
        for (written, entity, destination) in [
            ("orders", "orders", Store(Active)),
            ("/orders", "orders", Store(Active)),
            ("orders/", "orders", Store(Active)),
            ("sb://h/orders/$management/", "orders", Management(Active)),
            ("amqps://host:5671/orders", "orders", Store(Active)),
            ("amqp://host/a%2Fb", "a/b", Store(Active)),
            ("orders/$DeadLetterQueue", "orders", Store(DeadLetter)),
            (
                "sb://h/orders/$deadletterqueue/$management",
                "orders",
                Management(DeadLetter),
            ),
            ("orders/$management", "orders", Management(Active)),
            (
                "orders/$Transfer/$DeadLetterQueue",
                "orders",
                Store(TransferDeadLetter),
            ),
            (
                "orders/$transfer/$DEADLETTERQUEUE/$management",
                "orders",
                Management(TransferDeadLetter),
            ),
            ("$cbs", "", Cbs),
            ("amqps://host", "", Store(Active)),
            (
                "q/$deadletterqueue/$deadletterqueue",
                "q/$deadletterqueue",
                Store(DeadLetter),
            ),
        ] {
            let expected = Address {
                entity: entity.into(),
                destination,
            };
            assert_eq!(Address::parse(written), expected, "{written}");
        }
    }
}

//! Round trips of XML descriptions, for `tests/fuzz`: what is written must parse to the same.

use servicebus_broker::{EntityKind, Tier, Timestamp};
use servicebus_config::descriptions::{description_root, write_rule};

use super::describe::{KeyGenerator, View, Wanted, read_entity, read_rule};
use super::route::Query;
use super::time::Frame;
use crate::xml::{Element, Writer, read};

/// The frame of a namespace whose clock is the client's.
const FRAME: Frame = Frame { ahead: 0 };

/// Parses a rule, writes it and parses it again; returns whether it was a rule at all.
///
/// # Panics
///
/// If the two differ.
pub fn read_rule_again(body: &[u8]) -> bool {
    let rule_of = |body: &[u8]| {
        let tree = read(body).ok()?;
        read_rule(&tree, "r", None, Timestamp::from_millis(0)).ok()
    };
    let Some(rule) = rule_of(body) else {
        return false;
    };
    for in_feed in [false, true] {
        let mut out = Writer::new();
        write_rule(&rule, &FRAME.ticks(rule.created_at), in_feed, &mut out);
        let written = out.finish();
        assert_eq!(rule_of(written.as_bytes()), Some(rule.clone()), "{written}");
    }
    true
}

/// Parses an entity's description, writes it and parses it again; returns whether it was one at all.
///
/// # Panics
///
/// If the two differ.
pub fn read_entity_again(body: &[u8], kind: EntityKind, tier: Tier) -> bool {
    let Some(wanted) = wanted(body, kind, tier) else {
        return false;
    };
    let query = Query::parse("api-version=2024-05").unwrap_or_default();
    for in_feed in [false, true] {
        let mut out = Writer::new();
        let view = View::of_wanted(kind, wanted.clone(), tier);
        view.write(&query, FRAME, in_feed, &mut out);
        let written = out.finish();
        let again = self::wanted(written.as_bytes(), kind, tier);
        assert_eq!(
            again.map(|again| format!("{again:?}")),
            Some(format!("{wanted:?}")),
            "{written}"
        );
    }
    true
}

fn wanted(body: &[u8], kind: EntityKind, tier: Tier) -> Option<Wanted> {
    let tree: Element = read(body).ok()?;
    let keys = KeyGenerator { bits: &|| 7 };
    let is_one = tree.name == description_root(kind);
    is_one.then(|| read_entity(&tree, kind, None, tier, &keys).ok())?
}

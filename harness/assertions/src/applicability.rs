//! Detects assertions without meaning: a negative one that cannot fail, or one that waits for what never happens.

use crate::{
    Kind,
    assertion::Assertion,
    catalog::{Catalog, EntityKind, topic_and_name},
};

/// The message counts that a topic can have.
const HELD_BY_TOPICS: [&str; 3] = ["scheduled", "transfer", "transfer_dead_letter"];

impl Assertion {
    /// Returns why this cannot be asserted of an entity that exists: it does not support it.
    pub(crate) fn why_unsupported(&self, catalog: &Catalog) -> Option<String> {
        let (kind, path) = (self.address.kind(), self.address.owner_path());
        if kind == EntityKind::Topic && self.address.is_owner() {
            if self.concerns_receivers() {
                let why = "from which messages are received only through its subscriptions";
                return Some(of_topic(path, why, catalog));
            }
            let mut counts = self.counts.iter();
            let is_held_below = counts.any(|(name, _)| !HELD_BY_TOPICS.contains(name));
            if is_held_below || self.kind == Kind::Empty {
                let why = "whose messages are kept by its subscriptions, except scheduled ones and those that could not be forwarded";
                return Some(of_topic(path, why, catalog));
            }
        }
        let declared = catalog.find(kind, path)?;
        let needs_sessions = matches!(self.kind, Kind::SessionOrder | Kind::SessionState);
        let without_sessions = needs_sessions && !declared.requires_session;
        without_sessions.then(|| format!("{path} has no sessions: its RequiresSession is false"))
    }
}

fn of_topic(path: &str, why: &str, catalog: &Catalog) -> String {
    let names = catalog.of_kind(EntityKind::Subscription);
    let names = names.filter_map(|declared| topic_and_name(&declared.name));
    let own = names.filter(|(topic, _)| topic.eq_ignore_ascii_case(path));
    let listed = Vec::from_iter(own.map(|(_, name)| name)).join(", ");
    let listed = match listed.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has {listed}"),
    };
    format!("{path} is a topic, {why}; assert it of one of them: {listed}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{address::EntityAddress, catalog::EntitySettings};

    fn catalog() -> Catalog {
        let declared =
            |kind, name: &str| EntitySettings::of(kind, name.to_owned(), &Default::default());
        let declared = [
            declared(EntityKind::Queue, "orders"),
            declared(EntityKind::Topic, "prices"),
            declared(EntityKind::Subscription, "prices/Subscriptions/eu"),
            declared(EntityKind::Topic, "news"),
        ];
        declared.into_iter().collect()
    }

    fn applicability(kind: Kind, address: EntityAddress) -> Option<String> {
        Assertion::new(kind, address, Duration::ZERO).why_unsupported(&catalog())
    }

    #[test]
    fn receiver_assertions_are_refused_for_topics() {
        let prices = || EntityAddress::new(EntityKind::Topic, "prices".to_owned());
        let refused = "prices is a topic, from which messages are received only through its subscriptions; assert it of one of them: it has eu";
        for kind in [Kind::NotDelivered, Kind::Completed, Kind::NotDeadLettered] {
            assert_eq!(applicability(kind, prices()).as_deref(), Some(refused));
        }
        for kind in [Kind::Scheduled, Kind::MessageCount, Kind::UnsettledSends] {
            assert_eq!(applicability(kind, prices()), None);
        }
        let refused = "prices is a topic, whose messages are kept by its subscriptions, except scheduled ones and those that could not be forwarded; assert it of one of them: it has eu";
        assert_eq!(
            applicability(Kind::Empty, prices()).as_deref(),
            Some(refused)
        );
        let dead = prices().transfer_dead_letter_queue();
        assert_eq!(applicability(Kind::NotDelivered, dead), None);
        let news = EntityAddress::new(EntityKind::Topic, "news".to_owned());
        let refused = applicability(Kind::Attached, news).expect("a topic has no receivers");
        assert!(refused.ends_with("it has none"), "{refused}");
    }

    #[test]
    fn session_assertions_are_refused_without_sessions() {
        for kind in [Kind::SessionOrder, Kind::SessionState] {
            let orders = EntityAddress::new(EntityKind::Queue, "orders".to_owned());
            let refused = applicability(kind, orders);
            assert_eq!(
                refused.as_deref(),
                Some("orders has no sessions: its RequiresSession is false")
            );
        }
    }
}

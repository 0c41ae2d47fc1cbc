//! Deleted entities of JMS clients leave no memory.

use std::sync::Weak;

use servicebus_broker::Tier;

use super::*;
use crate::clock::tests::put_by_hand;
use crate::config::{NamespaceConfig, TopicConfig};
use crate::failures::Failures;
use crate::namespace::Ids;

const MANY: usize = 10_000;

/// A premium namespace with the topic `t`.
fn namespace() -> Arc<Namespace> {
    let mut config = NamespaceConfig::new("one");
    config.settings.tier = Tier::Premium;
    config.topics.push(TopicConfig {
        path: "t".parse().expect("it is legal"),
        description: EntityDescription::default(),
        subscriptions: Vec::new(),
    });
    let (_, real) = put_by_hand();
    Arc::new(Namespace::new(
        config,
        real,
        Some(1),
        false,
        Failures::default(),
    ))
}

fn topic(namespace: &Namespace) -> Arc<SharedEntity> {
    let topic = namespace.entity(&"t".parse().expect("it is legal"));
    topic.expect("it is there")
}

fn subscribe(namespace: &Arc<Namespace>, name: Option<&str>, ids: &mut Ids) -> LinkScope {
    let request = SubscriptionRequest {
        topic: &topic(namespace).path,
        name,
        affinity: ClientAffinity {
            client_id: "c".into(),
            is_durable: false,
            is_shared: name.is_some(),
            selector: Some("".into()),
        },
        filter: Filter::True,
        idle: None,
        may_manage: Ok(()),
        host: "localhost".to_owned(),
    };
    namespace
        .subscribe(request, |_| Ok(()), ids)
        .expect("it is made")
}

/// Returns the sizes of the state that is kept for deleted entities, apart from the names that timelines show.
fn kept(namespace: &Namespace, gone: &[Weak<SharedEntity>]) -> (usize, usize, usize) {
    let alive = gone.iter().filter(|entity| entity.upgrade().is_some());
    let consumed = namespace.jms_consumers.0.lock().len();
    (alive.count(), consumed, namespace.count_entities())
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_deleted_temporary_queues_leave_no_memory() {
    let (namespace, mut ids) = (namespace(), Ids::new(Some(1), 1));
    let mut gone = Vec::new();
    for _ in 0..MANY {
        let scope = namespace.create_temporary(EntityKind::Queue, &mut ids);
        let is_marked = |scope: &LinkScope| scope.entity.is_temporary();
        assert!(scope.as_ref().is_ok_and(is_marked));
        gone.push(Arc::downgrade(&scope.expect("there is room").entity));
    }
    assert_eq!(kept(&namespace, &gone), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_deleted_volatile_subscriptions_leave_no_memory() {
    let (namespace, mut ids) = (namespace(), Ids::new(Some(1), 1));
    let mut gone = Vec::new();
    for number in 0..MANY {
        let name = (number % 2 == 0).then_some("s");
        let first = subscribe(&namespace, name, &mut ids);
        let second = name.map(|_| subscribe(&namespace, name, &mut ids));
        gone.push(Arc::downgrade(&first.entity));
        drop(first);
        let is_there = gone[number]
            .upgrade()
            .is_some_and(|entity| !entity.is_deleted());
        assert_eq!(is_there, second.is_some(), "with its last consumer");
    }
    assert_eq!(kept(&namespace, &gone), (0, 0, 1));
    assert!(namespace.subscriptions(&topic(&namespace)).is_empty());
}

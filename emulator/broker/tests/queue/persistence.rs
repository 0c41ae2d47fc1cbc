//! The rows of an entity, and the entity restored from them.

use std::num::NonZeroU64;

use bytes::Bytes;
use servicebus_broker::{
    BodyId, Changes, ClientId, Entity, EntityKind, ReceiveMode, ReceiverId, RowKey, SessionName,
    SubQueue,
};

use crate::bus::{START, message, rules, secs};
use crate::world::{World, rule, sql};

const A: &str = "t/Subscriptions/a";

fn changes(world: &mut World) -> Option<Changes> {
    changes_of(world, "q")
}

fn changes_of(world: &mut World, name: &str) -> Option<Changes> {
    let mut last = 0;
    let mut next_body = || {
        last += 1;
        BodyId(NonZeroU64::new(last).expect("it is more than 0"))
    };
    world.operate(name, |entity, _| entity.take_changes(&mut next_body))
}

/// Whether a client waits for the changes; `None` without changes.
fn is_awaited(world: &mut World) -> Option<bool> {
    changes(world).map(|changes| changes.is_awaited)
}

#[test]
fn changes_other_than_the_last_use_are_awaited_by_clients() {
    let mut world = World::new();
    world.declare("q", rules());
    world.operate("q", |entity, _| entity.record_changes());
    assert_eq!(is_awaited(&mut world), Some(true), "the definition is new");
    assert_eq!(is_awaited(&mut world), None);
    world.advance(secs(1));
    assert!(world.receive("q").is_none());
    assert_eq!(is_awaited(&mut world), Some(false), "it was only used");
    world.send("q", "a");
    assert_eq!(is_awaited(&mut world), Some(true));
    world.update("q", |queue| queue.max_delivery_count = 3);
    assert_eq!(is_awaited(&mut world), Some(true));
    // A number that is given out has no row of its own.
    let mut transaction = world.transaction();
    let later = message("b").scheduled_at(START + secs(60));
    world
        .schedule_in(&mut transaction, "q", &[later])
        .expect("there is room");
    assert_eq!(is_awaited(&mut world), Some(true));
}

#[test]
fn a_refused_change_of_a_rule_stores_no_rules() {
    let mut world = World::topic(&[A]);
    world.operate("t", |entity, _| entity.record_changes());
    let mut stores_rules = |change: &mut dyn FnMut(&mut World) -> bool| {
        let is_changed = change(&mut world);
        let changes = changes_of(&mut world, "t");
        let has_rules = changes.is_some_and(|changes| changes.definition);
        (is_changed, has_rules)
    };
    let mut add = |world: &mut World| world.add_rule(A, rule("one", sql("a = 1"))).is_ok();
    let mut remove = |world: &mut World| world.remove_rule(A, "one").is_ok();
    assert_eq!(stores_rules(&mut add), (true, true));
    assert_eq!(stores_rules(&mut add), (false, false));
    assert_eq!(stores_rules(&mut remove), (true, true));
    assert_eq!(stores_rules(&mut remove), (false, false));
}

/// The queue `q` from its first changes.
fn restored(world: &World, changes: &Changes) -> Entity {
    let queue = world.entity("q");
    let (description, path) = (queue.description().clone(), queue.path().clone());
    let settings = rules().settings;
    let mut restored = Entity::new(
        EntityKind::Queue,
        queue.id(),
        path,
        description,
        &settings,
        START,
    );
    let mut gained = changes.gained.iter();
    for (key, row) in &changes.rows {
        let payload = match key {
            RowKey::Message(..) => {
                let gained = gained.next().expect("each message has a body");
                gained.bytes.clone().expect("it is written now")
            }
            RowKey::Counters | RowKey::Session(_) | RowKey::Seen(_) => Bytes::new(),
        };
        let row = row.as_deref().expect("nothing was removed");
        restored.restore(key, row, payload).expect("it was encoded");
    }
    restored
}

#[test]
fn many_messages_expire_at_their_own_instants_although_a_receiver_waited() {
    let mut world = World::new();
    world.declare("q", rules());
    world.operate("q", |entity, _| entity.record_changes());
    for _ in 0..6_000 {
        let brief = message("a").scheduled_at(START + secs(1));
        let brief = brief.time_to_live(secs(1));
        world.post("q", &brief).expect("there is room");
    }
    let receiver = ReceiverId(1);
    world.operate("q", |entity, cx| {
        entity.attach_receiver(SubQueue::Active, receiver, ReceiveMode::PeekLock);
        entity.set_credit(cx, SubQueue::Active, receiver, 1);
    });
    let changes = changes(&mut world).expect("all is new");
    let restored = restored(&world, &changes);
    world.now = START + secs(4);
    world.operate("q", |entity, cx| {
        *entity = restored;
        entity.recover(cx);
    });
    // So many take several steps.
    while world.operate("q", Entity::handle_timeout) > 0 {}
    assert_eq!(world.entity("q").counts(SubQueue::Active).active, 0);
}

#[test]
fn sessions_and_messages_are_restored_without_dropped_bodies() {
    let (client, session) = (ClientId(7), SessionName::new("s").expect("it fits"));
    let mut world = World::new();
    world.declare("q", rules().sessions());
    world.operate("q", |entity, _| entity.record_changes());
    let sent = message("a").session("s").body(10_000);
    world.post("q", &sent).expect("there is room");
    world.take_from_next_session("q").expect("there is one");
    let state = Some(Bytes::from_static(b"state"));
    world
        .operate("q", |entity, cx| {
            entity.set_session_state(cx, client, &session, state.clone())
        })
        .expect("the session is locked");
    let changes = changes(&mut world).expect("all is new");
    let gained = &changes.gained[0];
    world.operate("q", |entity, _| entity.drop_body(gained.place, gained.body));
    let (_, seen) = world.the_only("q", SubQueue::Active);
    assert_eq!(seen.missing(), Some(gained.body));

    let mut restored = restored(&world, &changes);
    assert_eq!(restored.counts(SubQueue::Active).active, 1);
    let damaged = restored.restore(&RowKey::Session("s".into()), b"short", Bytes::new());
    assert!(damaged.is_err());
    let long = "s".repeat(129);
    let damaged = restored.restore(&RowKey::Session(long.into()), &[0; 8], Bytes::new());
    assert!(damaged.is_err());
    world.operate("q", |entity, cx| {
        *entity = restored;
        entity.recover(cx);
    });
    world
        .take_from_next_session("q")
        .expect("its lock was lost");
    let read = world.operate("q", |entity, cx| entity.session_state(cx, client, &session));
    assert_eq!(read, Ok(state));
}

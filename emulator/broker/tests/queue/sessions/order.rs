//! Messages of a session are delivered in the order in which they were sent, even if some come back.
//!
//! A queue that requires sessions accepts only messages with a session; they may also come from topics and from other
//! queues.

use servicebus_broker::filter::Filter;
use servicebus_broker::{
    Entity, EntityDescription, EntityKind, Outcome, ReceiveMode, ReceiverId, SendError,
    SessionAccess, SubQueue, Tier,
};

use crate::bus::{START, ids, message, name, rules, secs, sessions};
use crate::world::{World, acting};

#[test]
fn an_abandoned_session_message_is_delivered_next() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let receiver = bus.accept("a");
    let first = bus.receive_one(receiver);
    bus.abandon(&first).unwrap();
    let again = bus.receive_one(receiver);
    assert_eq!(again.message.id(), "1");
    assert_eq!(again.broker_properties.delivery_count, 1);
}

#[test]
fn an_abandoned_session_message_precedes_reserved_ones() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let receiver = bus.accept_with_credit("a", 3);
    let first = bus.take_up_to(receiver, 1).remove(0);
    assert_eq!(bus.reserved(receiver), 2);
    bus.credit(receiver, 2);
    bus.abandon(&first).unwrap();
    assert_eq!(bus.reserved(receiver), 2, "there is no credit for more");
    assert_eq!(ids(&bus.take(receiver)), ["1", "2"]);
}

#[test]
fn a_released_session_message_is_next_without_counting() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    let both = bus.receive(receiver, 2);
    bus.release(&both[1]).unwrap();
    bus.release(&both[0]).unwrap();
    let again = bus.receive(receiver, 2);
    assert_eq!(ids(&again), ["1", "2"]);
    assert_eq!(again[0].broker_properties.delivery_count, 0);
}

#[test]
fn after_a_lost_lock_the_next_holder_gets_the_uncompleted_messages() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3", "4"]);
    let receiver = bus.accept_with_credit("a", 3);
    let taken = bus.take_up_to(receiver, 2);
    bus.complete(&taken[0]).unwrap();
    bus.advance(secs(60));
    let next = bus.accept("a");
    let again = bus.receive(next, 5);
    assert_eq!(ids(&again), ["2", "3", "4"]);
    let counts = again
        .iter()
        .map(|delivery| delivery.broker_properties.delivery_count);
    assert!(counts.eq([1, 0, 0]), "only what was taken was delivered");
}

#[test]
fn a_deferred_session_message_is_not_delivered() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    let first = bus.receive_one(receiver);
    bus.defer(&first).unwrap();
    assert_eq!(ids(&bus.receive(receiver, 5)), ["2"]);
}

#[test]
fn a_scheduled_session_message_is_ordered_by_its_activation() {
    let mut bus = sessions();
    let later = message("later").session("a");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    bus.send_to("a", "1");
    bus.advance(secs(10));
    bus.send_to("a", "2");
    let receiver = bus.accept("a");
    assert_eq!(ids(&bus.receive(receiver, 5)), ["1", "later", "2"]);
}

#[test]
fn a_scheduled_message_is_delivered_to_its_session_holder() {
    let mut bus = sessions();
    let later = message("later").session("a");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    let receiver = bus.accept_with_credit("a", 1);
    bus.advance(secs(10));
    assert_eq!(ids(&bus.take(receiver)), ["later"]);
}

#[test]
fn a_session_message_dead_lettered_at_the_limit_unblocks_the_next() {
    let mut bus = rules().sessions().max_delivery_count(2).bus();
    bus.send_all_to("a", &["bad", "good"]);
    let receiver = bus.accept("a");
    for _ in 0..2 {
        let bad = bus.receive_one(receiver);
        assert_eq!(bad.message.id(), "bad");
        bus.abandon(&bad).unwrap();
    }
    let good = bus.receive_one(receiver);
    assert_eq!(good.message.id(), "good");
    assert_eq!(bus.dead_letters(), ["bad"]);
}

#[test]
fn an_expired_session_message_unblocks_the_next() {
    let mut bus = sessions();
    let short = message("short").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.send_to("a", "long");
    let receiver = bus.accept_with_credit("a", 1);
    assert_eq!(bus.reserved(receiver), 1);
    bus.advance(secs(10));
    assert_eq!(ids(&bus.take(receiver)), ["long"], "its credit came back");
}

#[test]
fn sessions_of_a_partitioned_queue_have_one_partition_each() {
    let mut bus = rules().sessions().partitioned().bus();
    let numbers = bus.send_all_to("a", &["1", "2", "3"]);
    let partition = |number: u64| number >> 48;
    assert!(
        numbers
            .iter()
            .all(|n| partition(n.0) == partition(numbers[0].0))
    );
    let receiver = bus.accept("a");
    let taken = bus.receive(receiver, 5);
    assert_eq!(ids(&taken), ["1", "2", "3"]);
    bus.settle(SubQueue::Active, taken[0].token, Outcome::Release)
        .unwrap();
    assert_eq!(bus.receive_one(receiver).message.id(), "1");
}

#[test]
fn a_session_queue_refuses_a_message_without_session_id() {
    let mut bus = sessions();
    let later = message("1").scheduled_at(START + secs(10));
    for lacking in [message("1"), later] {
        assert_eq!(bus.post(&lacking), Err(SendError::NoSession));
    }
    let text = SendError::NoSession.to_string();
    let expected = "The SessionId was not set on a message, and it cannot be sent to the entity. Entities that have \
                    session support enabled can only receive messages that have the SessionId set to a valid value.";
    assert_eq!(text, expected);
    assert!(bus.history().is_empty());
}

#[test]
fn a_session_queue_refuses_a_batch_with_a_message_without_session_id() {
    let mut bus = sessions();
    let batch = [message("1").session("a"), message("2")];
    assert_eq!(bus.post_all(&batch), Err(SendError::NoSession));
    assert!(bus.queued().is_empty());
}

#[test]
fn a_batch_may_hold_messages_of_several_sessions() {
    let mut bus = sessions();
    let batch = [("1", "a"), ("2", "b"), ("3", "a")];
    let batch = batch.map(|(id, session)| message(id).session(session));
    bus.post_all(&batch).unwrap();
    let receiver = bus.accept("a");
    assert_eq!(ids(&bus.receive(receiver, 5)), ["1", "3"]);
}

#[test]
fn duplicates_are_found_across_sessions() {
    let mut bus = rules().sessions().duplicate_detection(secs(60)).bus();
    bus.send_to("a", "1");
    bus.send_to("b", "1");
    assert_eq!(bus.queued(), ["1"]);
    assert_eq!(bus.known_sessions(), ["a"]);
}

#[test]
fn properties_that_contradict_sessions_are_validation_errors() {
    let queue = EntityDescription {
        requires_session: true,
        forward_to: Some("next".parse().unwrap()),
        ..EntityDescription::default()
    };
    let texts = |problems: Vec<servicebus_broker::Problem>| {
        let texts = problems.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        texts(queue.problems(EntityKind::Queue, Tier::Standard)),
        [""; 0]
    );
    let basic = texts(queue.problems(EntityKind::Queue, Tier::Basic));
    let expected = "RequiresSession is true; allowed: false: the basic tier has no sessions";
    assert!(basic.iter().any(|text| text == expected), "{basic:?}");
    let fixed = "RequiresSession is false; allowed: true, as it was created";
    assert_eq!(
        texts(queue.fixed_problems(&EntityDescription::default())),
        [fixed]
    );
    let subscription = EntityDescription {
        requires_session: true,
        ..EntityDescription::default()
    };
    let changed = EntityDescription::default();
    assert_eq!(texts(subscription.fixed_problems(&changed)), [fixed]);
}

const A: &str = "t/Subscriptions/a";
const DEAD: SubQueue = SubQueue::DeadLetter;

fn topic() -> World {
    let mut world = World::topic(&[]);
    world.subscribe(A, |subscription| subscription.requires_session = true);
    world
}

fn sessions_of(world: &World, entity: &str) -> Vec<String> {
    let entity = world.entity(entity);
    let seen = entity.snapshot_sessions();
    seen.map(|session| session.name.to_string()).collect()
}

fn assert_dead_for_no_session(world: &World, entity: &str) {
    assert!(world.queued(entity).is_empty());
    let (_, message) = world.the_only(entity, DEAD);
    let text = |name| crate::bus::text(&message, name).unwrap();
    assert_eq!(text("DeadLetterReason"), "Session ID is null.");
    let description =
        "Session enabled entity doesn't allow a message whose session identifier is null.";
    assert_eq!(text("DeadLetterErrorDescription"), description);
}

#[test]
fn a_session_subscription_groups_messages_by_session() {
    let mut world = topic();
    for (id, session) in [("1", "a"), ("2", "b"), ("3", "a")] {
        world.post("t", &message(id).session(session)).unwrap();
    }
    assert_eq!(sessions_of(&world, A), ["a", "b"]);
    let mut taken = Vec::new();
    let id = ReceiverId(77);
    world.operate(A, |entity, cx| {
        let mode = ReceiveMode::ReceiveAndDelete;
        let wanted = name("a");
        entity
            .attach_session_receiver(cx, id, mode, Some(&wanted), SessionAccess::Exclusive)
            .unwrap();
        entity.set_credit(cx, SubQueue::Active, id, 10);
        entity.acquire(cx, SubQueue::Active, id, 10, usize::MAX, &mut taken);
    });
    assert_eq!(ids(&taken), ["1", "3"]);
    assert_eq!(world.queued(A), ["2"]);
}

#[test]
fn a_message_without_session_id_is_dead_lettered_in_the_subscription() {
    let mut world = topic();
    world.send("t", "1");
    assert_dead_for_no_session(&world, A);
}

#[test]
fn a_message_without_session_id_is_dead_lettered_in_the_target_queue() {
    let mut world = World::new();
    world.declare("sessions", rules().sessions());
    world.declare("first", rules().forward_to("sessions"));
    world.send("first", "1");
    assert_dead_for_no_session(&world, "sessions");
    world.post("first", &message("2").session("a")).unwrap();
    assert_eq!(sessions_of(&world, "sessions"), ["a"]);
}

#[test]
fn an_action_does_not_move_a_message_to_another_session_of_the_subscription() {
    let mut world = World::topic(&[]);
    let rules = [acting("r", Filter::True, "SET sys.SessionId = 'b'")];
    world.subscribe_by(A, |own| own.requires_session = true, rules);
    world.post("t", &message("1").session("a")).unwrap();
    assert_eq!(sessions_of(&world, A), ["a"]);
}

#[test]
fn a_deleted_entity_notifies_no_receiver_of_a_lost_session() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept_with_credit("a", 1);
    bus.take(receiver);
    bus.effects.clear();
    bus.operate(Entity::delete);
    assert!(bus.lost().is_empty());
    assert_eq!(bus.held(receiver), None);
    bus.close(receiver);
}

//! Messages come to sessions from topics and from other queues.

use servicebus_broker::filter::Filter;
use servicebus_broker::{Entity, ReceiveMode, ReceiverId, SessionAccess, SubQueue};

use crate::bus::{message, name, rules};
use crate::world::{World, acting};

const A: &str = "t/Subscriptions/a";
const DEAD: SubQueue = SubQueue::DeadLetter;

fn topic() -> World {
    let mut world = World::topic(&[]);
    world.subscribe(A, |subscription| subscription.requires_session = true);
    world
}

fn sessions(world: &World, entity: &str) -> Vec<String> {
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
fn a_subscription_sorts_the_messages_of_its_topic_by_session() {
    let mut world = topic();
    for (id, session) in [("1", "a"), ("2", "b"), ("3", "a")] {
        world.post("t", &message(id).session(session)).unwrap();
    }
    assert_eq!(sessions(&world, A), ["a", "b"]);
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
    assert_eq!(crate::bus::ids(&taken), ["1", "3"]);
    assert_eq!(world.queued(A), ["2"]);
}

#[test]
fn a_message_without_session_id_is_dead_lettered_in_the_subscription() {
    let mut world = topic();
    world.send("t", "1");
    assert_dead_for_no_session(&world, A);
}

#[test]
fn so_it_is_where_it_is_forwarded_to_a_queue() {
    let mut world = World::new();
    world.declare("sessions", rules().sessions());
    world.declare("first", rules().forward_to("sessions"));
    world.send("first", "1");
    assert_dead_for_no_session(&world, "sessions");
    world.post("first", &message("2").session("a")).unwrap();
    assert_eq!(sessions(&world, "sessions"), ["a"]);
}

#[test]
fn an_action_does_not_change_the_session_in_its_own_subscription() {
    let mut world = World::topic(&[]);
    let rules = [acting("r", Filter::True, "SET sys.SessionId = 'b'")];
    world.subscribe_by(A, |own| own.requires_session = true, rules);
    world.post("t", &message("1").session("a")).unwrap();
    assert_eq!(sessions(&world, A), ["a"]);
}

#[test]
fn a_deleted_entity_tells_no_receiver_that_a_session_is_lost() {
    let mut bus = crate::bus::sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept_with_credit("a", 1);
    bus.take(receiver);
    bus.effects.clear();
    bus.operate(Entity::delete);
    assert!(bus.lost().is_empty());
    assert_eq!(bus.held(receiver), None);
    bus.close(receiver);
}

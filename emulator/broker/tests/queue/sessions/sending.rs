//! A queue that requires sessions takes messages of sessions only.

use servicebus_broker::{EntityDescription, EntityKind, SendError, Tier};

use crate::bus::{START, ids, message, rules, secs, sessions};

#[test]
fn a_message_without_session_id_is_refused() {
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
fn so_is_a_batch_with_one_among_them() {
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
fn what_contradicts_sessions_is_a_problem() {
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

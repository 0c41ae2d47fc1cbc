//! Transactions where messages belong to sessions (semantics §6, §12).

use servicebus_broker::{
    CommitError, Delivery, ReceiverId, SendError, SettleError, SubQueue, TransactError,
};

use crate::bus::{message, rules, secs};
use crate::world::{World, abandon};

/// A queue with sessions and two messages of the same one, the first of them locked.
fn world() -> (World, Delivery, ReceiverId) {
    let mut world = World::new();
    world.declare("q", rules().sessions());
    for id in ["a", "b"] {
        world.post("q", &message(id).session("s")).unwrap();
    }
    let (locked, holder) = world.take_from_next_session("q").unwrap();
    (world, locked, holder)
}

#[test]
fn a_message_without_session_is_refused_at_once() {
    let (mut world, ..) = world();
    let mut transaction = world.transaction();
    let refused = world.post_in(&mut transaction, "q", &[message("x")]);
    assert_eq!(refused, Err(TransactError::Send(SendError::NoSession)));
    let refused = world.schedule_in(&mut transaction, "q", &[message("x")]);
    assert_eq!(refused, Err(TransactError::Send(SendError::NoSession)));
}

#[test]
fn what_is_settled_and_sent_in_a_session_happens_together_and_in_order() {
    let (mut world, locked, holder) = world();
    let mut transaction = world.transaction();
    let settled = world.settle_in(&mut transaction, "q", &locked, abandon());
    settled.unwrap();
    let sent = world.post_in(&mut transaction, "q", &[message("c").session("s")]);
    sent.unwrap();
    world.commit(transaction).unwrap();
    let store = SubQueue::Active;
    let mut taken = Vec::new();
    world.operate("q", |entity, cx| {
        entity.set_credit(cx, store, holder, 3);
        entity.acquire(cx, store, holder, 3, usize::MAX, &mut taken);
    });
    let ids: Vec<_> = taken.iter().map(|delivery| delivery.message.id()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(taken[0].broker_properties.delivery_count, 1);
}

#[test]
fn a_client_that_loses_the_session_commits_nothing() {
    let losses: [fn(&mut World, ReceiverId); 4] = [
        |world, _| world.advance(secs(60)),
        |world, id| {
            let store = SubQueue::Active;
            world.operate("q", |entity, cx| entity.detach_receiver(cx, store, id));
        },
        |world, _| {
            let session = servicebus_broker::SessionName::new("s").unwrap();
            assert!(world.operate("q", |entity, cx| entity.lose_session_lock(cx, &session)));
        },
        |world, _| world.update("q", |queue| queue.max_delivery_count = 5),
    ];
    for lose in losses {
        let (mut world, locked, holder) = world();
        let mut transaction = world.transaction();
        world.complete_in(&mut transaction, "q", &locked).unwrap();
        let sent = world.post_in(&mut transaction, "q", &[message("c").session("s")]);
        sent.unwrap();
        lose(&mut world, holder);
        let error = world.commit(transaction).unwrap_err();
        assert!(matches!(error, CommitError::LockLost { .. }), "{error:?}");
        assert_eq!(world.queued("q"), ["a", "b"]);
        let mut late = world.transaction();
        let refused = world.complete_in(&mut late, "q", &locked);
        let lost = TransactError::Settle(SettleError::SessionLockLost);
        assert_eq!(refused, Err(lost));
    }
}

#[test]
fn a_renewed_session_keeps_what_is_enlisted() {
    let (mut world, locked, _) = world();
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.advance(secs(50));
    let session = servicebus_broker::SessionName::new("s").unwrap();
    world
        .operate("q", |entity, cx| {
            entity.renew_session_lock(cx, servicebus_broker::ClientId(7), &session)
        })
        .unwrap();
    world.advance(secs(50));
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["b"]);
}

#[test]
fn what_passes_through_needs_no_session_and_belongs_to_none() {
    let (mut world, ..) = world();
    world.declare("out", rules());
    let mut transaction = world.transaction();
    let passing = [message("1"), message("2").session("s")];
    let sent = world.transfer_in(&mut transaction, "q", "out", &passing);
    sent.unwrap();
    let sent = world.transfer_in(&mut transaction, "q", "missing", &passing);
    sent.unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("out"), ["1", "2"]);
    assert_eq!(world.transfer_dead_letters("q"), ["1", "2"]);
    assert_eq!(world.queued("q"), ["a", "b"]);
}

#[test]
fn a_scheduled_message_joins_its_session_when_it_becomes_active() {
    let (mut world, ..) = world();
    let mut transaction = world.transaction();
    let later = message("c").session("other");
    let later = [later.scheduled_at(crate::bus::START + secs(30))];
    world.schedule_in(&mut transaction, "q", &later).unwrap();
    world.commit(transaction).unwrap();
    assert!(world.take_from_next_session("q").is_none());
    world.advance(secs(30));
    let (delivery, _) = world.take_from_next_session("q").unwrap();
    assert_eq!(delivery.message.id(), "c");
}

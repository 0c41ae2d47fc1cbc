//! Messages of clients that encode what they like: whatever is accepted is published, filtered and changed.

use proptest::prelude::*;
use servicebus_broker::filter::{Filter, Value};
use servicebus_broker::{Message, SubQueue};

use super::{A, B};
use crate::bus::{Counting, START, message};
use crate::world::{World, acting, rule, sql};

/// A message that has a bit of everything.
fn sample() -> Vec<u8> {
    let sent = message("id")
        .to("t")
        .label("l")
        .correlation_id("c")
        .content_type("x")
        .session("s")
        .scheduled_at(START)
        .partition_key("s")
        .property("a", &Value::Signed(1))
        .property("b", &Value::text("b"))
        .property("c", &Value::Float(1.5))
        .property("d", &Value::Guid(uuid()))
        .property("e", &Value::instant(0));
    sent.encoded().to_vec()
}

fn uuid() -> uuid::Uuid {
    uuid::Uuid::nil()
}

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_accepted_can_be_filtered_and_changed(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sample();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let Ok(message) = Message::parse(bytes.into(), &mut Counting(0)) else {
            return Ok(());
        };
        let mut world = World::topic(&[A]);
        let action = "SET a = b; SET fresh = c; REMOVE d; SET sys.Label = 'x'; SET sys.To = sys.Label; \
                      SET sys.PartitionKey = 'k'; REMOVE sys.ScheduledEnqueueTimeUtc";
        let filter = sql("sys.Label IS NOT NULL OR b LIKE 'b%' OR EXISTS(a) OR TRUE = TRUE");
        world.select(B, [acting("r", filter, action), rule("plain", Filter::True)]);
        world.operate("t", |entity, cx| entity.send(cx, message)).unwrap();
        if world.entity("t").counts(SubQueue::Active).scheduled == 0 {
            prop_assert_eq!(world.peek(A, SubQueue::Active).len(), 1);
            let copies = world.peek(B, SubQueue::Active);
            let dead = world.peek(B, SubQueue::DeadLetter);
            prop_assert!(copies.len() + dead.len() >= 1);
            for (broker_properties, copy) in copies.iter().chain(&dead) {
                copy.encode(broker_properties, 0, &mut Vec::new()).unwrap();
            }
        }
    }
}

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Waker};

use servicebus_broker::{EntityDescription, EntityPath, Message};

use super::*;
use crate::clock::tests::put_by_hand;
use crate::config::NamespaceConfig;
use crate::failures::Failures;
use crate::namespace::Ids;

const MINUTE: Duration = Duration::from_secs(60);

/// A namespace with a queue, in which messages expire after 10, 20 and 30 s.
fn namespace() -> Namespace {
    let path = EntityPath::of_address("q").expect("it is legal");
    let config = NamespaceConfig {
        queues: vec![(path.clone(), EntityDescription::default())],
        ..NamespaceConfig::new("one")
    };
    let (_, real) = put_by_hand();
    let namespace = Namespace::new(config, real, Some(1), false, Failures::default());
    let entity = namespace.entity(&path).expect("it is there");
    for seconds in [10_u32, 20, 30] {
        let mut bytes = vec![0x00, 0x53, 0x70, 0xc0, 0x08, 0x03, 0x40, 0x40, 0x70];
        bytes.extend((seconds * 1000).to_be_bytes());
        bytes.extend([0x00, 0x53, 0x75, 0xa0, 0x01, b'x']);
        let message = Message::parse(bytes.into(), &mut Ids::new(Some(1), 1)).expect("it is legal");
        let sent = namespace.operate_as_broker(&entity, |entity, cx| entity.send(cx, message));
        sent.expect("there is room");
    }
    namespace
}

#[tokio::test(start_paused = true)]
async fn an_advance_that_is_dropped_leaves_the_clock_where_it_came() {
    let namespace = namespace();
    let start = namespace.clock.now();
    {
        let mut walk = pin!(namespace.advance(MINUTE, u32::MAX));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(walk.as_mut().poll(&mut cx).is_pending());
        assert!(walk.as_mut().poll(&mut cx).is_pending());
    }
    let clock = namespace.clock.read();
    assert_eq!(clock.now.since(start), Duration::from_secs(20));
    assert!(!clock.frozen, "time flows as before");
    assert_eq!(
        namespace.advance(MINUTE, 1).await,
        Ok(()),
        "the third is left"
    );
    assert_eq!(
        namespace.clock.now().since(start),
        MINUTE + Duration::from_secs(20)
    );
}

#[tokio::test(start_paused = true)]
async fn an_advance_has_as_many_steps_as_it_is_given() {
    let namespace = namespace();
    let start = namespace.clock.now();
    namespace.freeze().await;
    let came = Duration::from_secs(20);
    assert_eq!(namespace.advance(MINUTE, 2).await, Err(came));
    assert_eq!(namespace.clock.now().since(start), came);
    assert!(namespace.clock.read().frozen, "time stands as before");
    assert_eq!(namespace.advance(MINUTE, 1).await, Ok(()));
}

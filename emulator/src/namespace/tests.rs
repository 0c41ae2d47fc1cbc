//! Namespaces and messages of unit tests.

use servicebus_broker::{EntityDescription, Message};

use super::*;
use crate::clock::tests::put_by_hand;

pub(crate) fn path(name: &str) -> EntityPath {
    EntityPath::of_address(name).expect("it is legal")
}

/// A namespace with these queues, without a task that watches its deadlines.
pub(crate) fn with_queues<N: AsRef<str>>(
    names: impl IntoIterator<Item = N>,
    description: &EntityDescription,
) -> Namespace {
    let queues = names.into_iter();
    let config = NamespaceConfig {
        queues: queues
            .map(|name| (path(name.as_ref()), description.clone()))
            .collect(),
        ..NamespaceConfig::new("one")
    };
    let (_, real) = put_by_hand();
    Namespace::new(config, real, Some(1), false, Failures::default())
}

/// The number of messages of a queue that can be received.
pub(crate) fn active(namespace: &Namespace, name: &str) -> usize {
    let entity = namespace.entity(&path(name)).expect("it is there");
    namespace.read(&entity, |entity| entity.counts(SubQueue::Active).active)
}

/// Sends a message with a time to live of so many seconds.
pub(crate) fn send_expiring(namespace: &Namespace, entity: &SharedEntity, seconds: u32) {
    let mut bytes = vec![0x00, 0x53, 0x70, 0xc0, 0x08, 0x03, 0x40, 0x40, 0x70];
    bytes.extend((seconds * 1000).to_be_bytes());
    bytes.extend([0x00, 0x53, 0x75, 0xa0, 0x01, b'x']);
    let message = Message::parse(bytes.into(), &mut Ids::new(Some(1), 1)).expect("it is legal");
    let sent = namespace.operate_as_broker(entity, |entity, cx| entity.send(cx, message));
    sent.expect("there is room");
}

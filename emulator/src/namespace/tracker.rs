//! What the tail of a refusal calls the place that it is about (semantics §20.2).

use servicebus_broker::{EntityKind, SubQueue};

use super::{Namespace, SharedEntity};

/// `namespace:Queue:path`, `namespace:Topic:path` or `namespace:Topic:path|subscription`, the address of a dead-letter
/// queue behind it; the namespace alone where no entity is meant.
pub(crate) fn system_tracker(
    namespace: Option<&Namespace>,
    place: Option<(&SharedEntity, SubQueue)>,
) -> String {
    let name = namespace.map_or("none", Namespace::name);
    let Some((entity, kind)) = place else {
        return name.to_owned();
    };
    let is_topic =
        |namespace: &Namespace| namespace.read(entity, |entity| entity.kind()) == EntityKind::Topic;
    let place = match entity.path.topic() {
        Some((topic, subscription)) => format!("Topic:{topic}|{subscription}"),
        None if namespace.is_some_and(is_topic) => format!("Topic:{}", entity.path),
        None => format!("Queue:{}", entity.path),
    };
    format!("{name}:{place}{}", kind.suffix())
}

//! How many requests wait for messages of an entity: bounded, the subscriptions of a topic together (semantics §1).

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use servicebus_broker::EntityPath;

use crate::nodes::{Condition, ServiceError};

/// The requests that wait, by namespace and by queue or topic.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Most of them at the same time on one entity.
    most: u32,
    counts: Mutex<BTreeMap<Place, u32>>,
}

type Place = (String, EntityPath);

/// A request that waits, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Turn {
    waiting: Arc<Waiting>,
    place: Place,
}

impl Waiting {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            counts: Mutex::default(),
        }
    }

    /// Lets a request wait for messages of `entity`, unless too many do already.
    pub(crate) fn enter(
        self: &Arc<Self>,
        namespace: &str,
        entity: &EntityPath,
    ) -> Result<Turn, ServiceError> {
        let counted = entity
            .topic()
            .map_or_else(|| entity.clone(), |(topic, _)| topic);
        let place = (namespace.to_owned(), counted);
        let most = self.most;
        let mut waiting = self.counts.lock();
        let count = waiting.entry(place.clone()).or_insert(0);
        if *count >= most {
            let text = format!(
                "The request was terminated because the entity is being throttled: {most} receive requests wait at \
                 '{}' already. Error code: 50009. Please wait 2 seconds and try again.",
                place.1
            );
            return Err(ServiceError::new(Condition::ServerBusy, text));
        }
        *count += 1;
        Ok(Turn {
            waiting: Arc::clone(self),
            place,
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let waiting = &self.waiting.counts;
        let mut waiting = waiting.lock();
        if let Some(count) = waiting.get_mut(&self.place) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_a_topic_are_counted_together_until_they_go() {
        const MOST: u32 = 10;
        let waiting = Arc::new(Waiting::new(MOST));
        let path = |text: &str| EntityPath::of_address(text).expect("a path");
        let enter = |namespace: &str, text: &str| waiting.enter(namespace, &path(text));
        let half = |name: &str| {
            (0..MOST / 2)
                .map(|_| enter("a", name).expect("room"))
                .collect()
        };
        let first: Vec<Turn> = half("t/Subscriptions/one");
        let second: Vec<Turn> = half("T/subscriptions/two");
        let refused = enter("a", "t/Subscriptions/three").expect_err("no room");
        assert_eq!(refused.condition, Condition::ServerBusy);
        assert!(
            enter("b", "t/Subscriptions/three").is_ok(),
            "another namespace"
        );
        assert!(enter("a", "q").is_ok(), "another entity");
        drop(first);
        assert!(enter("a", "t/Subscriptions/three").is_ok());
        drop(second);
        assert!(waiting.counts.lock().is_empty());
    }
}

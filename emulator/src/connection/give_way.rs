//! Who sends more than those who receive can take lets them go first.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::peer::Peer;
use crate::namespace::Entity;

/// Sends in one turn of a connection that does nothing else, from which on it may have to give way.
const FLOOD: usize = 64;
/// How long it waits for those who receive, once for each crowd: for those who take nothing as well.
const PATIENCE: Duration = Duration::from_millis(20);

impl Peer {
    /// Notes that so much was committed to an entity, where so many messages wait for those who receive.
    pub(super) fn crowd_in(&mut self, entity: &Arc<Entity>, committed: usize, waiting: usize) {
        let floods = committed >= FLOOD && self.consumers.is_empty();
        if floods && entity.crowd.begins(waiting) {
            self.crowds = Some(Arc::clone(entity));
        }
    }

    /// Waits for those who receive if this peer is to give way, and says whether it did.
    pub(super) async fn give_way(&mut self) -> bool {
        let (Some(entity), Some(namespace)) = (self.crowds.take(), &self.namespace) else {
            return false;
        };
        let mut relieved = pin!(namespace.relief.notified());
        relieved.as_mut().enable();
        if entity.crowd.is_there() {
            let _ = timeout(PATIENCE, relieved).await;
        }
        true
    }
}

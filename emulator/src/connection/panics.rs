//! A turn that panics ends its connection, which is told why, and nothing else.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::BytesMut;

use super::peer::ClientConnection;
use crate::failures::{Broken, told};
use crate::nodes::{Condition, ServiceError};

impl ClientConnection {
    /// One turn, as [`Peer::turn`]; none when it panicked. What the client is told then waits to be written.
    pub(super) fn turn_or_end(&mut self, input: &mut BytesMut) -> Option<usize> {
        match catch_unwind(AssertUnwindSafe(|| self.turn(input))) {
            Ok(unwritten) => Some(unwritten),
            Err(payload) => {
                self.end_broken(&*payload);
                None
            }
        }
    }

    fn end_broken(&mut self, payload: &(dyn Any + Send)) {
        let place = format!("connection {}", self.id.0);
        self.shared.namespaces.failures().add_panic(&place, payload);
        let text = match payload.downcast_ref::<Broken>() {
            Some(broken) => broken.to_string(),
            None => format!("the connection {}", told(payload)),
        };
        let error = ServiceError::new(Condition::InternalError, text);
        // Where the engine is what panicked, the client is not told.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let error = self.refuse(&error, None);
            self.engine.close(Some(error));
            self.engine.flush();
        }));
    }
}

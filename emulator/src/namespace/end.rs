//! The end of a namespace: nothing is in it any more, and whoever is connected goes.

use super::Namespace;

impl Namespace {
    /// Ends it for good; whatever still happens in it happens to nobody.
    pub(crate) fn end(&self) {
        self.registry.clear();
        self.router.dismiss();
        self.turns.notify_waiters();
    }
}

//! What must hold whatever the reference says: conclusions from the facts and effects alone.
use crate::history::{Place, Rules, Step};
use crate::world::World;
use servicebus_broker::ConsumerId;
use std::collections::BTreeSet;

#[derive(Debug)]
pub(crate) struct Ledger {
    /// Consumers that were told to take and have not.
    told: BTreeSet<ConsumerId>,
    /// Consumers that know that there is more, because they took less than there was.
    knowing: BTreeSet<ConsumerId>,
}

impl Ledger {
    pub(crate) fn new(_: &Rules) -> Self {
        Self {
            told: BTreeSet::new(),
            knowing: BTreeSet::new(),
        }
    }
    pub(crate) fn check(&mut self, step: &Step, world: &World, open: &[(Place, u64)]) {
        let _ = (step, world, open);
    }
}

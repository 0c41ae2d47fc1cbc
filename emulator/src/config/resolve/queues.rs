//! The queues of a namespace: names that are legal and different, and targets that are there.

use std::collections::{BTreeMap, BTreeSet};

use servicebus_broker::{EntityPath, QueueDescription, Tier};

use super::targets::missing_targets;
use super::{queue, report_taken};
use crate::config::document::QueueBlock;
use crate::config::reader::{Place, Places, Report};

/// A queue as its block describes it; one without a legal name has none.
struct Described {
    path: Option<EntityPath>,
    description: QueueDescription,
    places: Places,
}

/// The queues in the order of their declaration; of those with the same name the first.
pub(super) fn queues(
    report: &Report<'_>,
    blocks: Vec<QueueBlock>,
    tier: Tier,
) -> Vec<(EntityPath, QueueDescription)> {
    let mut seen: BTreeMap<EntityPath, Place> = BTreeMap::new();
    let mut all = Vec::new();
    for block in blocks {
        let QueueBlock { name, properties } = block;
        let path = name.as_ref().and_then(|name| queue::path(report, name));
        let base = QueueDescription::of_tier(tier);
        let description = queue::description(report, &properties, base, path.as_ref(), tier);
        if let (Some(path), Some(name)) = (&path, name) {
            match seen.get(path) {
                Some(first) => report_taken(report, &name.place, "entity", first),
                None => {
                    seen.insert(path.clone(), name.place);
                }
            }
        }
        all.push(Described {
            path,
            description,
            places: properties.places,
        });
    }
    report_missing_targets(report, &all);
    let queues = all.into_iter();
    let named = queues.filter_map(|queue| Some((queue.path?, queue.description)));
    named
        .filter(|(path, _)| seen.remove(path).is_some())
        .collect()
}

fn report_missing_targets(report: &Report<'_>, all: &[Described]) {
    let declared: BTreeSet<&EntityPath> =
        all.iter().filter_map(|queue| queue.path.as_ref()).collect();
    for queue in all {
        for problem in missing_targets(queue.path.as_ref(), &queue.description, &declared) {
            report.setting(&queue.places, problem);
        }
    }
}

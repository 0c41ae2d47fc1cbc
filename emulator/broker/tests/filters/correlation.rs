//! The index of correlation filters finds what a scan finds.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use servicebus_broker::filter::{CorrelationFilter, CorrelationIndex};

use crate::message;

const NAMES: [&str; 7] = ["sys.Label", "sys.To", "sys.MessageId", "a", "A b", "c", "B"];

/// A notation over few names and values; system properties are strings.
fn notation() -> impl Strategy<Value = String> {
    let value = select(vec![
        "'x'", "'y'", "1", "1i", "1.0", "1.5", "true", "null", "nan", "at:1",
    ]);
    let names = subsequence(NAMES.to_vec(), 0..4);
    names.prop_flat_map(move |names| {
        proptest::collection::vec(value.clone(), names.len()).prop_map(move |values| {
            let pairs = names.iter().zip(values).map(|(name, value)| {
                let value = if name.starts_with("sys.") && !value.starts_with('\'') {
                    "'x'"
                } else {
                    value
                };
                format!("{name}={value}")
            });
            pairs.collect::<Vec<_>>().join(", ")
        })
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_a_scan_finds(
        filters in proptest::collection::vec((notation(), any::<bool>()), 0..40),
        messages in proptest::collection::vec(notation(), 1..10),
    ) {
        let mut index = CorrelationIndex::new();
        let filters: Vec<_> = filters
            .iter()
            .map(|(notation, stays)| (CorrelationFilter::new(message::correlation(notation)), *stays))
            .collect();
        for (place, (filter, _)) in filters.iter().enumerate() {
            index.insert(filter, place);
        }
        for (place, (filter, stays)) in filters.iter().enumerate() {
            if !stays {
                index.remove(filter, &place);
            }
        }
        for notation in messages {
            let sample = message::sample(&notation);
            let properties = sample.properties();
            let mut found = Vec::new();
            index.matching(&properties, |&place| found.push(place));
            found.sort_unstable();
            let scanned: Vec<_> = filters.iter().enumerate().filter(|(_, (filter, stays))| *stays && filter.matches(&properties)).map(|(place, _)| place).collect();
            prop_assert_eq!(found, scanned, "{}", notation);
        }
    }
}

#[test]
fn an_index_that_is_emptied_holds_nothing() {
    let filter = |notation: &str| CorrelationFilter::new(message::correlation(notation));
    let filters = ["a=1", "a=1, b=2", "a=2", "sys.To='x'", "-", "a=null"].map(filter);
    let mut index = CorrelationIndex::new();
    let empty = format!("{index:?}");
    for (place, filter) in filters.iter().enumerate() {
        index.insert(filter, place);
        // The same filter of another subscription.
        index.insert(filter, place + 100);
    }
    for (place, filter) in filters.iter().enumerate() {
        index.remove(filter, &place);
    }
    let sample = message::sample("a=1, b=2, sys.To='x'");
    let mut found = Vec::new();
    index.matching(&sample.properties(), |&place| found.push(place));
    found.sort_unstable();
    assert_eq!(found, [100, 101, 103, 104]);
    for (place, filter) in filters.iter().enumerate() {
        index.remove(filter, &(place + 100));
        index.remove(filter, &(place + 100));
    }
    assert_eq!(format!("{index:?}"), empty);
}

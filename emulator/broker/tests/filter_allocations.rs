//! The common forms of filters are evaluated without allocating.

use std::alloc::System as Heap;

use cap::Cap;
use servicebus_broker::IdSource;
use servicebus_broker::filter::{
    Correlation, CorrelationFilter, CorrelationIndex, Parameters, Properties, Sections, SqlFilter,
    System, Truth,
};
use servicebus_codec::Writer;

#[global_allocator]
static HEAP: Cap<Heap> = Cap::new(Heap, usize::MAX);

const ROUNDS: usize = 10_000;

struct NoIds;

impl IdSource for NoIds {
    fn next(&mut self) -> u64 {
        0
    }
}

fn application() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    out.descriptor(0x74);
    let mark = out.begin_map();
    out.string("a");
    out.string("x");
    out.string("b");
    out.long(5);
    out.end(mark, 4);
    bytes
}

/// Asserts that a repeated operation allocates less than a byte each time.
fn without_allocating(name: &str, mut what: impl FnMut()) {
    let before = HEAP.total_allocated();
    (0..ROUNDS).for_each(|_| what());
    let allocated = HEAP.total_allocated() - before;
    // The test harness has threads of its own.
    assert!(
        allocated < ROUNDS,
        "{name}: {allocated} bytes in {ROUNDS} rounds"
    );
}

#[test]
fn common_filters_evaluate_without_allocation() {
    let application = application();
    let sections = Sections {
        application: &application,
        ..Sections::default()
    };
    let system = System {
        dead_letter_source: Some("q"),
        ..System::default()
    };
    let properties = Properties::decode(&sections, &system).unwrap();
    for text in [
        "a = 'x' AND b > 3",
        "A = 'x' OR missing = 1",
        "NOT a <> 'x' AND b IS NOT NULL AND EXISTS(b)",
        "a IN ('w', 'x') AND b NOT IN (1, 2)",
        "a LIKE '%x%' AND a NOT LIKE 'b_'",
        "b * 2 + 1 = 11 AND -b < b / 2.0",
        "property('a') = 'x' AND sys.DeadLetterSource = 'q'",
    ] {
        let filter = SqlFilter::parse(text, Parameters::new()).unwrap();
        without_allocating(text, || {
            assert_eq!(
                filter.evaluate(&properties, &mut NoIds).unwrap(),
                Truth::True,
                "{text}"
            );
        });
    }
    let filter = CorrelationFilter::new(Correlation {
        properties: vec![("a".into(), "x".into()), ("b".into(), 5.into())],
        ..Correlation::default()
    });
    let mut index = CorrelationIndex::new();
    index.insert(&filter, 1);
    without_allocating("correlation", || {
        let mut found = 0;
        index.matching(&properties, |owner| found += owner);
        assert_eq!(found, 1);
    });
}

//! Every line of the table of actions, and the results of rules.
//!
//! Also that the index of correlation filters finds what a scan finds.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use servicebus_broker::Timestamp;
use servicebus_broker::filter::{
    Action, CorrelationFilter, CorrelationIndex, Edits, Encoded, Filter, Parameters, Rule,
    SqlFilter, Target,
};

use crate::message;
use crate::message::Ids;
use crate::table::{agrees, lines};

#[test]
fn actions_have_the_results_of_the_table() {
    let mut wrong = Vec::new();
    for (number, columns) in lines("actions.txt", 4) {
        let [text, notation, expected, _] = &columns[..] else {
            unreachable!()
        };
        let found = outcome(text, notation);
        let agreed = match &found {
            Ok(found) => !expected.starts_with("error ") && *found == notated(expected),
            Err(error) => agrees(error, expected),
        };
        if !agreed {
            wrong.push(format!("actions.txt:{number}: {text} | {notation}\n    expected {expected}\n    found    {found:?}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A name with its scope, and the encoded value if there is one.
type Change = (String, Option<Encoded>);

fn outcome(text: &str, notation: &str) -> Result<Vec<Change>, String> {
    let sample = message::sample(notation);
    let action = Action::parse(text, sample.parameters.clone());
    let action =
        action.map_err(|error| format!("syntax {} {}", error.offset(), error.problem()))?;
    let edits = action.edits(&sample.properties(), &mut Ids::default());
    Ok(changes(&edits.map_err(|error| format!("error {error}"))?))
}

fn changes(edits: &Edits) -> Vec<Change> {
    let name = |target: &Target| match target {
        Target::System(property) => format!("sys.{}", property.name()),
        Target::User(name) => name.to_string(),
    };
    edits
        .iter()
        .map(|edit| (name(edit.target()), edit.encoded().cloned()))
        .collect()
}

/// The expected changes: `-name` removes.
fn notated(expected: &str) -> Vec<Change> {
    let parts = expected
        .split(", ")
        .map(|part| match part.strip_prefix('-') {
            Some(name) => (name.to_owned(), None),
            None => {
                let (name, value) = message::entries(part).remove(0);
                (name, Some(Encoded::from_amqp(&value).unwrap()))
            }
        });
    parts.collect()
}

fn rule(filter: &str, action: Option<&str>) -> Rule {
    Rule {
        name: "the rule".into(),
        filter: Filter::Sql(SqlFilter::parse(filter, Parameters::new()).unwrap()),
        action: action.map(|text| Action::parse(text, Parameters::new()).unwrap()),
        created_at: Timestamp::from_millis(0),
    }
}

#[test]
fn the_copy_of_an_acting_rule_carries_its_name() {
    let sample = message::sample("rulename='old'");
    let (properties, mut ids) = (sample.properties(), Ids::default());
    assert!(rule("1=1", None).edits(&properties, &mut ids).is_none());
    let edits = rule("1=1", Some("SET a = 1"))
        .edits(&properties, &mut ids)
        .unwrap()
        .unwrap();
    assert_eq!(changes(&edits), notated("a=1, rulename='the rule'"));
    let edits = rule("1=1", Some("SET RuleName = 'x'"))
        .edits(&properties, &mut ids)
        .unwrap()
        .unwrap();
    assert_eq!(changes(&edits), notated("rulename='the rule'"));
}

#[test]
fn errors_name_the_rule_the_expression_and_the_operands() {
    let sample = message::sample("a='x', b=2");
    let (properties, mut ids) = (sample.properties(), Ids::default());
    let error = rule("a * b > 1", None)
        .matches(&properties, &mut ids)
        .unwrap_err();
    assert_eq!(error.reason(), "FilterException");
    assert_eq!(
        error.to_string(),
        "Rule 'the rule' failed in its filter 'a * b > 1': a * b: operator '*' cannot be applied to \
         'x' (a string) and 2 (a whole number)."
    );
    let failing = rule("1=1", Some("SET c = b / 0"));
    let error = failing.edits(&properties, &mut ids).unwrap().unwrap_err();
    assert_eq!(error.reason(), "RuleActionException");
    assert_eq!(
        error.to_string(),
        "Rule 'the rule' failed in its action 'SET c = b / 0': b / 0: 2 is divided by zero."
    );
}

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
    fn the_correlation_index_finds_the_filters_a_scan_finds(
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
fn an_emptied_correlation_index_equals_a_new_one() {
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

//! Every line of the table of actions, and what rules make of them.

use servicebus_broker::Timestamp;
use servicebus_broker::filter::{
    Action, Edits, Encoded, Filter, Parameters, Rule, SqlFilter, Target,
};

use crate::message::{self, Ids};
use crate::table::{agrees, lines};

#[test]
fn actions_are_as_the_table_says() {
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

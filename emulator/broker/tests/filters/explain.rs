//! Explanations name the first part that was not true, with its values.

use servicebus_broker::Timestamp;
use servicebus_broker::filter::{
    Action, CorrelationFilter, Filter, Outcome, Parameters, Rule, SqlFilter, Truth, explain,
};

use crate::message::{self, Ids};

fn rule(filter: Filter, action: Option<&str>) -> Rule {
    Rule {
        name: "r".into(),
        filter,
        action: action.map(|text| Action::parse(text, Parameters::new()).unwrap()),
        created_at: Timestamp::from_millis(0),
    }
}

fn outcome(rule: &Rule, notation: &str) -> Outcome {
    let sample = message::sample(notation);
    explain([rule], &sample.properties(), &mut Ids::default())
        .remove(0)
        .outcome
}

/// Expression, truth and values of why a SQL filter does not match.
fn reason(filter: &str, notation: &str) -> (String, Truth, Vec<String>) {
    let parameters = message::sample(notation).parameters;
    let rule = rule(
        Filter::Sql(SqlFilter::parse(filter, parameters).unwrap()),
        None,
    );
    let Outcome::NotMatched(reason) = outcome(&rule, notation) else {
        panic!("{filter} on {notation}: {:?}", outcome(&rule, notation));
    };
    let values = reason
        .values
        .into_iter()
        .map(|(name, value)| format!("{name}: {value}"));
    (reason.expression, reason.truth, values.collect())
}

/// A filter, a message, and the explained part, its truth and its values.
const TABLE: &str = "\
    a = 'x' AND b > 3 | a='x', b=2 | b > 3 | False | b: 2 (a whole number)
    a = 'x' AND b > 3 | a='x', b='5' | b > 3 | Unknown | b: '5' (a string)
    a = 'x' AND b > 3 | a='x' | b > 3 | Unknown | b: does not exist
    a = 'x' AND b > 3 | b=1 | a = 'x' | Unknown | a: does not exist
    a = 1 OR b = 2 | a=2, b=3 | a = 1 | False | a: 2 (a whole number)
    a = 1 AND (b = 1 OR (c = 1 AND d = 1)) | a=1, b=2 | b = 1 | False | b: 2 (a whole number)
    NOT (a = 1 OR b = 2) | a=1, b=1.5 | NOT (a = 1 OR b = 2) | False | \
        a: 1 (a whole number); b: 1.5 (a floating-point number)
    NOT a = 1 | - | NOT a = 1 | Unknown | a: does not exist
    sys.Label LIKE 'x%' | - | sys.Label LIKE 'x%' | Unknown | sys.Label: not set
    a + b > @p | a=1, b=2, @p=7 | a + b > @p | False | \
        a + b: 3 (a whole number); a: 1 (a whole number); b: 2 (a whole number); @p: 7 (a whole number)
    a IN (1, b) | a=3 | a IN (1, b) | Unknown | a: 3 (a whole number); b: does not exist
    color = \"red\" | color='red' | color = red | Unknown | color: 'red' (a string); red: does not exist
    EXISTS(a) | - | EXISTS (a) | False | a: does not exist
    a IS NOT NULL | a=null | a IS NOT NULL | False | a: null
    p(a) = 1 | a='b' | property(a) = 1 | Unknown | property(a): null; a: 'b' (a string)";

#[test]
fn an_explanation_names_the_first_part_that_is_not_true() {
    for line in TABLE.lines() {
        let [filter, notation, expression, truth, values] =
            line.trim().split(" | ").collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let (named, found, shown) = reason(filter, notation);
        assert_eq!(named, expression, "{line}");
        assert_eq!(format!("{found:?}"), truth, "{line}");
        assert_eq!(shown.join("; "), values, "{line}");
    }
}

#[test]
fn every_kind_of_rule_has_an_explanation() {
    let filter = CorrelationFilter::new(message::correlation("sys.Label='x', a='2'"));
    let correlation = rule(Filter::Correlation(filter), None);
    assert_eq!(
        outcome(&correlation, "sys.Label='x', a='2'"),
        Outcome::Matched
    );
    let Outcome::NotMatched(reason) = outcome(&correlation, "sys.Label='x', a=2") else {
        panic!()
    };
    assert_eq!(reason.expression, "a = '2' (a string)");
    assert_eq!(
        reason.values,
        [("a".to_owned(), "2 (a whole number)".to_owned())]
    );

    assert_eq!(outcome(&rule(Filter::True, None), "-"), Outcome::Matched);
    assert!(matches!(
        outcome(&rule(Filter::False, None), "-"),
        Outcome::NotMatched(_)
    ));
    assert!(matches!(
        outcome(&Rule::default_rule(Timestamp::from_millis(0)), "-"),
        Outcome::Matched
    ));

    let failing = rule(Filter::True, Some("SET a = 1 / 0"));
    let Outcome::Failed(error) = outcome(&failing, "-") else {
        panic!()
    };
    assert_eq!(error.reason(), "RuleActionException");
    let failing = rule(
        Filter::Sql(SqlFilter::parse("1/0 = 1", Parameters::new()).unwrap()),
        None,
    );
    let Outcome::Failed(error) = outcome(&failing, "-") else {
        panic!()
    };
    assert_eq!(error.reason(), "FilterException");
}

//! Random syntax trees: printing and parsing gives the same tree, and evaluation agrees with a naive evaluator.

mod naive;
mod random;

use proptest::prelude::*;

use super::ast::Condition;
use super::error::EvaluationError;
use super::eval::Evaluator;
use super::operators::Truth;
use super::parser;
use super::parser::Parameters;
use super::properties::{Properties, Sections};
use super::system::System;
use super::value::{Encoded, Value};
use crate::ids::IdSource;

struct NoIds;

impl IdSource for NoIds {
    fn next(&mut self) -> u64 {
        panic!("the trees do not call newid()")
    }
}

/// The parameters that the trees may name.
fn parameters() -> Parameters {
    let mut parameters = Parameters::new();
    parameters.add("p", Encoded::from(2));
    parameters.add("@q", Encoded::from("x"));
    parameters
}

fn evaluate(
    condition: &Condition,
    properties: &Properties<'_>,
) -> Result<Truth, Box<EvaluationError>> {
    Evaluator {
        properties,
        edits: None,
        ids: &mut NoIds,
        is_selector: false,
    }
    .truth(condition)
}

/// Encodes application properties with these names and values.
fn section(entries: &[(&str, Value<'static>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = servicebus_codec::Writer::new(&mut bytes);
    out.descriptor(0x74);
    let mark = out.begin_map();
    for (name, value) in entries {
        out.string(name);
        out.raw(Encoded::from(value).as_amqp());
    }
    out.end(mark, entries.len() as u32 * 2);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_printed_condition_parses_to_itself(condition in random::condition()) {
        let text = condition.to_string();
        prop_assume!(text.encode_utf16().count() <= super::MAX_LENGTH);
        match parser::condition(&text, &parameters()) {
            Ok(read) => prop_assert_eq!(read, condition, "{}", text),
            Err(error) => prop_assert!(false, "{}\n{}", error, error.excerpt()),
        }
    }

    #[test]
    fn printed_statements_parse_to_themselves(statements in random::statements()) {
        let texts: Vec<_> = statements.iter().map(ToString::to_string).collect();
        let text = texts.join("; ");
        prop_assume!(text.encode_utf16().count() <= super::MAX_LENGTH);
        match parser::statements(&text, &parameters()) {
            Ok(read) => prop_assert_eq!(read, statements, "{}", text),
            Err(error) => prop_assert!(false, "{}\n{}", error, error.excerpt()),
        }
    }

    #[test]
    fn evaluation_equals_that_of_a_naive_evaluator(
        condition in random::condition(),
        message in random::message(),
    ) {
        let encoded = section(&message);
        let sections = Sections { application: &encoded, ..Sections::default() };
        let properties = Properties::decode(&sections, &System::default()).unwrap();
        let found = evaluate(&condition, &properties).map_err(drop);
        prop_assert_eq!(found, naive::truth(&condition, &message), "{}", condition);
    }
}

//! Every line of the tables of conditions.

use std::path::PathBuf;

use servicebus_broker::filter::{
    Action, CorrelationFilter, CorrelationIndex, Parameters, SqlFilter, SyntaxError, Truth,
};

use crate::message::{self, Ids};

/// The lines of a table, split into its columns; comments are left out.
pub(crate) fn lines(name: &str, columns: usize) -> Vec<(usize, Vec<String>)> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../fixtures/filters", name]
        .iter()
        .collect();
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#'));
    rows.map(|(number, line)| {
        let mut parts: Vec<String> = line.rsplitn(columns, " | ").map(str::to_owned).collect();
        parts.reverse();
        assert_eq!(parts.len(), columns, "{name}:{}: {line}", number + 1);
        assert!(
            !parts[columns - 1].trim().is_empty(),
            "{name}:{}: a line needs a reason",
            number + 1
        );
        (number + 1, parts)
    })
    .collect()
}

const CONDITIONS: [&str; 11] = [
    "arithmetic.txt",
    "comparisons.txt",
    "documented.txt",
    "functions.txt",
    "like.txt",
    "lists.txt",
    "logic.txt",
    "missing.txt",
    "names.txt",
    "system.txt",
    "literals.txt",
];

#[test]
fn conditions_have_the_results_of_the_tables() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for table in CONDITIONS {
        for (number, columns) in lines(table, 4) {
            let [expression, notation, expected, _] = &columns[..] else {
                unreachable!()
            };
            count += 1;
            let found = outcome(expression, notation);
            if !agrees(&found, expected) {
                wrong.push(format!("{table}:{number}: {expression} | {notation}\n    expected {expected}\n    found    {found}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= 400, "the table has only {count} lines");
}

#[test]
fn selectors_have_the_results_of_the_table_also_as_filters() {
    let mut wrong = Vec::new();
    for (number, columns) in lines("selectors.txt", 4) {
        let [selector, notation, expected, _] = &columns[..] else {
            unreachable!()
        };
        let sample = message::sample(notation);
        let read = SqlFilter::selector(selector);
        if let Ok(read) = &read
            && let Err(error) = SqlFilter::parse(read.text(), Parameters::new())
        {
            wrong.push(format!(
                "{number}: {selector} becomes {}: {error}",
                read.text()
            ));
        }
        let found = evaluated(read, &sample);
        if !agrees(&found, expected) {
            wrong.push(format!(
                "{number}: {selector} | {notation}: {found}, not {expected}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn outcome(expression: &str, notation: &str) -> String {
    let sample = message::sample(notation);
    evaluated(
        SqlFilter::parse(expression, sample.parameters.clone()),
        &sample,
    )
}

fn evaluated(read: Result<SqlFilter, SyntaxError>, sample: &message::Sample) -> String {
    let filter = match read {
        Ok(filter) => filter,
        Err(error) => return format!("syntax {} {}", error.offset(), error.problem()),
    };
    match filter.evaluate(&sample.properties(), &mut Ids::default()) {
        Ok(Truth::True) => "true".to_owned(),
        Ok(Truth::False) => "false".to_owned(),
        Ok(Truth::Unknown) => "unknown".to_owned(),
        Err(error) => format!("error {error}"),
    }
}

/// Expectations that begin with `error` or `syntax` must contain the rest.
pub(crate) fn agrees(found: &str, expected: &str) -> bool {
    if let Some(part) = expected.strip_prefix("error ") {
        return found.starts_with("error ") && found.contains(part);
    }
    match expected.strip_prefix("syntax ") {
        Some(rest) => {
            let (offset, part) = rest
                .split_once(' ')
                .expect("an offset and a part of the text");
            found.starts_with(&format!("syntax {offset} ")) && found.contains(part)
        }
        None => found == expected,
    }
}

#[test]
fn sibling_parentheses_do_not_add_to_the_nesting_depth() {
    let filter = vec!["(a = 1)"; 80].join(" AND ");
    assert_eq!(outcome(&filter, "a=1"), "true");
}

#[test]
fn malformed_filters_are_refused_with_position_and_reason() {
    malformed("malformed.txt", |text| {
        SqlFilter::parse(text, Parameters::new()).map(drop)
    });
}

#[test]
fn malformed_actions_are_refused_with_position_and_reason() {
    malformed("malformed_actions.txt", |text| {
        Action::parse(text, Parameters::new()).map(drop)
    });
}

fn malformed(table: &str, parse: impl Fn(&str) -> Result<(), SyntaxError>) {
    let mut wrong = Vec::new();
    for (number, columns) in lines(table, 4) {
        let [expression, offset, expected, _] = &columns[..] else {
            unreachable!()
        };
        let text = expression.replace("\\n", "\n");
        let found = match parse(&text) {
            Ok(()) => "no error".to_owned(),
            Err(error) => format!("{} | {}", error.offset(), error.problem()),
        };
        let agrees = found
            .split_once(" | ")
            .is_some_and(|(place, problem)| place == offset && problem.contains(expected));
        if !agrees {
            wrong.push(format!("{table}:{number}: {expression}\n    expected {offset} | {expected}\n    found    {found}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} lines:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn correlation_filters_have_the_results_of_the_table_also_by_index() {
    let mut wrong = Vec::new();
    for (number, columns) in lines("correlation.txt", 4) {
        let [filter, notation, expected, _] = &columns[..] else {
            unreachable!()
        };
        let sample = message::sample(notation);
        let properties = sample.properties();
        let filter = CorrelationFilter::new(message::correlation(filter));
        let mut index = CorrelationIndex::new();
        index.insert(&filter, ());
        let mut found = 0;
        index.matching(&properties, |()| found += 1);
        let expected = expected == "true";
        if filter.matches(&properties) != expected || found != usize::from(expected) {
            wrong.push(format!(
                "{number}: {columns:?}: alone {}, by index {found}",
                filter.matches(&properties)
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

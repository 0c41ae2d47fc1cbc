//! Limits and hostile texts: bounded time, memory and depth. A test without its bound would not end.

use servicebus_broker::filter::{
    Action, Fault, MAX_DEPTH, MAX_LENGTH, MAX_STATEMENTS, Parameters, Problem, SqlFilter,
    SyntaxError, Truth,
};

use crate::message;
use crate::message::Ids;

fn parse(text: &str) -> Result<SqlFilter, SyntaxError> {
    SqlFilter::parse(text, Parameters::new())
}

fn problem(text: &str) -> Problem {
    parse(text).unwrap_err().problem().clone()
}

#[test]
fn a_text_has_at_most_1024_utf_16_units() {
    let filter = |length: usize| format!("a = '{}'", "ä".repeat(length - 6));
    assert!(parse(&filter(MAX_LENGTH)).is_ok());
    assert_eq!(
        problem(&filter(MAX_LENGTH + 1)),
        Problem::TooLong {
            length: MAX_LENGTH + 1
        }
    );
    let emoji = |count: usize| format!("a = '{}'", "😀".repeat(count));
    assert!(parse(&emoji(509)).is_ok());
    assert_eq!(problem(&emoji(510)), Problem::TooLong { length: 1026 });
    let action = |length: usize| format!("SET a = '{}'", "x".repeat(length - 10));
    assert!(Action::parse(&action(MAX_LENGTH), Parameters::new()).is_ok());
    assert!(Action::parse(&action(MAX_LENGTH + 1), Parameters::new()).is_err());
}

#[test]
fn a_filter_of_64_mib_is_refused_without_keeping_its_text() {
    let error = parse(&"(".repeat(64 << 20)).unwrap_err();
    assert_eq!(error.problem(), &Problem::TooLong { length: 64 << 20 });
    assert_eq!(error.offset(), 0);
    assert!(error.excerpt().len() < 10 && error.to_string().len() < 100);
}

#[test]
fn nesting_is_bounded_in_every_form() {
    for (open, inner, close) in [
        ("(", "a=1", ")"),
        ("NOT ", "a=1", ""),
        ("NOT(", "a=1", ")"),
        ("1=(", "1", ")"),
        ("1=-", "b", ""),
        ("1=p(", "'a'", ")"),
    ] {
        let (prefix, open) = open
            .strip_prefix("1=")
            .map_or(("", open), |open| ("1=", open));
        let nested = |depth: usize| {
            format!(
                "{prefix}{}{inner}{}",
                open.repeat(depth),
                close.repeat(depth)
            )
        };
        let levels = if open == "NOT(" {
            MAX_DEPTH / 2
        } else {
            MAX_DEPTH
        };
        let text = nested(levels);
        assert!(parse(&text).is_ok(), "{text}: {:?}", parse(&text));
        let text = nested(levels + 1);
        assert_eq!(problem(&text), Problem::TooDeep, "{text}");
        assert_eq!(
            problem(&format!("{prefix}{}", open.repeat(1000 / open.len()))),
            Problem::TooDeep
        );
    }
}

#[test]
fn an_action_has_at_most_32_statements() {
    let action = |count: usize| Action::parse(&"SET a = 1;".repeat(count), Parameters::new());
    assert!(action(MAX_STATEMENTS).is_ok());
    let error = action(MAX_STATEMENTS + 1).unwrap_err();
    assert_eq!(error.problem(), &Problem::TooManyStatements);
    assert_eq!(error.offset(), MAX_STATEMENTS * 10);
}

#[test]
fn long_chains_and_lists_are_accepted() {
    let message = message::sample("a=1");
    let properties = message.properties();
    for (text, expected) in [
        (format!("a IN (0{})", ",2".repeat(500)), Truth::False),
        (format!("a=1{}", " AND a=1".repeat(120)), Truth::True),
        (format!("a=2{}", " OR a=2".repeat(130)), Truth::False),
        (format!("a{} = 501", "+1".repeat(500)), Truth::True),
        (format!("a{} = 1", "-1+1".repeat(250)), Truth::True),
    ] {
        let filter = parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found = filter.evaluate(&properties, &mut Ids::default());
        assert_eq!(found.unwrap(), expected, "{text}");
        assert_eq!(
            parse(&filter.canonical())
                .map(|again| again.canonical())
                .ok(),
            Some(filter.canonical()).filter(|text| text.chars().count() <= MAX_LENGTH)
        );
    }
}

#[test]
fn a_like_pattern_does_not_backtrack_exponentially() {
    let long = "a".repeat(32 * 1024);
    let message = message::sample(&format!("a='{long}'"));
    let properties = message.properties();
    let patterns = [
        "%a".repeat(500) + "b",
        "%a%_".repeat(240) + "b",
        "_%".repeat(490) + "b",
        "%".repeat(1000),
        "%".to_owned() + &"a".repeat(900) + "b%",
        "%".to_owned() + &"_".repeat(900) + "b%",
        "%".to_owned() + &"a_".repeat(450) + "b%c",
    ];
    for pattern in patterns {
        let filter = parse(&format!("a LIKE '{pattern}'")).unwrap();
        let found = filter.evaluate(&properties, &mut Ids::default()).unwrap();
        let expected = if pattern.ends_with("%%") {
            Truth::True
        } else {
            Truth::False
        };
        assert_eq!(found, expected, "{pattern}");
    }
}

#[test]
fn concatenation_cannot_grow_without_bound() {
    let long = "a".repeat(32 * 1024);
    let message = message::sample(&format!("a='{long}'"));
    let filter = parse(&format!("a{} = 'x'", "+a".repeat(500))).unwrap();
    let found = filter.evaluate(&message.properties(), &mut Ids::default());
    assert!(matches!(
        found.unwrap_err().fault,
        Fault::TextTooLong { .. }
    ));
}

#[test]
fn a_filter_error_shows_the_line_and_column() {
    let error = parse("a = 1\nAND ü == 2").unwrap_err();
    assert_eq!(error.position(), (2, 8));
    assert_eq!(error.excerpt(), "AND ü == 2\n       ^");
    assert_eq!(
        error.to_string(),
        "line 2, column 8: expected a value: a constant, a property, a parameter, a function or '(', found '='"
    );
    let error = parse("").unwrap_err();
    assert_eq!(
        (error.position(), error.excerpt().as_str()),
        ((1, 1), "\n^")
    );
}

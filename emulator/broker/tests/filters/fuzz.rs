//! A fuzz target for the parser: a plain function, run over the tables and seeded mutations of them.
//!
//! `FUZZ_ROUNDS=1000000 cargo test --release -p servicebus-broker --test filters fuzz` runs longer.
//!
//! Limits and hostile texts: bounded time, memory and depth. What is not bounded would not end.

use servicebus_broker::filter::{
    Action, Encoded, Fault, MAX_DEPTH, MAX_LENGTH, MAX_STATEMENTS, Parameters, Problem, SqlFilter,
    SyntaxError, Truth,
};

use crate::message;
use crate::message::Ids;
use crate::table::{CONDITIONS, lines};

const ROUNDS: usize = 20_000;

/// With any bytes nothing panics; what is read is printed, and read again as the same.
fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parameters = Parameters::new();
    parameters.add("p", Encoded::from(5));
    for notation in ["-", "a='x', b=2, c=null, sys.Label='y'"] {
        let sample = message::sample(notation);
        let properties = sample.properties();
        match SqlFilter::parse(&text, parameters.clone()) {
            Err(error) => check_error(&text, &error),
            Ok(filter) => {
                let found = filter.evaluate(&properties, &mut Ids::default());
                let printed = filter.canonical();
                if let Ok(again) = SqlFilter::parse(&printed, parameters.clone()) {
                    assert_eq!(again.canonical(), printed, "{text}");
                    assert_eq!(
                        again.evaluate(&properties, &mut Ids::default()),
                        found,
                        "{text}"
                    );
                } else {
                    assert!(
                        printed.chars().count() > 1024,
                        "{text} is printed as {printed}"
                    );
                }
            }
        }
        match Action::parse(&text, parameters.clone()) {
            Err(error) => check_error(&text, &error),
            Ok(action) => {
                let _ = action.edits(&properties, &mut Ids::default());
                let printed = action.canonical();
                match Action::parse(&printed, parameters.clone()) {
                    Ok(again) => assert_eq!(again.canonical(), printed, "{text}"),
                    Err(_) => assert!(
                        printed.chars().count() > 1024,
                        "{text} is printed as {printed}"
                    ),
                }
            }
        }
    }
}

fn check_error(text: &str, error: &SyntaxError) {
    assert!(
        error.offset() <= text.len() && text.is_char_boundary(error.offset()),
        "{text}"
    );
    let (line, column) = error.position();
    assert!(line > 0 && column > 0 && !error.excerpt().is_empty());
    assert!(error.to_string().contains("expected"), "{text}: {error}");
}

/// SplitMix64: the same mutations in every run.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit.max(1) as u64) as usize
    }
}

const PIECES: [&str; 38] = [
    " AND ",
    " OR ",
    " NOT ",
    "(",
    ")",
    ",",
    ";",
    "'",
    "''",
    "\"",
    "[",
    "]",
    "]]",
    "@p",
    "@",
    ".",
    "sys.",
    "user.",
    "NULL",
    " IS ",
    " IN (",
    " LIKE ",
    " ESCAPE ",
    "EXISTS(",
    "TRUE",
    "-",
    "+",
    "%",
    "/ 0",
    "1E9",
    "9223372036854775808",
    "newid()",
    "p(",
    "SET ",
    "REMOVE ",
    "=",
    "\u{0}",
    "ü😀",
];

fn mutate(corpus: &[Vec<u8>], random: &mut Seeded) -> Vec<u8> {
    let mut data = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(4) {
        let place = random.below(data.len() + 1);
        match random.below(6) {
            0 if place < data.len() => data[place] ^= 1 << random.below(8),
            1 => data.truncate(place),
            2 => {
                let other = &corpus[random.below(corpus.len())];
                data.splice(place..place, other.iter().copied());
            }
            3 => {
                let end = (place + random.below(8)).min(data.len());
                data.drain(place..end);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                data.splice(place..place, piece.bytes());
            }
        }
    }
    data
}

#[test]
fn the_corpus_and_its_mutations_do_no_harm() {
    let tables =
        CONDITIONS
            .into_iter()
            .chain(["malformed.txt", "malformed_actions.txt", "actions.txt"]);
    let corpus: Vec<Vec<u8>> = tables
        .flat_map(|table| lines(table, 4))
        .map(|(_, columns)| columns[0].clone().into_bytes())
        .collect();
    corpus.iter().for_each(|text| target(text));
    let rounds = std::env::var("FUZZ_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let mut random = Seeded(1);
    for _ in 0..rounds {
        target(&mutate(&corpus, &mut random));
    }
}

fn parse(text: &str) -> Result<SqlFilter, SyntaxError> {
    SqlFilter::parse(text, Parameters::new())
}

fn problem(text: &str) -> Problem {
    parse(text).unwrap_err().problem().clone()
}

#[test]
fn a_text_has_at_most_1024_characters() {
    let filter = |length: usize| format!("a = '{}'", "ä".repeat(length - 6));
    assert!(parse(&filter(MAX_LENGTH)).is_ok());
    assert_eq!(
        problem(&filter(MAX_LENGTH + 1)),
        Problem::TooLong {
            length: MAX_LENGTH + 1
        }
    );
    let action = |length: usize| format!("SET a = '{}'", "x".repeat(length - 10));
    assert!(Action::parse(&action(MAX_LENGTH), Parameters::new()).is_ok());
    assert!(Action::parse(&action(MAX_LENGTH + 1), Parameters::new()).is_err());
}

#[test]
fn a_text_of_any_length_is_refused_without_being_kept() {
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
fn long_chains_and_lists_are_fine() {
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
fn no_pattern_is_catastrophic() {
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
fn errors_show_the_line_and_the_place() {
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

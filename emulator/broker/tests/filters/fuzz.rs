//! A fuzz target for the parser: a plain function, run over the tables and seeded mutations of them.
//!
//! `FUZZ_ROUNDS=1000000 cargo test --release -p servicebus-broker --test filters fuzz` runs longer.

use servicebus_broker::filter::{Action, Encoded, Parameters, SqlFilter, SyntaxError};

use crate::message::{self, Ids};
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

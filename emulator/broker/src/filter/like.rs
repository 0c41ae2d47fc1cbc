//! `LIKE`: patterns split at their `%`.
//!
//! Each piece between two `%` is searched once, leftmost first, which is always right: a later match leaves less text for
//! the following pieces. A piece without `_` takes as many steps as the text has bytes, and one with `_` at most a
//! sixty-fourth of comparing it at every position. The length of patterns is limited, as they may come from a message.

use std::collections::BTreeMap;

use super::MAX_LENGTH;

/// Up to this many comparisons run without preparation.
const FEW: usize = 4096;

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternError {
    /// The escape at its end escapes nothing.
    EscapeAtEnd,
    /// It has too many characters.
    TooLong(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The beginning of the text; all of it if there is no `%`.
    first: Piece,
    /// The following pieces in order, with any text between them; the last one is at the end.
    rest: Vec<Piece>,
}

/// The pattern between two `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    /// Contains `_`, which is `None`.
    Holes(Box<[Option<char>]>),
}

/// Returns the escape character of a text, or the number of its characters if it is not one.
pub(crate) fn escape_character(text: &str) -> Result<char, usize> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(text.chars().count()),
    }
}

impl Pattern {
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Result<Self, PatternError> {
        let length = pattern.encode_utf16().count();
        if length > MAX_LENGTH {
            return Err(PatternError::TooLong(length));
        }
        let mut first = None;
        let mut rest = Vec::new();
        let mut piece = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if Some(character) == escape {
                piece.push(Some(characters.next().ok_or(PatternError::EscapeAtEnd)?));
            } else if character == '%' {
                let ended = Piece::new(std::mem::take(&mut piece));
                match first {
                    None => first = Some(ended),
                    Some(_) => rest.push(ended),
                }
            } else {
                piece.push(Some(character).filter(|&character| character != '_'));
            }
        }
        let last = Piece::new(piece);
        let first = match first {
            None => last,
            Some(first) => {
                rest.push(last);
                first
            }
        };
        Ok(Self { first, rest })
    }

    /// Returns whether the whole text matches the pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some(mut rest) = self.first.strip_from(text) else {
            return false;
        };
        let Some((last, middle)) = self.rest.split_last() else {
            return rest.is_empty();
        };
        for piece in middle {
            match piece.find_in(rest) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        last.ends(rest)
    }
}

impl Piece {
    fn new(items: Vec<Option<char>>) -> Self {
        match items.iter().copied().collect::<Option<String>>() {
            Some(text) => Self::Text(text.into()),
            None => Self::Holes(items.into()),
        }
    }

    /// Returns the rest of a text that begins with the piece.
    fn strip_from<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(piece) => text.strip_prefix(&**piece),
            Self::Holes(items) => {
                let mut characters = text.chars();
                for item in items {
                    let character = characters.next()?;
                    if item.is_some_and(|item| item != character) {
                        return None;
                    }
                }
                Some(characters.as_str())
            }
        }
    }

    /// Returns the rest of a text behind the first match of the piece.
    fn find_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(piece) => text
                .find(&**piece)
                .map(|place| &text[place + piece.len()..]),
            Self::Holes(items) if text.len() * items.len() > FEW => {
                find_with_wildcards(items, text)
            }
            Self::Holes(_) => {
                let mut places = text.char_indices();
                places.find_map(|(place, _)| self.strip_from(&text[place..]))
            }
        }
    }

    fn ends(&self, text: &str) -> bool {
        match self {
            Self::Text(piece) => text.ends_with(&**piece),
            Self::Holes(items) => {
                let mut characters = text.chars();
                items.iter().rev().all(|item| {
                    let character = characters.next_back();
                    character.is_some_and(|character| item.is_none_or(|item| item == character))
                })
            }
        }
    }
}

/// Returns the rest of a text behind the first match of a piece with `_`. Compares all positions at once: bit n of the state
/// means that a match may have begun n characters ago.
fn find_with_wildcards<'t>(items: &[Option<char>], text: &'t str) -> Option<&'t str> {
    let words = items.len().div_ceil(64);
    let mut holes = vec![0_u64; words];
    let of_items = || items.iter().enumerate();
    for (at, _) in of_items().filter(|(_, item)| item.is_none()) {
        holes[at / 64] |= 1 << (at % 64);
    }
    let mut fitting = BTreeMap::new();
    for (at, &item) in of_items() {
        if let Some(character) = item {
            let fits = fitting.entry(character).or_insert_with(|| holes.clone());
            fits[at / 64] |= 1 << (at % 64);
        }
    }
    let last = items.len() - 1;
    let mut state = vec![0_u64; words];
    for (place, character) in text.char_indices() {
        let fits = fitting.get(&character).unwrap_or(&holes);
        let mut carry = 1;
        for (word, fits) in state.iter_mut().zip(fits) {
            (*word, carry) = ((*word << 1 | carry) & fits, *word >> 63);
        }
        if state[last / 64] >> (last % 64) & 1 == 1 {
            return Some(&text[place + character.len_utf8()..]);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn match_literal<'t>(piece: &Piece, text: &'t str) -> Option<&'t str> {
        let mut places = text.char_indices();
        places.find_map(|(place, _)| piece.strip_from(&text[place..]))
    }

    proptest! {
        #[test]
        fn a_search_with_wildcards_equals_the_naive_search(
            pattern in "[ab\u{e9}_]{1,150}",
            parts in prop::collection::vec("[ab\u{e9}]{0,90}", 0..6),
        ) {
            let items = Vec::from_iter(pattern.chars().map(|item| Some(item).filter(|item| *item != '_')));
            let piece = Piece::Holes(items.clone().into());
            // Derived from the pattern, so that some texts match.
            let text = parts.join(&pattern.replace('_', "a"));
            prop_assert_eq!(find_with_wildcards(&items, &text), match_literal(&piece, &text));
        }
    }

    #[test]
    fn a_like_pattern_has_a_maximum_length() {
        assert!(Pattern::new(&"%_".repeat(512), None).is_ok());
        assert_eq!(
            Pattern::new(&"_".repeat(1025), None),
            Err(PatternError::TooLong(1025))
        );
    }
}

//! `LIKE`: patterns taken apart at their `%`.
//!
//! Each piece between two `%` is searched once, leftmost first, which is never wrong: a later place leaves less for
//! the pieces behind. So nothing is tried twice, and a pattern cannot be catastrophic.

/// A pattern that can be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// What the text begins with; all of it when there is no `%`.
    first: Piece,
    /// What follows in turn, with anything between; the last one at the end.
    rest: Vec<Piece>,
}

/// What stands between two `%`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Box<str>),
    /// With `_`, which is none.
    Holes(Box<[Option<char>]>),
}

/// The escape character a text holds, or how many characters it has instead.
pub(crate) fn escape_character(text: &str) -> Result<char, usize> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Ok(character),
        _ => Err(text.chars().count()),
    }
}

impl Pattern {
    /// Takes a pattern apart; none when it ends with its escape character.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Option<Self> {
        let mut first = None;
        let mut rest = Vec::new();
        let mut piece = Vec::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if Some(character) == escape {
                piece.push(Some(characters.next()?));
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
        Some(Self { first, rest })
    }

    /// Whether the whole text is like the pattern.
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

    /// What is left of a text that begins with the piece.
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

    /// What is left of a text behind the first place where the piece stands.
    fn find_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(piece) => text
                .find(&**piece)
                .map(|place| &text[place + piece.len()..]),
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

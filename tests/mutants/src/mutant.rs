//! A mutant as `cargo mutants --list --json` tells it, of which this reads a part.

use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub struct Mutant {
    /// From the root of the repository.
    pub file: String,
    pub genre: Genre,
    /// What it is for people: place and change.
    pub name: String,
    pub package: String,
    /// What stands there instead.
    pub replacement: String,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Genre {
    BinaryOperator,
    /// The body of a function.
    FnValue,
    /// An arm that is not there, so that a later one matches.
    MatchArm,
    MatchArmGuard,
    /// A field that is not set, so that the base of the expression decides.
    StructField,
    UnaryOperator,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Span {
    pub start: Position,
}

/// Both begin at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

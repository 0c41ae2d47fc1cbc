//! Rules of subscriptions: the SQL filter and action language, and correlation filters.
//!
//! The module is pure and self-contained: it sees a message only as [`Properties`], decoded once for all rules. A filter or
//! action is parsed when its rule is created ([`SqlFilter::parse`], [`Action::parse`]), which keeps the syntax tree and the
//! text, which clients read back. [`Edits`] are the changes of an action.
//!
//! The language is documented in service-bus-messaging-sql-filter and service-bus-messaging-sql-rule-action; the tables of
//! `fixtures/filters` decide line by line what these leave open.
//!
//! Reading order: `token` and `parser` create the tree of `ast`, `print` is their inverse; `properties` and `value` read a
//! message; `operators` has the semantics, `eval` applies it.

mod token;

mod ast;
mod parser;

mod jms;
mod properties;
mod system;
mod text;
mod value;

mod convert;
mod eval;
mod like;
mod operators;

mod correlation;
mod error;
mod explain;
mod index;
mod rule;
mod sql;

pub use correlation::{Correlation, CorrelationFilter};
pub use error::{EvaluationError, Fault, Problem, RuleError, RulePart, SyntaxError};
pub use explain::{Explanation, Outcome, Reason, explain};
pub use index::CorrelationIndex;
pub use operators::Truth;
pub use parser::Parameters;
pub use properties::{Name, Properties, Sections};
pub use rule::{Edit, Edits, Filter, Rule, Target};
pub use sql::{Action, SqlFilter};
pub use system::{System, SystemProperty};
pub use text::time_span;
pub use value::{Encoded, Value};

/// Maximum length of a filter or action, in characters (service-bus-quotas).
pub const MAX_LENGTH: usize = 1024;
/// Maximum number of statements of an action (service-bus-quotas: "expressions per rule action").
pub const MAX_STATEMENTS: usize = 32;
/// Maximum nesting of brackets, `NOT`, signs and functions.
pub const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests;

//! Rules of subscriptions: the SQL filter and action language, correlation filters, and what they say of a message.
//!
//! Pure and complete in itself: it sees a message only as [`Properties`], decoded once for all rules. A filter or
//! action is read when its rule is created ([`SqlFilter::parse`], [`Action::parse`]); what is kept is its text, which
//! clients read back, and the tree. [`Edits`] tell what an action changes.
//!
//! The language is documented in service-bus-messaging-sql-filter and service-bus-messaging-sql-rule-action; what these
//! leave open is decided in the tables of `fixtures/filters`, line by line.
//!
//! Reading order: `token` and `parser` make the tree of `ast`, `print` is their inverse; `properties` and `value` are
//! what a message gives; `operators` is the meaning, `eval` applies it.

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
pub use rule::{Edit, Edits, Target};
pub use rule::{Filter, Rule};
pub use sql::{Action, SqlFilter};
pub use system::{System, SystemProperty};
pub use value::{Encoded, Value};

/// Longest text of a filter or action, in characters (service-bus-quotas).
pub const MAX_LENGTH: usize = 1024;
/// Most statements of an action (service-bus-quotas: "expressions per rule action").
pub const MAX_STATEMENTS: usize = 32;
/// How deep brackets, `NOT`, signs and functions may nest.
pub const MAX_DEPTH: usize = 64;

#[cfg(test)]
mod tests;

//! How the rules of a subscription evaluate a message.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The value of a property that a message does not have.
const MISSING: &str = "does not exist";

/// How a subscription evaluates a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// The results of the rules, by name.
    pub rules: Vec<RuleExplanation>,
    /// For a topic, the results of each of its subscriptions; `rules` is then empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<SubscriptionExplanation>,
}

/// How one subscription of a topic evaluates a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriptionExplanation {
    /// Its path.
    pub subscription: String,
    /// Whether any of its rules selects the message.
    pub matched: bool,
    /// The results of the rules, by name.
    pub rules: Vec<RuleExplanation>,
}

/// How one rule evaluates a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RuleExplanation {
    /// The name of the rule.
    pub rule: String,
    /// Whether it selects the message.
    pub matched: bool,
    /// The first part of the filter that was not true.
    pub reason: Option<Reason>,
    /// Why the filter cannot be evaluated.
    pub error: Option<String>,
}

/// The first part of a filter that is not true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reason {
    /// The part, in the filter language.
    pub expression: String,
    /// `false`, or `unknown` if a value is missing.
    pub truth: String,
    /// The values in it that are not constant.
    pub values: Vec<NamedValue>,
}

/// A property of a message, as a filter sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// The value with its type, `3 (a whole number)`, or `does not exist`.
    pub value: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.expression, self.truth)?;
        let mut values = self.values.iter();
        values.try_for_each(|value| write!(f, ", {value}"))
    }
}

impl fmt::Display for NamedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value } = self;
        match value.as_str() {
            MISSING => write!(f, "{name} {value}"),
            _ => write!(f, "{name} = {value}"),
        }
    }
}

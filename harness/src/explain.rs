//! What the rules of a subscription say of a message.
//!
//! The emulator evaluates the rules and nothing is sent: a test that waits for a message in vain can ask why none
//! of them lets it in.

use std::{fmt, panic::Location};

use serde::Deserialize;

use crate::{
    amqp::{AmqpError, encode},
    bus::{ServiceBus, or_panic},
    control::ControlError,
    mailbox::{SubscriptionHandle, UnknownEntity},
    message::{Message, to_amqp},
};

/// What the emulator says of a property that a message does not have.
const MISSING: &str = "does not exist";

/// What a subscription makes of a message, rule by rule; shown with a line for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The path of the subscription.
    pub subscription: String,
    /// What each of its rules says, in the order of their names.
    pub rules: Vec<RuleExplanation>,
}

impl Explanation {
    /// Tells whether the subscription gets the message.
    pub fn is_matched(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.verdict == Verdict::Matched)
    }

    /// Finds what one rule says, whatever the letter case of its name.
    pub fn rule(&self, name: &str) -> Option<&RuleExplanation> {
        let mut rules = self.rules.iter();
        rules.find(|rule| rule.rule.eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gets = if self.is_matched() {
            "gets"
        } else {
            "does not get"
        };
        write!(f, "{} {gets} the message", self.subscription)?;
        if self.rules.is_empty() {
            return f.write_str("\n  it has no rules");
        }
        let mut rules = self.rules.iter();
        rules.try_for_each(|rule| write!(f, "\n  {rule}"))
    }
}

/// What one rule says of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExplanation {
    /// The name of the rule.
    pub rule: String,
    /// What it says.
    pub verdict: Verdict,
}

impl fmt::Display for RuleExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        match &self.verdict {
            Verdict::Matched => write!(f, "rule {rule}: matched"),
            Verdict::NotMatched(reason) => write!(f, "rule {rule}: not matched: {reason}"),
            Verdict::Failed(error) => write!(f, "rule {rule}: failed: {error}"),
        }
    }
}

/// Whether a rule selects a message, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Matched,
    /// It does not.
    NotMatched(Reason),
    /// Its filter or action fails on this message.
    Failed(String),
}

/// The first part of a filter that is not true.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Reason {
    /// That part, as the filter language writes it.
    pub expression: String,
    /// Whether it is `false`, or `unknown` for the lack of a value.
    pub truth: String,
    /// What stands in it that is not constant.
    pub values: Vec<NamedValue>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.expression, self.truth)?;
        let mut values = self.values.iter();
        values.try_for_each(|value| write!(f, ", {value}"))
    }
}

/// A property of a message, as a filter sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// The value with its type, `3 (a whole number)`, or `does not exist`.
    pub value: String,
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

/// Why nothing was explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The subscription or its topic does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// The message cannot be written.
    #[error("cannot explain the rules of {path}: {source}")]
    Amqp {
        /// The subscription.
        path: String,
        /// What is wrong with the message.
        source: AmqpError,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot explain the rules of {path}: {source}")]
    Control {
        /// The subscription.
        path: String,
        /// What the emulator said.
        source: ControlError,
    },
}

impl ServiceBus {
    /// Explains what the rules of a subscription say of a message. Nothing is sent.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// let cheap = Message::from("{}").property("price", 3);
    /// println!("{}", servicebus.explain(cheap, &servicebus.subscription("prices", "eu")).await);
    /// // prices/Subscriptions/eu does not get the message
    /// //   rule high: not matched: price > 10 is false, price = 3 (a whole number)
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// When the subscription is unknown or the emulator does not answer.
    #[track_caller]
    pub fn explain(
        &self,
        message: impl Into<Message>,
        subscription: &SubscriptionHandle,
    ) -> impl Future<Output = Explanation> + Send {
        let explained = self.try_explain(message, subscription);
        or_panic(Location::caller(), explained)
    }

    /// Explains what the rules of a subscription say of a message, or says why not.
    pub fn try_explain(
        &self,
        message: impl Into<Message>,
        subscription: &SubscriptionHandle,
    ) -> impl Future<Output = Result<Explanation, ExplainError>> + Send {
        explain(message.into(), subscription.clone())
    }
}

async fn explain(
    message: Message,
    subscription: SubscriptionHandle,
) -> Result<Explanation, ExplainError> {
    let path = subscription.path().to_owned();
    let encoded = match encode(to_amqp(message)) {
        Ok(encoded) => encoded,
        Err(source) => return Err(ExplainError::Amqp { path, source }),
    };
    let asked: Result<Answer, _> = subscription
        .run(|mailbox| async move {
            let query = [("subscription", mailbox.path())];
            let control = &mailbox.doors.control;
            control.ask_about("explain", &query, encoded.into()).await
        })
        .await;
    // One without rules may exist or not: the emulator answers both alike.
    let may_be_unknown = match &asked {
        Ok(answer) => answer.rules.is_empty(),
        Err(source) => source.status() == Some(404),
    };
    if let Some(unknown) = subscription.unknown_if(may_be_unknown).await {
        return Err(unknown.into());
    }
    match asked {
        Ok(answer) => Ok(Explanation {
            subscription: path,
            rules: answer.rules.into_iter().map(Told::explanation).collect(),
        }),
        Err(source) => Err(ExplainError::Control { path, source }),
    }
}

/// The answer of the control API.
#[derive(Debug, Deserialize)]
struct Answer {
    rules: Vec<Told>,
}

#[derive(Debug, Deserialize)]
struct Told {
    rule: String,
    reason: Option<Reason>,
    error: Option<String>,
}

impl Told {
    fn explanation(self) -> RuleExplanation {
        let verdict = match (self.error, self.reason) {
            (Some(error), _) => Verdict::Failed(error),
            (None, Some(reason)) => Verdict::NotMatched(reason),
            (None, None) => Verdict::Matched,
        };
        RuleExplanation {
            rule: self.rule,
            verdict,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_reads_well() {
        let answer = r#"{"rules":[
            {"rule":"all","matched":true,"reason":null,"error":null},
            {"rule":"broken","matched":false,"reason":null,"error":"price is a string"},
            {"rule":"high","matched":false,"error":null,"reason":
                {"expression":"price > 10","truth":"false","values":[{"name":"price","value":"3 (a whole number)"}]}}
        ]}"#;
        let answer: Answer = serde_json::from_str(answer).unwrap();
        let explanation = Explanation {
            subscription: "prices/Subscriptions/eu".to_owned(),
            rules: answer.rules.into_iter().map(Told::explanation).collect(),
        };
        assert_eq!(
            explanation.to_string(),
            "prices/Subscriptions/eu gets the message
  rule all: matched
  rule broken: failed: price is a string
  rule high: not matched: price > 10 is false, price = 3 (a whole number)"
        );
    }
}

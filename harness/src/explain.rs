//! What the rules of a subscription say of a message.
//!
//! The emulator evaluates the rules and nothing is sent: a test that waits for a message in vain can ask why none
//! of them lets it in.

use std::fmt;

use serde::Deserialize;

use crate::{
    action::Action,
    amqp::encode,
    clients::SubscriptionClient,
    error::Error,
    message::{Message, to_amqp},
    service_bus::ServiceBus,
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
    /// Returns whether the subscription gets the message.
    pub fn is_matched(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.outcome == RuleOutcome::Matched)
    }

    /// Finds what one rule says, whatever the case of its name.
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
    pub outcome: RuleOutcome,
}

impl fmt::Display for RuleExplanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = &self.rule;
        match &self.outcome {
            RuleOutcome::Matched => write!(f, "rule {rule}: matched"),
            RuleOutcome::NotMatched(reason) => write!(f, "rule {rule}: not matched: {reason}"),
            RuleOutcome::Failed(error) => write!(f, "rule {rule}: failed: {error}"),
        }
    }
}

/// Whether a rule selects a message, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleOutcome {
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

impl ServiceBus {
    /// Explains what the rules of a subscription say of a message. Nothing is sent.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus) {
    /// let cheap = Message::from("{}").application_property("price", 3);
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
        subscription: &SubscriptionClient,
    ) -> Action<'_, Explanation> {
        Action::new(explain(message.into(), subscription.clone()))
    }
}

async fn explain(message: Message, subscription: SubscriptionClient) -> Result<Explanation, Error> {
    let path = subscription.path().to_owned();
    let operation = format!("explain the rules of {path}");
    let encoded = match encode(to_amqp(message)) {
        Ok(encoded) => encoded,
        Err(source) => return Err(Error::of(operation, &path, source)),
    };
    let asked: Result<Answer, _> = subscription
        .run(|client| async move {
            let query = [("subscription", client.path())];
            let control = &client.connections.control;
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
            rules: answer
                .rules
                .into_iter()
                .map(RuleAnswer::explanation)
                .collect(),
        }),
        Err(source) => Err(Error::of(operation, &path, source)),
    }
}

/// The answer of the control API.
#[derive(Debug, Deserialize)]
struct Answer {
    rules: Vec<RuleAnswer>,
}

#[derive(Debug, Deserialize)]
struct RuleAnswer {
    rule: String,
    reason: Option<Reason>,
    error: Option<String>,
}

impl RuleAnswer {
    fn explanation(self) -> RuleExplanation {
        let outcome = match (self.error, self.reason) {
            (Some(error), _) => RuleOutcome::Failed(error),
            (None, Some(reason)) => RuleOutcome::NotMatched(reason),
            (None, None) => RuleOutcome::Matched,
        };
        RuleExplanation {
            rule: self.rule,
            outcome,
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
            rules: answer
                .rules
                .into_iter()
                .map(RuleAnswer::explanation)
                .collect(),
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

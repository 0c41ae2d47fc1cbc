//! Explains how the rules of a subscription evaluate a message.
//!
//! The emulator evaluates the rules without sending: a test that waits for a message in vain can find out why no rule
//! selects it.

use std::fmt;

use servicebus_control_api as api;
pub use servicebus_control_api::{NamedValue, Reason};

use crate::{
    action::Action,
    amqp::{encode, to_amqp},
    clients::SubscriptionClient,
    error::Error,
    message::Message,
    service_bus::ServiceBus,
};

/// How the rules of a subscription evaluate a message; `Display` has a line per rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The path of the subscription.
    pub subscription: String,
    /// The results of its rules, ordered by name.
    pub rules: Vec<RuleExplanation>,
}

impl Explanation {
    /// Returns whether the subscription gets the message.
    pub fn is_matched(&self) -> bool {
        let mut rules = self.rules.iter();
        rules.any(|rule| rule.outcome == RuleOutcome::Matched)
    }

    /// Returns the result of a rule, by its name in any case.
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

/// How one rule evaluates a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleExplanation {
    /// The name of the rule.
    pub rule: String,
    /// The result.
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
    /// The rule selects the message.
    Matched,
    /// The rule does not select the message.
    NotMatched(Reason),
    /// The filter or action of the rule fails on this message.
    Failed(String),
}

impl ServiceBus {
    /// Explains how the rules of a subscription evaluate a message, without sending it.
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
    let encoded = encode(to_amqp(message));
    let encoded = encoded.map_err(|source| Error::of(operation.clone(), &path, source))?;
    let explained = subscription
        .run(|client| async move {
            client
                .backend()
                .explain(client.path(), encoded.into())
                .await
        })
        .await;
    // The emulator gives the same answer for a subscription without rules and for one that does not exist.
    let may_be_unknown = match &explained {
        Ok(answer) => answer.rules.is_empty(),
        Err(source) => source.status() == Some(404),
    };
    if let Some(unknown) = subscription.unknown_entity_error_if(may_be_unknown).await {
        return Err(unknown);
    }
    match explained {
        Ok(answer) => Ok(Explanation::new(path, answer)),
        Err(source) => Err(Error::of(operation, &path, source)),
    }
}

impl Explanation {
    fn new(subscription: String, answer: api::Explanation) -> Self {
        let rules = answer.rules.into_iter().map(RuleExplanation::from);
        Self {
            subscription,
            rules: rules.collect(),
        }
    }
}

impl From<api::RuleExplanation> for RuleExplanation {
    fn from(answer: api::RuleExplanation) -> Self {
        let outcome = match (answer.error, answer.reason) {
            (Some(error), _) => RuleOutcome::Failed(error),
            (None, Some(reason)) => RuleOutcome::NotMatched(reason),
            (None, None) => RuleOutcome::Matched,
        };
        Self {
            rule: answer.rule,
            outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_has_a_line_per_rule() {
        let answer = r#"{"rules":[
            {"rule":"all","matched":true,"reason":null,"error":null},
            {"rule":"broken","matched":false,"reason":null,"error":"price is a string"},
            {"rule":"high","matched":false,"error":null,"reason":
                {"expression":"price > 10","truth":"false","values":[{"name":"price","value":"3 (a whole number)"}]}}
        ]}"#;
        let answer: api::Explanation = serde_json::from_str(answer).unwrap();
        let explanation = Explanation::new("prices/Subscriptions/eu".to_owned(), answer);
        assert_eq!(
            explanation.to_string(),
            "prices/Subscriptions/eu gets the message
  rule all: matched
  rule broken: failed: price is a string
  rule high: not matched: price > 10 is false, price = 3 (a whole number)"
        );
    }
}

//! The messages of a session lie in the queue in an order.
//!
//! The order is that of their sequence numbers, in which a session is received. Messages that were put aside or wait
//! for their time are not in it; those that are locked are.

use std::time::Duration;

use super::{AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN, hint, known, poll};
use crate::{mailbox::Mailbox, matcher::Text, peeked::MessageState, text};

/// Expects a session to hold exactly these messages, in this order.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct InOrder {
    mailbox: Mailbox,
    session: String,
    bodies: Vec<Text>,
    within: Duration,
}

impl InOrder {
    /// Expects it of this session; until its bodies are named, that it holds none.
    pub fn of(mailbox: &impl AsRef<Mailbox>, session: impl Into<String>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            session: session.into(),
            bodies: Vec::new(),
            within: WITHIN,
        }
    }

    /// Expects the messages with these bodies and no others, the oldest first.
    pub fn bodies<T: Into<Text>>(mut self, bodies: impl IntoIterator<Item = T>) -> Self {
        self.bodies = bodies.into_iter().map(Into::into).collect();
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn look(&self) -> Result<Vec<String>, ProbeError> {
        let messages = self.mailbox.try_peek().await?;
        let own = messages.iter().filter(|message| {
            message.state == MessageState::Active
                && message.session_id.as_deref() == Some(&self.session)
        });
        Ok(own
            .map(|message| message.body_text().into_owned())
            .collect())
    }

    fn is_expected(&self, found: &[String]) -> bool {
        let mut pairs = self.bodies.iter().zip(found);
        found.len() == self.bodies.len() && pairs.all(|(wanted, body)| wanted.matches(Some(body)))
    }

    fn sentence(&self, found: &[String]) -> String {
        let wanted = listed(self.bodies.iter().map(Text::to_string));
        let found = listed(found.iter().map(|body| format!("{body:?}")));
        let within = text::seconds(self.within);
        format!(
            "expected session {:?} to hold {wanted}, found {found} within {within}",
            self.session
        )
    }
}

impl Expectation for InOrder {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            poll(self.within, || self.look(), |found| self.is_expected(found)).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => {
                let report = Report::with_session(&self.mailbox, &self.session).await;
                let hint = hint::general(&report);
                Err(report.hinted_failure(&self.sentence(&found), hint))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

/// Names bodies in their order: `"1", "2"`.
fn listed(bodies: impl Iterator<Item = String>) -> String {
    match Vec::from_iter(bodies).join(", ") {
        none if none.is_empty() => "no message".to_owned(),
        bodies => bodies,
    }
}

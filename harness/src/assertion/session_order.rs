//! The order of the messages of a session.
//!
//! The order is that of their sequence numbers, in which a session is received. Messages that were deferred or wait
//! for their time are not in it; those that are locked are.

use super::{AssertionFailed, Expectation, Kind, Looked, ProbeError, Report, hint, known, poll};
use crate::{clients::SubQueueClient, matcher::Text, received_message::MessageState, text};

/// Expects a session to hold exactly these messages, in this order.
#[derive(Debug, Clone)]
pub struct SessionOrder {
    session: String,
    bodies: Vec<Text>,
}

impl SessionOrder {
    /// Expects it of this session; until its bodies are named, that it holds none.
    pub fn of(
        client: &impl AsRef<SubQueueClient>,
        session: impl Into<String>,
    ) -> Expectation<Self> {
        let kind = Self {
            session: session.into(),
            bodies: Vec::new(),
        };
        Expectation::new(client, kind)
    }
}

impl Expectation<SessionOrder> {
    /// Expects the messages with these bodies and no others, the oldest first.
    pub fn bodies<T: Into<Text>>(mut self, bodies: impl IntoIterator<Item = T>) -> Self {
        self.kind.bodies = bodies.into_iter().map(Into::into).collect();
        self
    }

    async fn look(&self) -> Result<Vec<String>, ProbeError> {
        let messages = self.client.try_peek().await?;
        let own = messages.iter().filter(|message| {
            message.state == MessageState::Active
                && message.session_id.as_deref() == Some(&self.kind.session)
        });
        Ok(own
            .map(|message| message.body_text().into_owned())
            .collect())
    }

    fn is_expected(&self, found: &[String]) -> bool {
        let mut pairs = self.kind.bodies.iter().zip(found);
        found.len() == self.kind.bodies.len()
            && pairs.all(|(wanted, body)| wanted.matches(Some(body)))
    }

    fn sentence(&self, found: &[String]) -> String {
        let wanted = listed(self.kind.bodies.iter().map(Text::to_string));
        let found = listed(found.iter().map(|body| format!("{body:?}")));
        let within = text::seconds(self.within);
        format!(
            "expected session {:?} to hold {wanted}, found {found} within {within}",
            self.kind.session
        )
    }
}

impl Kind for SessionOrder {
    async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&expectation.client).await?;
            poll(
                expectation.within,
                || expectation.look(),
                |found| expectation.is_expected(found),
            )
            .await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => {
                let report =
                    Report::with_session(&expectation.client, &expectation.kind.session).await;
                let hint = hint::general(&report);
                Err(report.hinted_failure(&expectation.sentence(&found), hint))
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

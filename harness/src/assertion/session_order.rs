//! The order of the messages of a session.
//!
//! The order is that of their sequence numbers, in which a session is received. Messages that were deferred or wait
//! for their time are not in it; those that are locked are.

use super::{AssertionFailed, Expectation, Kind, Looked, ProbeError, Report, hint, known, poll};
use crate::{clients::EntityClient, matcher::Text, received_message::MessageState, text};

/// Expects a session to hold exactly these messages, in this order.
#[derive(Debug, Clone)]
pub struct SessionOrder {
    session: String,
    bodies: Vec<Text>,
}

impl SessionOrder {
    /// Expects it of this session; until its bodies are named, that it holds none.
    pub fn of(client: &impl EntityClient, session: impl Into<String>) -> Expectation<Self> {
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

    async fn look(&self) -> Result<Vec<(i64, String)>, ProbeError> {
        let messages = self.client.try_peek().await?;
        let own = messages.iter().filter(|message| {
            message.state == MessageState::Active
                && message.session_id.as_deref() == Some(&self.kind.session)
        });
        Ok(own
            .map(|message| (message.sequence_number, message.body_text().into_owned()))
            .collect())
    }

    fn is_expected(&self, found: &[(i64, String)]) -> bool {
        let mut pairs = self.kind.bodies.iter().zip(found);
        found.len() == self.kind.bodies.len()
            && pairs.all(|(wanted, (_, body))| wanted.matches(Some(body)))
    }

    fn sentence(&self, found: &[(i64, String)]) -> String {
        let wanted = listed(self.kind.bodies.iter().map(Text::to_string));
        let found = listed(found.iter().map(|(_, body)| format!("{body:?}")));
        let within = text::seconds(self.within);
        format!(
            "expected session {:?} to hold {wanted}, found {found} within {within}",
            self.kind.session
        )
    }
}

impl Expectation<SessionOrder> {
    /// Names the first message that came before one that it was to come after.
    fn inversion(&self, found: &[(i64, String)]) -> Option<String> {
        let wanted = &self.kind.bodies;
        let first = wanted
            .iter()
            .zip(found)
            .position(|(wanted, (_, body))| !wanted.matches(Some(body)))?;
        let later = found.get(first + 1..)?;
        let late = later
            .iter()
            .find(|(_, body)| wanted[first].matches(Some(body)))?;
        let early = &found[first];
        let is_wanted = wanted[first + 1..]
            .iter()
            .any(|wanted| wanted.matches(Some(&early.1)));
        is_wanted.then(|| {
            format!(
                "session {}: #{} {:?} came before #{} {:?}",
                self.kind.session, early.0, early.1, late.0, late.1
            )
        })
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
                let hint = expectation.inversion(&found);
                let hint = hint.or_else(|| hint::standing(&report));
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

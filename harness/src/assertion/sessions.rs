//! The messages of a session in their order, and what is kept with it.
//!
//! The order is that of their sequence numbers, in which a session is received. Messages that were deferred or wait
//! for their time are not in it; those that are locked are.

use bytes::Bytes;
use serde_json::Value;

use super::{AssertionFailed, Expectation, Kind, Report, hint};
use crate::{
    clients::{EntityClient, SessionInfo},
    error::Error,
    matcher::Text,
    received_message::MessageState,
    text,
    timeline::EventKind,
};

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

    async fn look(&self) -> Result<Vec<(i64, String)>, Error> {
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
        let within = text::seconds(self.criteria.within);
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
        let failure = async |messages: Vec<(i64, String)>| {
            let report = Report::with_session(&expectation.client, &expectation.kind.session);
            let report = report.await;
            let hint = expectation.inversion(&messages);
            let hint = hint.or_else(|| hint::standing(&report));
            report.hinted_failure(&expectation.sentence(&messages), hint)
        };
        let is_expected = |messages: &Vec<_>| expectation.is_expected(messages);
        let look = || expectation.look();
        expectation.expect(look, is_expected, failure).await
    }
}

/// Names bodies in their order: `"1", "2"`.
fn listed(bodies: impl Iterator<Item = String>) -> String {
    match Vec::from_iter(bodies).join(", ") {
        none if none.is_empty() => "no message".to_owned(),
        bodies => bodies,
    }
}

/// Expects a session to have a state: any, unless it is said which.
#[derive(Debug, Clone)]
pub struct SessionState {
    session: String,
    wanted: Wanted,
}

/// What is to be kept with a session.
#[derive(Debug, Clone)]
enum Wanted {
    Something,
    Nothing,
    Bytes(Bytes),
    Text(Text),
    Json(Value),
}

impl SessionState {
    /// Expects it of this session.
    pub fn of(client: &impl EntityClient, session: impl Into<String>) -> Expectation<Self> {
        let kind = Self {
            session: session.into(),
            wanted: Wanted::Something,
        };
        Expectation::new(client, kind)
    }
}

impl Expectation<SessionState> {
    /// Expects exactly these bytes.
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Self {
        self.wanting(Wanted::Bytes(bytes.into()))
    }

    /// Expects this text.
    pub fn text(self, text: impl Into<Text>) -> Self {
        self.wanting(Wanted::Text(text.into()))
    }

    /// Expects this value in JSON, however it is written.
    pub fn json(self, value: impl Into<Value>) -> Self {
        self.wanting(Wanted::Json(value.into()))
    }

    /// Expects any state, or none.
    pub fn set(self, set: bool) -> Self {
        self.wanting(match set {
            true => Wanted::Something,
            false => Wanted::Nothing,
        })
    }

    fn wanting(mut self, wanted: Wanted) -> Self {
        self.kind.wanted = wanted;
        self
    }

    async fn look(&self) -> Result<Option<Bytes>, Error> {
        if self.client.connections.backend.control_url().is_none() {
            return self.state_of_a_free_session().await;
        }
        let sessions = self.client.try_sessions().await?;
        let mut sessions = sessions.into_iter();
        let own = sessions.find(|session| session.session_id == self.kind.session);
        Ok(own.and_then(|session| session.state))
    }

    /// Accepts the session for the moment, where nothing lists the sessions with their states.
    async fn state_of_a_free_session(&self) -> Result<Option<Bytes>, Error> {
        let session = self
            .client
            .accept_session(&self.kind.session)
            .result()
            .await?;
        let state = session.state().result().await;
        session.close().result().await?;
        state
    }

    fn sentence(&self, found: Option<&Bytes>) -> String {
        let found = found.map_or_else(|| "none".to_owned(), |state| SessionInfo::state_text(state));
        format!(
            "expected session {:?} to have {}, found {found} within {}",
            self.kind.session,
            self.kind.wanted.to_text(),
            text::seconds(self.criteria.within)
        )
    }

    /// Says that it was never set, where the record says so.
    fn hint(&self, report: &Report) -> Option<String> {
        let mut events = report.timeline.events().iter();
        let was_set = events.any(|event| {
            event.kind == EventKind::SessionStateSet
                && event.session.as_deref() == Some(&self.kind.session)
        });
        let never = !was_set && report.timeline.dropped() == 0;
        never.then(|| format!("the state of session {:?} was never set", self.kind.session))
    }
}

impl Wanted {
    fn is(&self, found: Option<&Bytes>) -> bool {
        match (self, found) {
            (Self::Nothing, found) => found.is_none(),
            (_, None) => false,
            (Self::Something, Some(_)) => true,
            (Self::Bytes(bytes), Some(found)) => bytes == found,
            (Self::Text(text), Some(found)) => text.matches(std::str::from_utf8(found).ok()),
            (Self::Json(value), Some(found)) => {
                serde_json::from_slice::<Value>(found).is_ok_and(|found| found == *value)
            }
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Something => "a state".to_owned(),
            Self::Nothing => "no state".to_owned(),
            Self::Bytes(bytes) => format!("the state {}", SessionInfo::state_text(bytes)),
            Self::Text(text) => format!("the state {text}"),
            Self::Json(value) => format!("the state {value}"),
        }
    }
}

impl Kind for SessionState {
    async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
        let failure = async |state: Option<Bytes>| {
            let report = Report::with_session(&expectation.client, &expectation.kind.session);
            let report = report.await;
            let hint = expectation.hint(&report);
            report.hinted_failure(&expectation.sentence(state.as_ref()), hint)
        };
        let is_expected = |state: &Option<Bytes>| expectation.kind.wanted.is(state.as_ref());
        let look = || expectation.look();
        expectation.expect(look, is_expected, failure).await
    }
}

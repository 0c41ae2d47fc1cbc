//! Something is kept with a session, or nothing is.

use bytes::Bytes;
use serde_json::Value;

use super::{AssertionFailed, Expectation, Kind, Looked, ProbeError, Report, known, poll};
use crate::{
    clients::{EntityClient, SessionInfo},
    error::Error,
    matcher::Text,
    text,
    timeline::EventKind,
};

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

    async fn look(&self) -> Result<Option<Bytes>, ProbeError> {
        if self.client.connections.backend.emulator().is_none() {
            return Ok(self.state_of_a_free_session().await?);
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
            text::seconds(self.within)
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
        let looked = async {
            known(&expectation.client).await?;
            let expected = |found: &Option<Bytes>| expectation.kind.wanted.is(found.as_ref());
            poll(expectation.within, || expectation.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => {
                let report =
                    Report::with_session(&expectation.client, &expectation.kind.session).await;
                let hint = expectation.hint(&report);
                Err(report.hinted_failure(&expectation.sentence(found.as_ref()), hint))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

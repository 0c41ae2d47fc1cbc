//! Something is kept with a session, or nothing is.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::{AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN, known, poll};
use crate::{
    mailbox::{Mailbox, state_text},
    matcher::Text,
    text,
    timeline::EventKind,
};

/// Expects a session to have a state: any, unless it is said which.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct SessionState {
    mailbox: Mailbox,
    session: String,
    wanted: Wanted,
    within: Duration,
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
    pub fn of(mailbox: &impl AsRef<Mailbox>, session: impl Into<String>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            session: session.into(),
            wanted: Wanted::Something,
            within: WITHIN,
        }
    }

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

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    fn wanting(mut self, wanted: Wanted) -> Self {
        self.wanted = wanted;
        self
    }

    async fn look(&self) -> Result<Option<Bytes>, ProbeError> {
        let sessions = self.mailbox.try_sessions().await?;
        let mut sessions = sessions.into_iter();
        let own = sessions.find(|session| session.id == self.session);
        Ok(own.and_then(|session| session.state))
    }

    fn sentence(&self, found: Option<&Bytes>) -> String {
        let found = found.map_or_else(|| "none".to_owned(), |state| state_text(state));
        format!(
            "expected session {:?} to have {}, found {found} within {}",
            self.session,
            self.wanted.words(),
            text::seconds(self.within)
        )
    }

    /// Says that nobody has ever set it, where the record tells.
    fn hint(&self, report: &Report) -> Option<String> {
        let mut events = report.timeline.events().iter();
        let was_set = events.any(|event| {
            event.kind == EventKind::SessionStateSet
                && event.session.as_deref() == Some(&self.session)
        });
        let never = !was_set && report.timeline.dropped() == 0;
        never.then(|| format!("the state of session {:?} was never set", self.session))
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

    fn words(&self) -> String {
        match self {
            Self::Something => "a state".to_owned(),
            Self::Nothing => "no state".to_owned(),
            Self::Bytes(bytes) => format!("the state {}", state_text(bytes)),
            Self::Text(text) => format!("the state {text}"),
            Self::Json(value) => format!("the state {value}"),
        }
    }
}

impl Expectation for SessionState {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            let expected = |found: &Option<Bytes>| self.wanted.is(found.as_ref());
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => {
                let report = Report::with_session(&self.mailbox, &self.session).await;
                let hint = self.hint(&report);
                Err(report.hinted_failure(&self.sentence(found.as_ref()), hint))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

//! Errors of operations on queues, topics and subscriptions.

use std::{borrow::Cow, time::Duration};

use servicebus_assertions::listing;
use servicebus_control_api::{Event, Timeline};

use super::SubQueueClient;
use crate::{
    catalog::UnknownEntity,
    error::amqp::{AmqpError, NOT_FOUND},
    error::control::ControlError,
    error::{Error, ErrorKind},
    text,
};

impl From<UnknownEntity> for Error {
    fn from(unknown: UnknownEntity) -> Self {
        let path = unknown.name.clone();
        Self::new(ErrorKind::EntityNotFound, path, unknown)
    }
}

/// Lists the messages in a state, for the text of an error.
pub(crate) fn listed(state: &str, numbers: &[i64]) -> String {
    let listed = || Vec::from_iter(numbers.iter().map(i64::to_string)).join(", ");
    match numbers {
        [] => format!("none is {state}"),
        [only] => format!("only {only} is {state}"),
        _ => format!("{} are {state}", listed()),
    }
}

impl SubQueueClient {
    /// Lists the entities that exist, if this one does not.
    pub(crate) async fn unknown_entity(&self) -> Option<UnknownEntity> {
        self.catalog().await.missing(self.kind(), self.owner_path())
    }

    /// Returns the error for an entity that does not exist, or was deleted.
    pub(crate) async fn unknown_entity_error_if(&self, not_found: bool) -> Option<Error> {
        if !not_found {
            return None;
        }
        let unknown = self.unknown_entity().await?;
        let events = self.newest_events().await;
        Some(unknown.deleted_in(&events).into())
    }

    /// Returns the newest events of all entities, deleted ones included, the oldest first; none if nothing is recorded.
    pub(crate) async fn newest_events(&self) -> Vec<Event> {
        let answer = self.run(|client| async move {
            let query = [("order", "newest"), ("limit", "1000")];
            client.backend().get_json("/timeline", &query).await
        });
        let timeline = answer.await.ok().map(serde_json::from_value::<Timeline>);
        timeline.and_then(Result::ok).unwrap_or_default().events
    }

    pub(crate) fn error(&self, kind: ErrorKind, sentence: String) -> Error {
        Error::new(kind, self.path().to_owned(), sentence)
    }

    /// Converts an AMQP error; checks whether the entity exists.
    pub(crate) async fn amqp_error(
        &self,
        operation: impl Into<Cow<'static, str>>,
        source: AmqpError,
    ) -> Error {
        match self.unknown_entity_error_if(source.is(NOT_FOUND)).await {
            Some(unknown) => unknown,
            None => Error::of(operation, self.path(), source),
        }
    }

    pub(crate) async fn outcome<T>(
        &self,
        operation: String,
        done: Result<T, AmqpError>,
    ) -> Result<T, Error> {
        match done {
            Ok(value) => Ok(value),
            Err(source) => Err(self.amqp_error(operation, source).await),
        }
    }

    /// Converts an error of the control API; checks whether the entity exists.
    pub(crate) async fn control_error(
        &self,
        operation: impl Into<Cow<'static, str>>,
        source: ControlError,
    ) -> Error {
        let not_found = source.status() == Some(404);
        match self.unknown_entity_error_if(not_found).await {
            Some(unknown) => unknown,
            None => Error::of(operation, self.path(), source),
        }
    }

    pub(crate) async fn receive_error(&self, source: AmqpError) -> Error {
        self.amqp_error(format!("receive from {self}"), source)
            .await
    }

    /// Returns the error for something that did not come in time, with the messages and the holders of the sessions.
    pub(crate) async fn nothing_came(&self, what: &str, within: Duration) -> Error {
        let counts = self.try_counts().await.unwrap_or_default();
        let within = text::seconds(within);
        let mut sentence = format!("{self}: {what} within {within}; it holds {counts}");
        let sessions = self.try_sessions().await.unwrap_or_default();
        if !sessions.is_empty() {
            sentence += &format!("\n{}", listing(self.path(), &sessions));
        }
        self.error(ErrorKind::Timeout, sentence)
    }
}

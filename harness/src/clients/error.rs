//! Errors of operations on queues, topics and subscriptions.

use std::{borrow::Cow, time::Duration};

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
    pub(crate) async fn unknown_entity_if(&self, not_found: bool) -> Option<UnknownEntity> {
        if !not_found {
            return None;
        }
        self.catalog().await.missing(self.kind(), self.owner_path())
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
        match self.unknown_entity_if(source.is(NOT_FOUND)).await {
            Some(unknown) => unknown.into(),
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
        match self.unknown_entity_if(source.status() == Some(404)).await {
            Some(unknown) => unknown.into(),
            None => Error::of(operation, self.path(), source),
        }
    }

    pub(crate) async fn receive_error(&self, source: AmqpError) -> Error {
        self.amqp_error(format!("receive from {self}"), source)
            .await
    }

    pub(crate) async fn no_message_came(&self, within: Duration) -> Error {
        let counts = self.try_counts().await.unwrap_or_default();
        let within = text::seconds(within);
        let sentence = format!("{self}: no message arrived within {within}; it holds {counts}");
        self.error(ErrorKind::Timeout, sentence)
    }
}

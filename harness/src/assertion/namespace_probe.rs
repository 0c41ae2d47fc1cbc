//! Gives assertions access to a namespace over its public protocols, as any client has it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use servicebus_assertions::{
    AssertionFailed, BoxFuture, Catalog, EntityAddress, Message, Namespace, Predicate, Timeline,
};
use servicebus_control_api::{Counts, Event, Receiver, Session};

use crate::{
    background::Stopwatch,
    clients::SubQueueClient,
    error::{Error, control::ControlError},
    received_message::ReceivedMessage,
};

/// Access to a namespace for an assertion about one entity.
pub(crate) struct NamespaceProbe {
    client: SubQueueClient,
    predicate: Option<Predicate<ReceivedMessage>>,
    started: Stopwatch,
}

impl NamespaceProbe {
    pub(crate) fn new(
        client: SubQueueClient,
        predicate: Option<Predicate<ReceivedMessage>>,
    ) -> Self {
        Self {
            client,
            predicate,
            started: Stopwatch::start(),
        }
    }

    /// Returns a client of the entity, or of one of its sub-queues.
    fn at(&self, path: &str) -> SubQueueClient {
        let address = self.client.sub_queue();
        let places = [
            address.clone(),
            address.owner(),
            address.dead_letter_queue(),
            address.transfer_dead_letter_queue(),
        ];
        let mut places = places.into_iter();
        let named = places.find(|address| address.path() == path);
        self.client
            .at(named.unwrap_or_else(|| EntityAddress::new(address.kind(), path.to_owned())))
    }

    /// Converts a message for the assertion; the test's predicate sees the whole message.
    fn convert(&self, message: ReceivedMessage) -> Message {
        let seen = Message::from(&message);
        let predicate = self.predicate.clone().map(|predicate| {
            let message = Arc::new(message);
            Predicate::new(move |()| predicate.is_true_of(&message))
        });
        Message { predicate, ..seen }
    }
}

impl Namespace for NamespaceProbe {
    fn catalog(&self) -> BoxFuture<'_, Catalog> {
        Box::pin(async { Ok(self.client.catalog().await) })
    }

    fn messages<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Message>> {
        Box::pin(async move {
            let peeked = self.at(path).try_peek().await.map_err(unchecked)?;
            let seen = peeked.into_iter().map(|message| self.convert(message));
            Ok(seen.collect())
        })
    }

    fn counts<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Counts> {
        Box::pin(async move { self.at(path).try_counts().await.map_err(unchecked) })
    }

    fn timeline<'a>(&'a self, path: &'a str, with_messages: bool) -> BoxFuture<'a, Timeline> {
        Box::pin(async move {
            let answer = self.at(path).fetch_timeline(with_messages).await;
            let (timeline, messages) = answer.map_err(unchecked)?;
            let seen = |messages: Vec<_>| {
                let seen = messages.into_iter().map(|message| self.convert(message));
                seen.collect()
            };
            Ok(timeline.with_messages(messages.map(seen)))
        })
    }

    fn newest_events(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(async { Ok(self.client.newest_events().await) })
    }

    fn receivers<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Receiver>> {
        Box::pin(async move { self.at(path).try_receivers().await.map_err(unchecked) })
    }

    fn sessions<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Vec<Session>> {
        Box::pin(async move { self.at(path).try_sessions().await.map_err(unchecked) })
    }

    /// Accepts the session briefly if no list of sessions has their states.
    fn session_state<'a>(
        &'a self,
        path: &'a str,
        session: &'a str,
    ) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(async move {
            let client = self.at(path);
            let state = match client.backend().control_url() {
                Some(_) => client.listed_session_state(session).await,
                None => client.state_of_free_session(session).await,
            };
            state.map_err(unchecked)
        })
    }

    fn wait_idle(&self, within: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.client.wait_idle(within).await.map_err(unchecked) })
    }

    /// A namespace that runs elsewhere does not count locks.
    fn check_counts(&self, path: &str, names: &[&str]) -> Result<(), AssertionFailed> {
        let counts_locks = names.contains(&"locked");
        if counts_locks && self.client.backend().control_url().is_none() {
            let what =
                format!("how many messages of {path} are locked, which only an emulator counts");
            return Err(unchecked(ControlError::Unsupported { what }.into()));
        }
        Ok(())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

impl SubQueueClient {
    async fn listed_session_state(&self, session: &str) -> Result<Option<Bytes>, Error> {
        let mut sessions = self.try_sessions().await?.into_iter();
        let own = sessions.find(|found| found.session_id == session);
        Ok(own.and_then(|found| found.state))
    }

    async fn state_of_free_session(&self, session: &str) -> Result<Option<Bytes>, Error> {
        let session = self.accept_session(session).result().await?;
        let state = session.state().result().await;
        session.close().result().await?;
        state
    }
}

fn unchecked(error: Error) -> AssertionFailed {
    AssertionFailed::unchecked(error.to_string())
}

//! How an assertion looks at a namespace: again and again up to its deadline, and once more at everything that explains a failure.
//!
//! What is expected, and what is said of what was found, is decided elsewhere, by messages and records alone.

use std::time::Duration;

use super::{
    AssertionFailed, Expectation,
    failure::{Report, listing},
    hint,
    selector::Selector,
};
use crate::{background::Stopwatch, clients::SubQueueClient, error::Error};

/// The pauses between two looks: short at first, for most things have happened already.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

impl<K> Expectation<K> {
    /// Looks until it finds what is expected; else fails with what `failed` says of what it found last.
    pub(crate) async fn expect<T, L, F>(
        &self,
        look: impl Fn() -> L,
        is_expected: impl Fn(&T) -> bool,
        failed: impl FnOnce(T) -> F,
    ) -> Result<(), AssertionFailed>
    where
        L: Future<Output = Result<T, Error>>,
        F: Future<Output = AssertionFailed>,
    {
        let looked = async {
            known(&self.client).await?;
            poll(self.criteria.within, look, is_expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => Err(failed(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }

    /// Looks once the namespace is idle, and fails where it finds something.
    pub(crate) async fn expect_none<F: Future<Output = AssertionFailed>>(
        &self,
        look: impl Future<Output = Result<usize, Error>>,
        failed: impl FnOnce(usize) -> F,
    ) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            self.client.wait_idle(self.criteria.within).await?;
            look.await
        };
        match looked.await {
            Ok(0) => Ok(()),
            Ok(found) => Err(failed(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

/// Looks until `look` finds what is expected; else returns what it found last.
pub(crate) async fn poll<T, F>(
    within: Duration,
    look: impl Fn() -> F,
    is_expected: impl Fn(&T) -> bool,
) -> Result<Looked<T>, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let started = Stopwatch::start();
    let [mut pause, longest] = PAUSES;
    loop {
        let found = look().await?;
        if is_expected(&found) {
            return Ok(Looked::Expected);
        }
        if started.elapsed() >= within {
            return Ok(Looked::Otherwise(found));
        }
        tokio::time::sleep(pause.min(within)).await;
        pause = (pause * 2).min(longest);
    }
}

/// How looking ended.
pub(crate) enum Looked<T> {
    Expected,
    Otherwise(T),
}

/// Fails at once when the queue or subscription does not exist, with the names of those that do.
pub(crate) async fn known(client: &SubQueueClient) -> Result<(), Error> {
    match client.unknown_if(true).await {
        Some(unknown) => Err(unknown.into()),
        None => Ok(()),
    }
}

impl Report {
    /// Looks at everything around a client. What cannot be had is left out: the failure itself matters more.
    pub(crate) async fn of(client: &SubQueueClient) -> Self {
        Self::around(client, &client.dead_letter_queue()).await
    }

    /// The same with what could not be forwarded instead of the other dead letters, if there is anything.
    pub(crate) async fn with_transfers(client: &SubQueueClient) -> Self {
        if !client.is_owner() {
            return Self::of(client).await;
        }
        let report = Self::around(client, &client.transfer_dead_letter_queue()).await;
        Self {
            shows_dead: !report.dead.is_empty(),
            ..report
        }
    }

    /// The same with the sessions, and what happened to one of them.
    pub(crate) async fn with_session(client: &SubQueueClient, id: &str) -> Self {
        let report = Self::of(client).await;
        let listed = client.try_sessions().await.unwrap_or_default();
        let of_session = report.timeline.of_session(id);
        let mut sessions = vec![listing(client.path(), &listed)];
        if !of_session.events().is_empty() {
            sessions.push(of_session.titled(&format!("session {id}")).to_string());
        }
        Self { sessions, ..report }
    }

    async fn around(client: &SubQueueClient, dead_letter_queue: &SubQueueClient) -> Self {
        let owner = client.owner();
        Self {
            subject: client.path().to_owned(),
            owner: owner.path().to_owned(),
            declared: client.declared().await,
            live: owner.try_peek().await.unwrap_or_default(),
            dead: dead_letter_queue.try_peek().await.unwrap_or_default(),
            dead_letter_queue: dead_letter_queue.path().to_owned(),
            timeline: owner.try_timeline().await.unwrap_or_default(),
            shows_dead: !client.is_owner(),
            sessions: Vec::new(),
            examined: Vec::new(),
            which: Selector::default(),
            receivers: owner.try_receivers().await.ok(),
        }
    }
}

/// Describes the messages of these clients, which no receiver has taken.
pub(crate) async fn left_behind(clients: &[SubQueueClient]) -> String {
    let mut parts = Vec::new();
    for client in clients {
        let found = match client.try_counts().await {
            Ok(counts) => counts.to_string(),
            Err(error) => error.to_string(),
        };
        let expected = format!("expected nothing to be left when the test ended, found {found}");
        let report = Report::of(client).await;
        let hint = hint::general(&report);
        parts.push(report.hinted_failure(&expected, hint).to_string());
    }
    parts.join("\n\n")
}

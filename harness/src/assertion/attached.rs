//! Waits for the first receiver of the code under test.

use std::time::Duration;

use servicebus_assertions::{connecting_hint, text};

use super::namespace_probe::NamespaceProbe;
use crate::{
    action::Action,
    background::Stopwatch,
    clients::SubQueueClient,
    error::{Error, ErrorKind},
};

/// The interval between two polls.
const PAUSE: Duration = Duration::from_millis(5);

impl SubQueueClient {
    /// Waits until a client of the code under test receives here: a receiver is attached and has credit, or waits for a
    /// session. The test's own receives do not count.
    ///
    /// A [subscription of JMS](crate::ServiceBus::jms_subscription) need not exist yet: the client creates it.
    ///
    /// A test that starts a worker in a task of its own waits for the worker before it advances the clock or waits for an
    /// idle namespace: neither of these waits for a worker that has not connected yet.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: ServiceBus, work: impl Future<Output = ()> + Send + 'static) {
    /// let orders = servicebus.queue("orders");
    /// tokio::spawn(work);
    /// orders.wait_for_receiver().await;
    /// orders.send("12").await;
    /// servicebus.wait_idle().await;
    /// assert_completed!(orders).await;
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if no client comes in time: within 5 s, or what [`Builder::within`](crate::Builder::within) sets.
    #[track_caller]
    pub fn wait_for_receiver(&self) -> Action<'_, ()> {
        self.wait_for_receiver_within(self.connections.within)
    }

    /// Waits until a client of the code under test receives here, up to a deadline in real time.
    #[track_caller]
    pub fn wait_for_receiver_within(&self, within: Duration) -> Action<'_, ()> {
        Action::new(self.run(move |client| async move { client.poll_receivers(within).await }))
    }

    async fn poll_receivers(self, within: Duration) -> Result<(), Error> {
        let started = Stopwatch::start();
        loop {
            let found = self.try_receivers().await;
            let is_late = started.elapsed() >= within;
            match found {
                Ok(receivers) if !receivers.is_empty() => return Ok(()),
                Ok(_) if is_late => return Err(self.no_receiver(within).await),
                Err(error) if is_late || !self.is_created_on_attach() => return Err(error),
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Returns whether the client that comes to receive may create the subscription: only JMS clients create subscriptions
    /// with `$` in their names. The kind of error cannot show that: a subscription may be missing at one poll and exist at
    /// the next.
    fn is_created_on_attach(&self) -> bool {
        self.owner_path().contains('$')
    }

    async fn no_receiver(&self, within: Duration) -> Error {
        let within = text::seconds(within);
        let mut sentence = format!("{self}: no client attached a receiver within {within}");
        let probe = NamespaceProbe::new(self.clone(), None);
        if let Some(why) = connecting_hint(&probe, self.sub_queue()).await {
            sentence += &format!("\n\nhint: {why}");
        }
        self.error(ErrorKind::Timeout, sentence)
    }
}

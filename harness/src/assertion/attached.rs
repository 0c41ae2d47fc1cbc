//! Clients of the code under test that receive: expecting them, and waiting for the first.

use std::time::Duration;

use servicebus_control_api::Receiver;

use super::{AssertionFailed, Attached, Expectation, Report, hint, recorded::Number};
use crate::{
    action::Action,
    background::Stopwatch,
    clients::SubQueueClient,
    error::{Error, ErrorKind},
    text,
};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

impl Expectation<Attached> {
    pub(crate) async fn check(self) -> Result<(), AssertionFailed> {
        let failure = async |receivers: Vec<Receiver>| {
            let report = Report::of(&self.client).await;
            let hint = hint::connecting(&report);
            report.hinted_failure(&self.sentence(&receivers), hint)
        };
        let is_expected = |receivers: &Vec<Receiver>| self.is_expected(receivers);
        self.expect(|| self.look(), is_expected, failure).await
    }

    async fn look(&self) -> Result<Vec<Receiver>, Error> {
        self.client.try_receivers().await
    }

    fn is_expected(&self, found: &[Receiver]) -> bool {
        let meant = found.iter().filter(|receiver| {
            let mut target = self.criteria.target.iter();
            target.all(|text| text.matches(Some(&receiver.client)))
        });
        self.criteria.number.is(meant.count() as u64)
    }

    fn sentence(&self, found: &[Receiver]) -> String {
        let (Number::AtLeast(number) | Number::Exactly(number)) = self.criteria.number;
        let wanted = text::count(usize::try_from(number).unwrap_or(usize::MAX), "receiver");
        let target = self
            .criteria
            .target
            .as_ref()
            .map(|text| format!(" of {text}"));
        let target = target.unwrap_or_default();
        let within = text::seconds(self.criteria.within);
        let found = match found {
            [] => "none".to_owned(),
            found => {
                Vec::from_iter(found.iter().map(|receiver| receiver.client.as_str())).join(", ")
            }
        };
        format!("expected {wanted}{target} to be attached, found {found} within {within}")
    }
}

impl SubQueueClient {
    /// Waits until a client of the code under test receives here: a receiver is attached and has asked for messages, or
    /// waits for a session. The test's own receives do not count.
    ///
    /// A test that starts a worker in a task of its own waits for it before it moves the clock or waits for an idle
    /// namespace: until then neither knows that there will be a worker.
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
    /// When none comes in time: within 5 s, or what [`Builder::within`](crate::Builder::within) says.
    #[track_caller]
    pub fn wait_for_receiver(&self) -> Action<'_, ()> {
        self.wait_for_receiver_within(self.connections.within)
    }

    /// Waits until a client of the code under test receives here, up to a deadline in real time.
    ///
    /// # Panics
    ///
    /// When none comes in time.
    #[track_caller]
    pub fn wait_for_receiver_within(&self, within: Duration) -> Action<'_, ()> {
        Action::new(self.run(move |client| async move { client.found_receiver(within).await }))
    }

    async fn found_receiver(self, within: Duration) -> Result<(), Error> {
        let started = Stopwatch::start();
        while self.try_receivers().await?.is_empty() {
            if started.elapsed() >= within {
                let within = text::seconds(within);
                let mut sentence = format!("{self}: no client came to receive within {within}");
                if let Some(why) = hint::connecting(&Report::of(&self).await) {
                    sentence += &format!("\n\nhint: {why}");
                }
                return Err(self.error(ErrorKind::Timeout, sentence));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

//! Clients of the code under test receive from a queue.

use std::time::Duration;

use super::{
    AssertionFailed, Looked, ProbeError, Report, expectation::Expectation, hint, known, poll,
    recorded::Number,
};
use servicebus_control_api::Receiver;

use crate::{clients::SubQueueClient, matcher::Text, text};

/// Expects receivers that have asked for messages.
#[derive(Debug)]
pub(super) struct AttachedReceivers {
    client: SubQueueClient,
    target: Option<Text>,
    number: Number,
    within: Duration,
}

impl AttachedReceivers {
    pub(super) fn new<K>(expectation: Expectation<K>) -> Self {
        Self {
            client: expectation.client,
            target: expectation.target,
            number: expectation.number,
            within: expectation.within,
        }
    }

    pub(super) async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            let expected = |found: &Vec<Receiver>| self.is_expected(found);
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => {
                let report = Report::of(&self.client).await;
                let hint = hint::connecting(&report);
                Err(report.hinted_failure(&self.sentence(&found), hint))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }

    async fn look(&self) -> Result<Vec<Receiver>, ProbeError> {
        Ok(self.client.try_receivers().await?)
    }

    fn is_expected(&self, found: &[Receiver]) -> bool {
        let meant = found.iter().filter(|receiver| {
            let mut target = self.target.iter();
            target.all(|text| text.matches(Some(&receiver.client)))
        });
        let meant = meant.count() as u64;
        match self.number {
            Number::AtLeast(number) => meant >= number,
            Number::Exactly(number) => meant == number,
        }
    }

    fn sentence(&self, found: &[Receiver]) -> String {
        let (Number::AtLeast(number) | Number::Exactly(number)) = self.number;
        let wanted = text::count(usize::try_from(number).unwrap_or(usize::MAX), "receiver");
        let target = self.target.as_ref().map(|text| format!(" of {text}"));
        let target = target.unwrap_or_default();
        let within = text::seconds(self.within);
        let found = match found {
            [] => "none".to_owned(),
            found => {
                Vec::from_iter(found.iter().map(|receiver| receiver.client.as_str())).join(", ")
            }
        };
        format!("expected {wanted}{target} to be attached, found {found} within {within}")
    }
}

//! A queue holds nothing.

use super::{AssertionFailed, Expectation, Kind, Looked, ProbeError, Report, known, poll};
use crate::{
    clients::{Counts, EntityClient},
    text,
};

/// Expects a queue, or a dead-letter queue, to hold no message of any state.
#[derive(Debug, Clone)]
pub struct Empty;

impl Empty {
    /// Expects it of this queue.
    pub fn of(client: &impl EntityClient) -> Expectation<Self> {
        Expectation::new(client, Self)
    }
}

impl Expectation<Empty> {
    async fn look(&self) -> Result<Counts, ProbeError> {
        Ok(self.client.try_counts().await?)
    }
}

impl Kind for Empty {
    async fn check(expectation: Expectation<Self>) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&expectation.client).await?;
            let is_empty = |counts: &Counts| counts.present() == 0;
            poll(expectation.within, || expectation.look(), is_empty).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(counts)) => {
                let report = Report::of(&expectation.client).await;
                let found = text::count(usize::try_from(counts.present()).unwrap_or(0), "message");
                let within = text::seconds(expectation.within);
                let expected = format!("expected to be empty, found {found} after {within}");
                Err(report.plain_failure(&expected))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

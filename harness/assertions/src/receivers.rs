//! Assertions about attached receivers of the code under test.

use servicebus_control_api::Receiver;

use crate::{
    assertion::{Assertion, Number},
    hint,
    report::{AssertionFailed, Report},
    text,
};

impl Assertion {
    /// Counts the selected receivers.
    pub(crate) fn attached(&self, found: &[Receiver]) -> u64 {
        let selected = found.iter().filter(|receiver| {
            let mut to = self.to.iter();
            to.all(|text| text.matches(Some(&receiver.client)))
        });
        selected.count() as u64
    }

    pub(crate) fn not_attached(&self, report: &Report, found: &[Receiver]) -> AssertionFailed {
        let (Number::AtLeast(number) | Number::Exactly(number)) = self.number;
        let wanted = text::count(number, "receiver");
        let client = self.to.as_ref().map(|text| format!(" of {text}"));
        let client = client.unwrap_or_default();
        let within = text::seconds(self.within);
        let found = match found {
            [] => "none".to_owned(),
            found => {
                Vec::from_iter(found.iter().map(|receiver| receiver.client.as_str())).join(", ")
            }
        };
        let sentence =
            format!("expected {wanted}{client} to be attached, found {found} within {within}");
        report.hinted_failure(&sentence, hint::connecting(report))
    }
}

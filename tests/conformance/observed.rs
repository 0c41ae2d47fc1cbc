//! What cases see through the SDK, written down for a comparison of two targets.
//!
//! Of a message that is everything but its lock and its times, which are different in every run.

use std::fmt::Debug;

use servicebus_harness::azservicebus::ServiceBusReceivedMessage;
use servicebus_harness::observe;

/// Something that the SDK returned and that can be written down.
pub(crate) trait Shown: Sized {
    /// Writes it down under this name.
    fn shown(self, what: &str) -> Self;
}

impl<T: Shown, E: Debug> Shown for Result<T, E> {
    fn shown(self, what: &str) -> Self {
        match self {
            Ok(value) => Ok(value.shown(what)),
            Err(error) => {
                observe(what, format!("{error:?}"));
                Err(error)
            }
        }
    }
}

impl Shown for () {
    fn shown(self, what: &str) -> Self {
        observe(what, "ok");
    }
}

impl Shown for Vec<ServiceBusReceivedMessage> {
    fn shown(self, what: &str) -> Self {
        for message in &self {
            observe(what, described(message));
        }
        self
    }
}

impl Shown for ServiceBusReceivedMessage {
    fn shown(self, what: &str) -> Self {
        observe(what, described(&self));
        self
    }
}

fn described(message: &ServiceBusReceivedMessage) -> String {
    let body = message.body().map(|body| match body.len() {
        0..=200 => format!("{:?}", String::from_utf8_lossy(body)),
        long => format!("{long} bytes"),
    });
    let texts = [
        ("id", message.message_id().map(Into::into)),
        ("session", message.session_id().map(str::to_owned)),
        ("subject", message.subject().map(str::to_owned)),
        ("to", message.to().map(str::to_owned)),
        ("reply to", message.reply_to().map(str::to_owned)),
        ("correlation id", message.correlation_id().map(Into::into)),
        ("content type", message.content_type().map(str::to_owned)),
        ("partition key", message.partition_key().map(str::to_owned)),
        (
            "dead-letter source",
            message.dead_letter_source().map(str::to_owned),
        ),
        (
            "dead-letter reason",
            message.dead_letter_reason().map(str::to_owned),
        ),
        (
            "description",
            message.dead_letter_error_description().map(str::to_owned),
        ),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(name, text)| Some(format!(", {name} {:?}", text?)));
    let properties = message.application_properties().map(|properties| {
        let mut listed = Vec::from_iter(properties.0.iter().map(|pair| format!("{pair:?}")));
        listed.sort();
        format!(", properties {}", listed.join(" "))
    });
    format!(
        "{}, number {}, enqueued as {}, delivery {:?}, {:?}, time to live {:?}{}{}",
        body.unwrap_or_else(|error| format!("no data: {error:?}")),
        message.sequence_number(),
        message.enqueued_sequence_number(),
        message.delivery_count(),
        message.state(),
        message.time_to_live(),
        String::from_iter(texts),
        properties.unwrap_or_default(),
    )
}

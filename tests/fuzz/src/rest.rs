//! REST: what is accepted is shown, in an answer that is bounded by the message, and a body sent is the body received.

use std::sync::LazyLock;

use bytes::Bytes;
use servicebus_broker::{
    BrokerProperties, Delivery, LockToken, Message, SequenceNumber, Timestamp,
};
use servicebus_emulator::fuzz::{Mapped, body_of_batch, message_of_request, shown};

use crate::world::{Ids, NOW};
use crate::{Input, altered, altered_text, message};

/// How many times longer an answer may be than its message, and by how much beside that: escapes make six characters of
/// one byte, keys that are not texts are written as texts, and instants as dates.
const FACTOR: usize = 64;
const OVERHEAD: usize = 2048;

static PROPERTIES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let text = r#"{"ContentType":"a/b","CorrelationId":"c","SessionId":"s","MessageId":"m","Label":"l","ReplyTo":"r",
        "TimeToLive":90.5,"To":"t","ScheduledEnqueueTimeUtc":"Sun, 06 Nov 1994 08:49:37 GMT","ReplyToSessionId":"x",
        "PartitionKey":"s","ViaPartitionKey":"v","TimeToLiveTimeSpan":"0.00:00:40","ForcePersistence":true}"#;
    vec![text.as_bytes().to_vec(), b"{}".to_vec()]
});
static BATCHES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let text = r#"[{"Body":"first","BrokerProperties":{"Label":"M1","TimeToLiveTimeSpan":"0.00:00:40"}},
        {"Body":"second","UserProperties":{"Priority":"Low","Weight":2,"Rate":0.5,"Late":false,"None":null}},
        {"Body":"aGk=","IsBodyBase64Encoded":true},{}]"#;
    vec![text.as_bytes().to_vec(), b"[{}]".to_vec()]
});

/// A message that came over AMQP, a request with one, or a batch.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    match input.below(3) {
        0 => {
            let payload = Bytes::from(message::payload(&mut input));
            if let Some(mapped) = map(payload.clone()) {
                bounded(&mapped, payload.len());
            }
        }
        1 => request(&mut input),
        _ => {
            let batch = altered(&mut input, &BATCHES);
            match body_of_batch(&batch, NOW) {
                Ok(messages) => messages.into_iter().for_each(|message| drop(map(message))),
                Err(refusal) => assert!(refusal.len() < 2048, "{refusal}"),
            }
        }
    }
}

fn request(input: &mut Input<'_>) {
    let body = input.bytes(64);
    let headers: Vec<_> = (0..input.below(4))
        .map(|_| (input.word(12), input.bytes(32).to_vec()))
        .collect();
    let properties = altered_text(input, &PROPERTIES);
    if let Some(message) = message_of_request(&properties, &headers, body, NOW)
        && let Some(mapped) = map(message)
    {
        assert_eq!(mapped.body, body, "the body changed on its way");
    }
}

fn map(payload: Bytes) -> Option<Mapped> {
    let message = Message::parse(payload, &mut Ids::default()).ok()?;
    let now = Timestamp::from_millis(NOW);
    let token = LockToken::from(uuid::Uuid::nil());
    let broker_properties = BrokerProperties {
        delivery_count: 0,
        time_to_live: message.time_to_live(),
        sequence_number: SequenceNumber(7),
        enqueued_sequence_number: None,
        enqueued_at: now,
        lock: Some((token.uuid(), now)),
        is_removed: false,
        state: None,
    };
    let delivery = Delivery {
        token,
        broker_properties,
        message,
    };
    Some(shown(&delivery).expect("what is accepted is shown"))
}

fn bounded(mapped: &Mapped, sent: usize) {
    let answered = mapped.headers + mapped.body.len();
    assert!(
        answered <= FACTOR * sent + OVERHEAD,
        "{answered} bytes for {sent}"
    );
}

//! The cost of parsing a message on arrival, and of writing its new header and annotations on delivery.

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use servicebus_broker::{BrokerProperties, LockToken, Message, SequenceNumber, Timestamp};
use uuid::Uuid;

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::local::Counter;
use crate::report::Report;
use crate::statistics::Rounds;

const BODIES: [usize; 3] = [256, 1024, 16 * 1024];

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let times = effort.pick(100, 200_000);
    for body in BODIES {
        let encoded = Bytes::from(message(body, None));
        let (mut parse, mut encode) = (Rounds::default(), Rounds::default());
        for _ in 0..effort.rounds() {
            parse.push(parsing(&encoded, times));
            encode.push(encoding(&encoded, times)?);
        }
        report.note(
            &format!("parse and keep, {body} bytes"),
            format!("{parse} ns"),
        );
        report.note(
            &format!("encode and copy out, {body} bytes"),
            format!("{encode} ns"),
        );
    }
    Ok(())
}

fn parsing(encoded: &Bytes, times: u32) -> f64 {
    let mut ids = Counter::default();
    let begin = Instant::now();
    for _ in 0..times {
        let parsed = Message::parse(black_box(encoded.clone()), &mut ids);
        black_box(parsed.is_ok());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(times)
}

fn encoding(encoded: &Bytes, times: u32) -> Result<f64, Box<dyn std::error::Error>> {
    let message = Message::parse(encoded.clone(), &mut Counter::default())?;
    let broker_properties = broker_properties();
    let mut out = Vec::new();
    let begin = Instant::now();
    for _ in 0..times {
        out.clear();
        let tail = black_box(&message).encode(black_box(&broker_properties), 0, &mut out)?;
        out.extend_from_slice(&tail);
        black_box(&out);
    }
    Ok(begin.elapsed().as_nanos() as f64 / f64::from(times))
}

fn broker_properties() -> BrokerProperties {
    let now = Timestamp::from_millis(1_700_000_000_000);
    let token = LockToken::from(Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef));
    BrokerProperties {
        delivery_count: 0,
        time_to_live: None,
        sequence_number: SequenceNumber(1_000_000),
        enqueued_sequence_number: None,
        enqueued_at: now,
        lock: Some((token.uuid(), now)),
        is_removed: false,
        state: None,
    }
}

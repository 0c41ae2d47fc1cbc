//! Cases that take too long to reach from outside: counters at the end of their range.

use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::attach::AttachReply;
use crate::config::Config;
use crate::connection::{Connection, Delivery};
use crate::event::Event;
use crate::ids::{DeliveryNumber, LinkId};
use crate::unsettled::Outcome;
use crate::wire::{disposition, frame};

const BEFORE_WRAP: u32 = u32::MAX - 1;

fn send(connection: &mut Connection, body: &[u8]) {
    let mut out = Vec::new();
    let start = frame::begin(&mut out, frame::AMQP, 0);
    out.extend_from_slice(body);
    frame::end(&mut out, start);
    connection.receive(Duration::ZERO, &mut BytesMut::from(&out[..]));
}

/// A connection with a receiver whose session and link counters are almost at their maximum.
fn worn() -> (Connection, LinkId) {
    let mut connection = Connection::new(Config::default(), Duration::ZERO);
    let header = BytesMut::from(&b"AMQP\x00\x01\x00\x00"[..]);
    connection.receive(Duration::ZERO, &mut { header });
    send(&mut connection, &[0, 0x53, 0x10, 0xc0, 4, 1, 0xa1, 1, b'c']);
    send(
        &mut connection,
        &[0, 0x53, 0x11, 0xc0, 5, 4, 0x40, 0x43, 0x43, 0x43],
    );
    send(
        &mut connection,
        &[0, 0x53, 0x12, 0xc0, 6, 3, 0xa1, 1, b'r', 0x43, 0x41],
    );
    connection.poll_event();
    let Some(Event::Attach { link, .. }) = connection.poll_event() else {
        panic!("no attach");
    };
    connection.accept_attach(link, AttachReply::default());
    let session = connection.sessions.of_mut(link).unwrap();
    session.next_outgoing_id = BEFORE_WRAP;
    session.next_delivery = (2 << 32) - 2;
    let outgoing = session.link_by_id(link).unwrap().outgoing().unwrap();
    outgoing.delivery_count = BEFORE_WRAP;
    let [a, b, c, d] = BEFORE_WRAP.to_be_bytes();
    let id = [0x70, a, b, c, d];
    // Window 10, nothing outgoing, handle 0, the same count, credit 5.
    let fields = [&id[..], &[0x52, 10, 0x43, 0x43, 0x43], &id, &[0x52, 5]].concat();
    let flow = [&[0, 0x53, 0x13, 0xc0, 18, 7][..], &fields].concat();
    send(&mut connection, &flow);
    let event = connection.poll_event();
    assert!(
        matches!(event, Some(Event::Credit { credit: 5, .. })),
        "{event:?}"
    );
    let written = connection.output().len();
    connection.output().advance(written);
    (connection, link)
}

fn deliver(connection: &mut Connection, link: LinkId) -> u32 {
    let delivery = Delivery {
        tag: [0; 16],
        settled: false,
        message_format: 0,
        head: &[],
        tail: Bytes::new(),
    };
    connection.deliver(link, delivery).unwrap().0
}

#[test]
fn ids_windows_and_credit_wrap_together() {
    let (mut connection, link) = worn();
    let ids: Vec<u32> = (0..4).map(|_| deliver(&mut connection, link)).collect();
    assert_eq!(ids, [BEFORE_WRAP, u32::MAX, 0, 1]);
    assert_eq!(connection.credit(link), 1);
    let session = connection.sessions.of(link).unwrap();
    assert_eq!((session.next_outgoing_id, session.remote_window), (2, 6));
    let written = connection.output().len();
    connection.output().advance(written);

    let mut theirs = Vec::new();
    let range = (BEFORE_WRAP, 1);
    disposition::write(&mut theirs, 0, true, range, true, &Outcome::Accepted.into());
    connection.receive(Duration::ZERO, &mut BytesMut::from(&theirs[..]));
    let notified: Vec<u32> = std::iter::from_fn(|| connection.poll_event())
        .map(|event| {
            let Event::Settle(settlement) = event else {
                panic!("{event:?}");
            };
            settlement.delivery.0
        })
        .collect();
    assert_eq!(notified, ids);
    assert_eq!(connection.sessions.of(link).unwrap().unsettled.len(), 0);
}

#[test]
fn a_range_of_answers_wraps() {
    let (mut connection, link) = worn();
    let ids: Vec<u32> = (0..4).map(|_| deliver(&mut connection, link)).collect();
    let written = connection.output().len();
    connection.output().advance(written);
    for id in ids {
        connection.settle(link, DeliveryNumber(id), Outcome::Accepted);
    }
    let mut slices = [std::io::IoSlice::new(&[])];
    assert_eq!(connection.output().chunks(&mut slices), 1);
    let answer = disposition::read(&slices[0][8..]).unwrap();
    assert_eq!((answer.first, answer.last), (BEFORE_WRAP, 1));
    assert!(!answer.from_receiver && answer.settled);
}

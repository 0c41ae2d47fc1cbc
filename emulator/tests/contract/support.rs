//! The parts of the tests: an emulator, and clients that send exactly what a test passes to them.
//!
//! Nothing here knows what is right. Clients block, with a deadline on every wait, and a panic shows what was awaited and
//! what arrived instead.

mod admin;
mod bus;
mod http;
mod jms;
mod link;
mod node;
mod peer;
mod process;
mod receiving;
mod rest;
mod transactions;

pub(crate) use admin::{
    Admin, HOST, Reply as AtomReply, entry, queue, rule, sql_filter, subscription, topic_entry,
};
pub(crate) use bus::{
    Bus, client_now, in_an_hour, now, parse, properties, queues, rules, sql, topic,
};
pub(crate) use http::{Answer, Http, Response, members};
pub(crate) use jms::symbols;
pub(crate) use link::{Attach, Link};
pub(crate) use node::{
    Node, Reply, assert_lock_lost, disposition, ids, numbers, peek_from, peeked, receive_by,
    received, refused_with, schedule, scheduled, token_request, tokens,
};
pub(crate) use peer::{Open, Peer};
pub(crate) use process::{
    FREE_PORTS, Process, failure, own_loopback, printed, run, run_into, signal, spawn,
};
pub(crate) use receiving::{
    BATCH, Delivery, abandoned, accepted, batch, dead_lettered, deferred, refused, released,
};
pub(crate) use rest::{Rest, http_date, root_token};
pub(crate) use servicebus_test_support::stream::Stream;
pub(crate) use servicebus_test_support::{
    frame::{
        AMQP_HEADER, ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, END, FLOW, Frame, OPEN,
        SASL_HEADER, ServiceError, TRANSFER, performative, refusal_of, sasl_init, untracked,
    },
    message::{DELIVERY_ANNOTATIONS, FOOTER, MESSAGE_ANNOTATIONS, Message, Received, section},
    temporary::{TemporaryDirectory, TemporaryFile},
    value::{
        batch_limit, binary, composite, described_list, list, long, map, nested, symbol, text,
        timestamp, uint, ulong, uuid,
    },
};
pub(crate) use transactions::{
    described, discharge, filling_sessions, filter, granted, in_session, in_transaction,
    locked_until, peek_in, send_all, sessions,
};

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Timeout of everything, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Held by tests of messages of 100 MiB: concurrent ones would compete for the machine's memory, and polls are watched.
pub(crate) fn alone_with_large_messages() -> MutexGuard<'static, ()> {
    static LARGE: Mutex<()> = Mutex::new(());
    LARGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until the condition gives a value; panics with `what` after [`TIMEOUT`].
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "in vain waited for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until something is the case.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    eventually(what, || is_so().then_some(()));
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?} is not in {text:?}");
}

#[track_caller]
pub(crate) fn assert_starts_with(text: &str, start: &str) {
    assert!(text.starts_with(start), "{start:?} does not begin {text:?}");
}

#[track_caller]
pub(crate) fn assert_ends_with(text: &str, end: &str) {
    assert!(text.ends_with(end), "{end:?} does not end {text:?}");
}

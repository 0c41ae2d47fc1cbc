//! Several receivers of one queue's sessions, and some that go away while they wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use servicebus_harness::prelude::*;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::receiver::{abandon, accept_next, close, complete, complete_all, receive, receive_one};
use super::{bus, cart};
use crate::conformance::client::{
    NOTHING, body, connect, connect_with, connected, custom_endpoint, done, send, within,
};

const WORKERS: usize = 4;
const SESSIONS: u64 = 24;
/// What each session holds, in its order.
const BODIES: [&str; 3] = ["a", "b", "c"];

/// Each worker takes a session, gives its first message back once, and works it off.
#[tokio::test]
async fn every_session_is_processed_once_and_in_order() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = BODIES
        .iter()
        .flat_map(|&text| (0..SESSIONS).map(move |session| cart(&format!("cart-{session}"), text)));
    send(&mut client, "carts", messages).await;

    let (done, mut worked_off) = mpsc::unbounded_channel();
    let servicebus = Arc::new(servicebus);
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        workers.spawn(work(Arc::clone(&servicebus), done.clone()));
    }
    let mut seen = BTreeMap::new();
    for _ in 0..SESSIONS {
        let worked = within("a session's end", worked_off.recv()).await;
        let (session, bodies) = worked.expect("the workers go on");
        let before = seen.insert(session, bodies);
        assert_eq!(before, None, "a session was worked off twice");
    }
    for (session, bodies) in &seen {
        assert_eq!(bodies, &BODIES, "of {session}");
    }
    assert_completed!(servicebus.queue("carts"), count = 3 * SESSIONS).await;
    assert_empty!(servicebus.queue("carts")).await;
    workers.shutdown().await;
}

/// A client that waits lives on a runtime of its own: with that its connection goes, without a word.
#[tokio::test]
async fn a_lost_waiting_receiver_keeps_no_session() {
    let servicebus = bus().await;
    let connection_string = servicebus.connection_string().to_owned();
    let custom_endpoint = custom_endpoint(&servicebus);
    let vanishing = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        runtime.block_on(async {
            let mut client = connect_with(&connection_string, custom_endpoint).await;
            let accepting = client.accept_next_session_for_queue("carts", Default::default());
            let waiting = tokio::time::timeout(NOTHING, Box::pin(accepting));
            assert!(waiting.await.is_err(), "there is no session to accept");
        });
    });
    done("the other client's end", vanishing).await;

    let mut client = connect(&servicebus).await;
    send(&mut client, "carts", [cart("1", "late")]).await;
    let mut receiver = accept_next(&mut client, "carts").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "late");
    assert_eq!(message.delivery_count(), Some(1));
    complete(&mut receiver, &message).await;
}

/// Works off one session after the other, and tells what it received of each.
async fn work(servicebus: Arc<ServiceBus>, done: mpsc::UnboundedSender<(String, Vec<String>)>) {
    let mut client = connect(&servicebus).await;
    loop {
        let mut receiver = accept_next(&mut client, "carts").await;
        let first = receive_one(&mut receiver).await;
        abandon(&mut receiver, &first).await;
        let messages = receive(&mut receiver, 3).await;
        complete_all(&mut receiver, &messages).await;
        let worked = receiver.session_id().to_owned();
        close(receiver).await;
        let bodies = messages.iter().map(body).collect();
        if done.send((worked, bodies)).is_err() {
            return;
        }
    }
}

//! The lifetime of accepted tokens: by the real clock, whatever the namespace's time is (decision D19).

use std::io::{Read as _, Write as _};
use std::time::Duration;

use servicebus_emulator::Options;
use servicebus_emulator::auth::{Key, sas};

use super::{UNAUTHORIZED, keys, show, show_root, token};
use crate::support::*;

/// Lifetime of these tests' tokens, in seconds of real time, which no test can advance: long enough for a busy machine to do
/// meanwhile what the token allows.
const LIFE: i64 = 10;

#[test]
fn rights_end_when_their_token_expires() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let token = sas::sign("sb://localhost/a", &Key::well_known(), now() + LIFE);
    show(&mut peer, "sb://localhost/a", &token);
    let mut names = 0..;
    let refusal = eventually("the end of the token", || {
        let name = format!("link {}", names.next()?);
        match peer.attach(&Attach::sender("a").named(&name)) {
            Ok(link) => {
                peer.detach(&link);
                peer.next_handle = link.handle;
                None
            }
            Err(refusal) => Some(refusal),
        }
    });
    assert_eq!(refusal.condition, UNAUTHORIZED);
    bus.http.advance(3600.0);
    show_root(&mut peer, "sb://localhost/a");
    peer.sender("a");
}

#[test]
fn links_are_detached_when_their_token_expires() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let short = |resource: &str| sas::sign(resource, &Key::well_known(), now() + LIFE);
    show(&mut peer, "sb://localhost/a", &short("sb://localhost/a"));
    show_root(&mut peer, "sb://localhost/b");
    let (sender, receiver) = (peer.sender("a"), peer.receiver("a"));
    let management = peer.node("a/$management");
    let stays = peer.sender("b");
    peer.send(&sender, &Message::new("in time"));
    peer.credit(&receiver, 5);
    for link in [
        &sender,
        &receiver,
        &management.requests,
        &management.replies,
    ] {
        let refusal = peer.detached(link).refusal(2);
        assert_eq!(refusal.condition, "amqp:link:detach-forced");
        assert_contains(
            &refusal.text,
            "is force detached. Code: RenewToken. Details: Unauthorized access. ",
        );
    }
    peer.send(&stays, &Message::new("still allowed"));
    // The lock of a delivered message continues, as for any link that closes.
    assert_eq!(bus.http.held("a"), (1, 0));
    show_root(&mut peer, "sb://localhost/a");
    peer.sender("a");
}

#[test]
fn a_token_renewed_in_time_keeps_its_links() {
    let bus = keys();
    let mut peer = bus.unauthenticated_client();
    let end = now() + LIFE;
    let short = sas::sign("sb://localhost/a", &Key::well_known(), end);
    show(&mut peer, "sb://localhost/a", &short);
    let sender = peer.sender("a");
    show_root(&mut peer, "sb://localhost/a");
    until("the end of the first token", || now() > end);
    peer.send(&sender, &Message::new("after it"));
    assert_eq!(bus.http.held("a"), (1, 0));
}

#[test]
fn a_connection_without_a_token_is_closed_after_the_timeout() {
    // A client that has a token needs to show it in this time.
    let with_timeout = |setting: &str| {
        Bus::started(Options {
            config: parse(&queues(setting, &[("a", "")])),
            step_timeout: Duration::from_secs(5),
            ..Options::default()
        })
    };
    // No token is required where the namespace needs none.
    let open = with_timeout(r#""TokenCheck":"none""#);
    let mut first = open.unauthenticated_client();
    let mut unopened = Stream::plain(open.amqp);
    unopened.set_read_timeout(TIMEOUT);
    let header = b"AMQP\x00\x01\x00\x00";
    unopened.write_all(header).expect("it is connected");
    let bus = with_timeout("");
    let mut idle = bus.unauthenticated_client();
    let mut wrong = bus.unauthenticated_client();
    let forged = token("sb://localhost/a", "RootManageSharedAccessKey", "wrong");
    assert_eq!(
        wrong.put_token("sb://localhost/a", &forged).cbs_status(),
        401
    );
    let mut known = bus.client();
    for client in [&mut idle, &mut wrong] {
        let refusal = client.closed();
        assert_eq!(refusal.condition, UNAUTHORIZED);
        assert_contains(&refusal.text, "within 5 s");
    }
    known.sender("a");
    // It came before those whose time is over.
    first.sender("a");
    // But a connection is opened in that time.
    let mut written = Vec::new();
    let ended = unopened.read_to_end(&mut written);
    ended.expect("it is closed");
    assert_contains(
        &String::from_utf8_lossy(&written),
        "was not opened within 5 s",
    );
}

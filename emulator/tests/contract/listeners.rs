//! The listeners: the protocols of each, and input that gets no answer.

mod certificates;
mod first_bytes;
mod garbage;
mod tls;
mod websocket;

use crate::support::*;

/// Sends a message that is larger than what goes in one piece anywhere, and receives it.
fn send_and_receive(stream: Stream) {
    let mut peer = Peer::open_over(stream, &Open::default());
    peer.let_in();
    let sender = peer.sender("q");
    let body = vec![b'x'; 200_000];
    peer.send(&sender, &Message::new("large").body(body.clone()));
    let delivery = peer.receive_from("q");
    assert_eq!(delivery.message.data(), body);
    peer.complete(&delivery);
    peer.close();
}

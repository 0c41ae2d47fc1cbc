//! Waiting for a condition of the world outside, with a deadline.

use std::{
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

/// Waits until no process listens at an address.
pub(crate) fn until_gone(address: SocketAddr) {
    let started = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "a process still listens at {address}"
        );
        thread::yield_now();
    }
}

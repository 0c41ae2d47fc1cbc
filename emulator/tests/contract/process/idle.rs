//! Ending when no client is connected.

use std::io::Read as _;
use std::time::Duration;

use crate::support::*;

/// Long enough for a reader on any machine.
const SOME_TIME: Duration = Duration::from_secs(60);
const HOLD: &[u8] = b"GET /$emulator/v1/hold HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn an_emulator_that_nobody_uses_ends_by_itself() {
    let ended = Process::start(&["--exit-when-idle", "1"]).ended();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_hold_lasts_until_the_emulator_stops_and_does_not_stop_it() {
    let process = Process::start(&[]);
    let mut stream = std::net::TcpStream::connect(process.http().0).expect("HTTP accepts");
    let timeout = stream.set_read_timeout(Some(SOME_TIME));
    timeout.expect("a time-out can be set");
    std::io::Write::write_all(&mut stream, HOLD).expect("a request can be written");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("it is answered");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    process.signal("TERM");
    // An end in order, or for a client that is slow to read one without a word.
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(process.ended().code, Some(0));
}

//! The end of a process: exit code zero, and a close for every client. Also the end when no client is connected.

use std::io::Read as _;
use std::time::Duration;

use crate::support::*;

/// Ends the process in some way and checks that it closes its connections.
fn ends_well(arguments: &[&str], end: impl FnOnce(&mut Process)) {
    let mut process = Process::start(arguments);
    let mut peers = [process.client(), process.client()];
    let receiver = peers[0].receiver("queue.1");
    peers[0].credit(&receiver, 10);
    end(&mut process);
    for peer in &mut peers {
        let refusal = peer.closed();
        assert_eq!(refusal.condition, "amqp:connection:forced");
        assert_starts_with(&refusal.text, "The emulator is stopping. TrackingId:");
    }
    let ended = process.ended();
    assert_eq!(ended.code, Some(0));
    // It logs clients that were too busy to answer in two seconds.
    let is_meant = |line: &&str| !line.contains("connections were closed before they ended");
    let logged: Vec<&str> = ended.stderr.lines().filter(is_meant).collect();
    assert!(logged.is_empty(), "{logged:?}");
}

#[test]
fn sigint_and_sigterm_stop_the_emulator_cleanly() {
    ends_well(&[], |process| process.signal("INT"));
    ends_well(&[], |process| process.signal("TERM"));
}

#[test]
fn the_end_of_standard_input_stops_the_emulator_if_configured() {
    ends_well(&["--exit-with-stdin"], Process::close_stdin);
}

#[test]
fn the_end_of_standard_input_is_ignored_by_default() {
    let mut process = Process::start(&[]);
    process.close_stdin();
    let mut peer = process.client();
    peer.send_to("queue.1", &Message::new("m"));
    assert_eq!(process.http().held("queue.1"), (1, 0));
}

#[test]
fn unresponsive_clients_delay_a_stop_by_seconds_at_most() {
    let process = Process::start(&[]);
    // One in a handshake, one in a request, one that has sent nothing, one open.
    let mut handshaking = Peer::connect(process.amqp());
    handshaking.write(SASL_HEADER);
    let mut requesting = Peer::connect(process.http().0);
    requesting.write(b"POST /health HTTP/1.1\r\n");
    let silent = Peer::connect(process.amqp());
    let open = process.client();
    let start = std::time::Instant::now();
    let ended = process.ended_by("TERM");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // The emulator gives them two seconds here, and twenty to a client that has not come to the end of a handshake.
    assert!(start.elapsed().as_secs() < 18);
    drop((silent, open));
}

/// Long enough for a reader on any machine.
const SOME_TIME: Duration = Duration::from_secs(60);
const HOLD: &[u8] = b"GET /$emulator/v1/hold HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn an_emulator_with_an_idle_timeout_stops_without_clients() {
    let ended = Process::start(&["--exit-when-idle", "1"]).ended();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_clock_hold_does_not_delay_a_stop() {
    let process = Process::start(&[]);
    let mut stream = std::net::TcpStream::connect(process.http().0).expect("HTTP accepts");
    let timeout = stream.set_read_timeout(Some(SOME_TIME));
    timeout.expect("a time-out can be set");
    std::io::Write::write_all(&mut stream, HOLD).expect("a request can be written");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("it is answered");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    process.signal("TERM");
    // A clean end, or one without a close for a client that reads slowly.
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(process.ended().code, Some(0));
}

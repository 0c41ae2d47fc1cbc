//! The end of a process: exit code zero, and a close for every client. Also the end when no client is connected.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
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

#[test]
fn an_unread_standard_error_delays_nothing() {
    let (mut process, read_errors) = Process::start_unread(&FREE_PORTS, &[]);
    // Each makes the emulator log a line: many times what a pipe holds.
    for _ in 0..2_000 {
        let mut stream = TcpStream::connect(process.amqp()).expect("AMQP accepts");
        stream.write_all(b"\0").expect("it can be written");
        stream
            .set_read_timeout(Some(SOME_TIME))
            .expect("it can be set");
        // Its end, which may have come already.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert_eq!(process.http().get("/health").status, 200);
    process.signal("TERM");
    assert_eq!(process.exit_code(), Some(0));
    read_errors();
    let logged = process.ended().stderr;
    assert!(logged.lines().count() > 100, "{logged}");
}

/// It reads its certificate from a pipe, whose other end stays closed.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_start() {
    let temporary = TemporaryDirectory::unused();
    std::fs::create_dir_all(&temporary.0).expect("a directory");
    let pipe = format!("{}/pipe", temporary.path());
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo can be run").success());
    let certificate = ["--tls-certificate", &pipe, "--tls-key", &pipe];
    let mut process = spawn(&[&FREE_PORTS[..], &certificate].concat(), &[]);
    let status = format!("/proc/{}/status", process.id());
    eventually("a handler of SIGTERM", || {
        let status = std::fs::read_to_string(&status).expect("the kernel tells");
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))?;
        let caught = u64::from_str_radix(caught.trim(), 16).expect("a number");
        (caught >> 14 & 1 == 1).then_some(())
    });
    signal(process.id(), "TERM");
    let ended = eventually("the end of the process", || {
        process.try_wait().expect("it can be waited for")
    });
    assert_eq!(ended.code(), Some(0));
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
    let mut stream = TcpStream::connect(process.http().0).expect("HTTP accepts");
    let timeout = stream.set_read_timeout(Some(SOME_TIME));
    timeout.expect("a time-out can be set");
    stream.write_all(HOLD).expect("a request can be written");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("it is answered");
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    process.signal("TERM");
    // A clean end, or one without a close for a client that reads slowly.
    let _ = stream.read_to_end(&mut Vec::new());
    assert_eq!(process.ended().code, Some(0));
}

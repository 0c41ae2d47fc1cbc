//! The whole emulator in one thread: peers that speak AMQP, HTTP and WebSocket come, send anything, stop reading, and go;
//! afterwards nothing has panicked, and the emulator is healthy and serves a message.

use std::net::SocketAddr;
use std::panic;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use servicebus_emulator::auth::TokenCheck;
use servicebus_emulator::{Config, Emulator, Options};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

use crate::amqp::frames;
use crate::{Input, altered, input};

/// Most connections of an input at the same time.
const CONNECTIONS: usize = 4;
/// Bytes that fit between a peer that does not read and the emulator.
const PIPE: usize = 4096;

/// Panics in this process: those of tasks are caught by the runtime.
static PANICS: LazyLock<AtomicUsize> = LazyLock::new(|| {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        before(panic);
    }));
    AtomicUsize::new(0)
});

static REQUESTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut requests: Vec<Vec<u8>> = [
        (
            "POST /q/messages",
            "BrokerProperties: {\"MessageId\":\"m\",\"TimeToLive\":9}\r\nname: 1\r\n",
            "body",
        ),
        (
            "POST /t/messages",
            "Content-Type: application/vnd.microsoft.servicebus.json\r\n",
            "[{\"Body\":\"b\"}]",
        ),
        ("POST /q/messages/head?timeout=1", "", ""),
        ("DELETE /q/messages/head?timeout=1", "", ""),
        ("DELETE /t/Subscriptions/a/messages/head?timeout=0", "", ""),
        ("GET /$Resources/queues?api-version=2021-05", "", ""),
        ("DELETE /q?api-version=2021-05", "", ""),
        (
            "GET /$servicebus/websocket",
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: amqp\r\n",
            "",
        ),
        ("GET /$emulator/v1/namespaces", "", ""),
        ("GET /$emulator/v1/namespaces/fuzz/timeline", "", ""),
        (
            "POST /$emulator/v1/namespaces/fuzz/clock/advance",
            "Content-Type: application/json\r\n",
            "{\"by\":\"PT1M\"}",
        ),
        ("POST /$emulator/v1/namespaces/fuzz/clock/freeze", "", ""),
        ("POST /$emulator/v1/namespaces/fuzz/reset", "", ""),
        (
            "POST /$emulator/v1/namespaces/fuzz/faults",
            "Content-Type: application/json\r\n",
            "{\"operation\":\"send\"}",
        ),
        ("PUT /$emulator/v1/namespaces/other", "", ""),
        ("DELETE /$emulator/v1/namespaces/other", "", ""),
        ("GET /metrics", "", ""),
    ]
    .map(|(line, headers, body)| request(line, "localhost", headers, body))
    .into();
    for entry in input::files("admin", "python.txt") {
        let text = String::from_utf8_lossy(&entry);
        let bodies = text
            .lines()
            .filter(|line| line.starts_with("<ns0:entry"))
            .take(6);
        requests.extend(
            bodies.map(|body| request("PUT /q2?api-version=2021-05", "localhost", "", body)),
        );
    }
    requests
});

/// One emulator, from its start to the judgement.
pub fn check(input: &[u8]) {
    let before = PANICS.load(Ordering::Relaxed);
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let emulator = start();
        let mut input = Input::new(input);
        let mut peers = Vec::new();
        while !input.is_empty() {
            step(&mut input, &emulator, &mut peers).await;
        }
        check_health(&emulator).await;
    });
    drop(runtime);
    assert_eq!(PANICS.load(Ordering::Relaxed), before, "a task panicked");
}

fn start() -> Emulator {
    let text = r#"{"UserConfig":{"Namespaces":[{"Name":"fuzz","Queues":[{"Name":"q"},
        {"Name":"s","Properties":{"RequiresSession":true}}],
        "Topics":[{"Name":"t","Subscriptions":[{"Name":"a"}]}]}]}}"#;
    let mut config = Config::parse(text).expect("a configuration");
    config.namespaces[0].token_check = TokenCheck::None;
    let options = Options {
        config,
        seed: Some(1),
        ..Options::default()
    };
    Emulator::start_simulated(
        options,
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
    )
    .expect("it starts")
}

fn connect(emulator: &Emulator) -> DuplexStream {
    let (ours, theirs) = duplex(PIPE);
    emulator.accept(theirs, SocketAddr::from(([127, 0, 0, 1], 40_000)));
    ours
}

/// One thing that a peer does.
async fn step(input: &mut Input<'_>, emulator: &Emulator, peers: &mut Vec<DuplexStream>) {
    let kind = input.below(16);
    if peers.is_empty() || (kind == 0 && peers.len() < CONNECTIONS) {
        let mut peer = connect(emulator);
        match input.below(3) {
            0 => send(&mut peer, &frames::handshake()).await,
            1 => send(&mut peer, input.seed(&REQUESTS)).await,
            _ => {}
        }
        return peers.push(peer);
    }
    let which = input.below(peers.len());
    match kind {
        0 | 1 => drop(peers.swap_remove(which)),
        2 => sleep(Duration::from_millis(1 << input.below(20))).await,
        3 | 4 => send(&mut peers[which], &altered(input, &REQUESTS)).await,
        5 => send(&mut peers[which], &masked(&frames::next(input))).await,
        6 => send(&mut peers[which], input.bytes(64)).await,
        7 => receive(&mut peers[which]).await,
        _ => send(&mut peers[which], &frames::next(input)).await,
    }
}

/// Sends as much as the emulator takes.
async fn send(peer: &mut DuplexStream, bytes: &[u8]) {
    let _ = timeout(Duration::from_millis(1), peer.write_all(bytes)).await;
}

/// Reads what is there.
async fn receive(peer: &mut DuplexStream) {
    let mut read = vec![0; 64 * 1024];
    let _ = timeout(Duration::from_millis(1), peer.read(&mut read)).await;
}

/// A binary WebSocket message of a client, masked with zeros.
fn masked(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x82, 0x80 | 126];
    out.extend((payload.len() as u16).to_be_bytes());
    out.extend([0; 4]);
    out.extend(payload);
    out
}

fn request(line: &str, host: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{line} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
        .into_bytes()
}

/// It is healthy, and a message goes through a namespace that is made now.
async fn check_health(emulator: &Emulator) {
    let namespace = r#"{"UserConfig":{"Namespaces":[{"Name":"judge","Queues":[{"Name":"q"}],
        "Emulator":{"TokenCheck":"none"}}]}}"#;
    let host = "judge.localhost";
    for (request, status) in [
        (request("GET /health", "localhost", "", ""), "200"),
        (
            request(
                "PUT /$emulator/v1/namespaces/judge",
                "localhost",
                "",
                namespace,
            ),
            "201",
        ),
        (
            request(
                "POST /q/messages",
                host,
                "Authorization: any\r\n",
                "healthy",
            ),
            "201",
        ),
        (
            request(
                "DELETE /q/messages/head?timeout=5",
                host,
                "Authorization: any\r\n",
                "",
            ),
            "200",
        ),
    ] {
        let answer = ask(emulator, &request).await;
        let request_text = String::from_utf8_lossy(&request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{request_text}\n{answer}"
        );
        assert!(
            status != "200" || request_text.starts_with("GET") || answer.contains("\r\nhealthy"),
            "{answer}"
        );
    }
}

async fn ask(emulator: &Emulator, request: &[u8]) -> String {
    let mut peer = connect(emulator);
    peer.write_all(request).await.expect("the emulator reads");
    let mut answer = Vec::new();
    let mut read = vec![0; PIPE];
    // The connection is kept alive: the end of an answer is told by its length, or by a second of silence.
    while let Ok(Ok(count @ 1..)) = timeout(Duration::from_secs(1), peer.read(&mut read)).await {
        answer.extend_from_slice(&read[..count]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

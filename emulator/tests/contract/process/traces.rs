//! Spans of messages, as an OpenTelemetry collector gets them.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;

use crate::support::*;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// How long spans wait for others, in milliseconds.
const DELAY: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "10");
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector that keeps what it was sent.
struct Collector {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<(String, ExportTraceServiceRequest)>>>,
}

impl Collector {
    /// Answers with these statuses, then with 200.
    fn start(statuses: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, mut statuses) = (Arc::clone(&seen), VecDeque::from(statuses.to_vec()));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let request = read(&stream);
                kept.lock().expect("no test panics with it").push(request);
                let status = statuses.pop_front().unwrap_or(200);
                let _ = write!(&stream, "HTTP/1.1 {status} -\r\ncontent-length: 0\r\n\r\n");
            }
        });
        Self { address, seen }
    }

    fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All spans, in the order in which they ended.
    fn spans(&self) -> Vec<Span> {
        let seen = self.seen.lock().expect("no test panics with it");
        let of = |(_, request): &(String, ExportTraceServiceRequest)| {
            let resources = request.resource_spans.clone().into_iter();
            let scopes = resources.flat_map(|resource| resource.scope_spans);
            scopes.flat_map(|scope| scope.spans).collect::<Vec<_>>()
        };
        seen.iter().flat_map(of).collect()
    }

    /// Waits for so many.
    fn wait_for(&self, count: usize) -> Vec<Span> {
        let spans = eventually("spans", || {
            Some(self.spans()).filter(|it| it.len() >= count)
        });
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans
    }
}

fn read(stream: &TcpStream) -> (String, ExportTraceServiceRequest) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        assert!(
            reader.read_line(&mut line).expect("it is text") > 0,
            "{head}"
        );
        if let Some(number) = line.strip_prefix("content-length: ") {
            length = number.trim().parse().expect("it is a number");
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("it comes whole");
    let request = ExportTraceServiceRequest::decode(body.as_slice());
    (head, request.expect("it is a request of the protocol"))
}

fn start(endpoint: &str, more: &[(&str, &str)]) -> Process {
    start_with(&[], endpoint, more)
}

fn start_with(arguments: &[&str], endpoint: &str, more: &[(&str, &str)]) -> Process {
    let variables = [&[(ENDPOINT, endpoint)], more].concat();
    Process::start_with(&[&FREE_PORTS[..], arguments].concat(), &variables)
}

/// A message of a traced sender.
fn traced(id: &str, name: &str, flags: &str) -> Message {
    let parent = format!("00-{TRACE}-{PARENT}-{flags}");
    Message::new(id).application(name, text(&parent))
}

/// Sends a message and completes it.
fn complete(peer: &mut Peer, message: &Message) {
    peer.send_to("queue.1", message);
    let receiver = peer.receiver("queue.1");
    peer.complete_one(&receiver);
    peer.detach(&receiver);
    peer.settle_down();
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|found| found.key == name);
    let value = found.and_then(|found| found.value.clone()?.value);
    match value.unwrap_or_else(|| panic!("no {name} in {span:?}")) {
        Attribute::StringValue(text) => text,
        Attribute::IntValue(number) => number.to_string(),
        other => panic!("{name} is {other:?}"),
    }
}

/// Name, outcome, and the name of the parent span; `sender` for that of the sender.
fn shape(spans: &[Span]) -> Vec<(&str, String, &str)> {
    let outcome = |span| attribute(span, "servicebus.outcome");
    let shape = spans
        .iter()
        .map(|span| (span.name.as_str(), outcome(span), above(spans, span)));
    shape.collect()
}

fn assert_shape(spans: &[Span], expected: &[(&str, &str, &str)]) {
    let expected = expected.iter();
    let expected = expected.map(|(name, outcome, above)| (*name, (*outcome).to_owned(), *above));
    assert_eq!(shape(spans), Vec::from_iter(expected));
}

fn above<'s>(spans: &'s [Span], span: &Span) -> &'s str {
    let found = spans.iter().find(|it| it.span_id == span.parent_span_id);
    found.map_or("sender", |found| &found.name)
}

/// A counter of the process in its metrics.
fn metric(process: &Process, name: &str) -> u64 {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let metrics = process.http().text(request);
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|rest| rest.trim().parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

#[test]
fn a_message_is_traced_until_its_dead_letter_is_completed() {
    let collector = Collector::start(&[]);
    let more = [
        DELAY,
        ("OTEL_SERVICE_NAME", "bus"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
    ];
    let process = start(&collector.endpoint(), &more);
    let mut peer = process.client();
    peer.send_to("queue.1", &traced("m-1", "traceparent", "01"));
    let receiver = peer.receiver("queue.1");
    let first = peer.receive_one(&receiver);
    process.http().advance(20.0);
    peer.settle(&first, abandoned());
    let second = peer.receive_one(&receiver);
    peer.settle(&second, dead_lettered("Rejected", "no such order"));
    peer.settle_down();
    let dead = peer.receiver("queue.1/$deadletterqueue");
    peer.complete_one(&dead);
    peer.settle_down();
    let spans = collector.wait_for(5);
    let (queue, letters) = ("queued queue.1", "queued queue.1/$DeadLetterQueue");
    let expected = [
        ("locked queue.1", "abandoned", queue),
        ("locked queue.1", "dead-lettered", queue),
        (queue, "dead-lettered", "sender"),
        ("locked queue.1/$DeadLetterQueue", "completed", letters),
        (letters, "completed", queue),
    ];
    assert_shape(&spans, &expected);
    for span in &spans {
        assert_eq!(hexadecimal(&span.trace_id), TRACE);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        assert_eq!(attribute(span, "messaging.message.id"), "m-1");
        assert_eq!(attribute(span, "servicebus.namespace"), "sbemulatorns");
    }
    let queued = &spans[2];
    assert_eq!(hexadecimal(&queued.parent_span_id), PARENT);
    let status = queued.status.clone().expect("it ended badly");
    assert_eq!(
        (status.code, status.message.as_str()),
        (2, "Rejected: no such order")
    );
    assert!(spans[0].status.is_none() && spans[4].status.is_none());
    let of_first = |name| attribute(&spans[0], name);
    assert_eq!(of_first("messaging.servicebus.message.delivery_count"), "1");
    assert_eq!(of_first("servicebus.clock_offset_ms"), "20000");
    assert_eq!(of_first("servicebus.clock_advanced_ms"), "20000");
    assert_eq!(attribute(&spans[1], "servicebus.clock_advanced_ms"), "0");
    let seen = collector.seen.lock().expect("no test panics with it");
    let (head, request) = &seen[0];
    assert_starts_with(head, "POST /v1/traces HTTP/1.1\r\n");
    assert_contains(head, "\r\nx-key: a b\r\n");
    assert_contains(head, "\r\ncontent-type: application/x-protobuf\r\n");
    assert_contains(
        &format!("{:?}", request.resource_spans[0].resource),
        r#"StringValue("bus")"#,
    );
}

#[test]
fn a_publication_and_the_queueing_in_subscriptions_are_traced() {
    let collector = Collector::start(&[]);
    let config = TemporaryFile::new(&topic(&json!({}), &[("a", json!({})), ("b", json!({}))]));
    let process = start_with(
        &["--config", config.path()],
        &collector.endpoint(),
        &[DELAY],
    );
    let mut peer = process.client();
    peer.send_to("t", &traced("m-1", "Diagnostic-Id", "01"));
    for address in ["t/Subscriptions/a", "t/Subscriptions/b"] {
        let receiver = peer.receiver(address);
        peer.complete_one(&receiver);
    }
    peer.settle_down();
    let spans = collector.wait_for(5);
    let queued = |name| (name, "completed".to_owned(), "sender");
    let shape = shape(&spans);
    assert_eq!(shape[0], ("publish t", "published".to_owned(), "sender"));
    for name in ["queued t/Subscriptions/a", "queued t/Subscriptions/b"] {
        assert!(shape.contains(&queued(name)), "{shape:?}");
    }
}

#[test]
fn a_scheduled_message_has_a_span_until_its_activation() {
    let collector = Collector::start(&[]);
    let process = start(&collector.endpoint(), &[DELAY]);
    let mut peer = process.client();
    let at = client_now() + 60_000;
    let message = traced("m-1", "traceparent", "01").scheduled_at(at);
    peer.send_to("queue.1", &message);
    process.http().advance(61.0);
    let delivery = peer.receive_from("queue.1");
    peer.complete(&delivery);
    peer.settle_down();
    let spans = collector.wait_for(2);
    let expected = [
        ("locked queue.1", "completed", "queued queue.1"),
        ("queued queue.1", "completed", "sender"),
    ];
    assert_shape(&spans, &expected);
}

#[test]
fn a_forwarded_message_has_a_span_in_each_queue() {
    let collector = Collector::start(&[]);
    let forwards = [("first", r#""ForwardTo":"second""#), ("second", "")];
    let config = TemporaryFile::new(&queues("", &forwards));
    let process = start_with(
        &["--config", config.path()],
        &collector.endpoint(),
        &[DELAY],
    );
    let mut peer = process.client();
    peer.send_to("first", &traced("m-1", "traceparent", "01"));
    let delivery = peer.receive_from("second");
    peer.complete(&delivery);
    peer.settle_down();
    let spans = collector.wait_for(3);
    let expected = [
        ("queued first", "forwarded", "sender"),
        ("locked second", "completed", "queued second"),
        ("queued second", "completed", "sender"),
    ];
    assert_shape(&spans, &expected);
}

#[test]
fn a_commit_begins_and_ends_spans() {
    let collector = Collector::start(&[]);
    let process = start(&collector.endpoint(), &[DELAY]);
    let mut peer = process.client();
    peer.send_to("queue.1", &traced("in", "traceparent", "01"));
    let (receiver, sender) = (peer.receiver("queue.1"), peer.sender("queue.1"));
    let delivery = peer.receive_one(&receiver);
    let coordinator = peer.attached(&Attach::coordinator());
    for id in ["undone", "out"] {
        let transaction = peer.declare(&coordinator);
        let message = traced(id, "traceparent", "01");
        peer.send_in(&sender, &transaction, &message)
            .expect("there is room");
        if id == "undone" {
            peer.roll_back(&coordinator, &transaction);
            continue;
        }
        peer.settle_in(&delivery, &transaction, accepted())
            .expect("it is locked");
        assert_eq!(metric(&process, "servicebus_traced_messages "), 1);
        assert!(collector.spans().is_empty(), "nothing has happened yet");
        assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    }
    peer.complete_one(&receiver);
    peer.settle_down();
    let spans = collector.wait_for(4);
    let exported = spans.iter().map(|span| {
        let id = attribute(span, "messaging.message.id");
        (id, attribute(span, "servicebus.outcome"))
    });
    let completed = |id: &str| (id.to_owned(), "completed".to_owned());
    let expected = ["in", "in", "out", "out"].map(completed);
    assert_eq!(Vec::from_iter(exported), expected);
}

#[test]
fn the_sampler_decides_on_complete_traces() {
    let collector = Collector::start(&[]);
    let process = start(
        &collector.endpoint(),
        &[DELAY, ("OTEL_TRACES_SAMPLER", "parentbased_always_off")],
    );
    let mut peer = process.client();
    complete(&mut peer, &Message::new("without a parent"));
    complete(&mut peer, &traced("not sampled", "traceparent", "00"));
    complete(&mut peer, &traced("sampled", "traceparent", "01"));
    let spans = collector.wait_for(2);
    let ids = [0, 1].map(|index| attribute(&spans[index], "messaging.message.id"));
    assert_eq!(ids, ["sampled", "sampled"]);
}

#[test]
fn spans_are_sent_again_after_a_retryable_error() {
    let collector = Collector::start(&[503]);
    let process = start(&collector.endpoint(), &[DELAY]);
    complete(&mut process.client(), &Message::new("m"));
    until("the second attempt", || {
        metric(&process, "servicebus_spans_exported_total ") == 2
    });
    assert_eq!(metric(&process, "servicebus_spans_dropped_total "), 0);
    assert_eq!(metric(&process, "servicebus_traced_messages "), 0);
    let seen = collector.seen.lock().expect("no test panics with it");
    assert_eq!(seen[0].1, seen[1].1, "the same once more");
}

#[test]
fn a_collector_that_refuses_all_spans_is_logged_once() {
    let collector = Collector::start(&[400; 100]);
    let process = start(&collector.endpoint(), &[DELAY]);
    for dropped in [2, 4, 6] {
        complete(&mut process.client(), &Message::new("m"));
        until("the refusal", || {
            metric(&process, "servicebus_spans_dropped_total ") == dropped
        });
    }
    let logged = process.ended_by("TERM").stderr;
    let exported: Vec<_> = logged
        .lines()
        .filter(|line| line.contains("spans"))
        .collect();
    assert_eq!(exported.len(), 1, "{logged}");
    let text = format!(
        "spans are dropped until {}/v1/traces accepts them: it answers 400",
        collector.endpoint()
    );
    assert_contains(exported[0], &text);
}

#[test]
fn a_missing_collector_delays_neither_messages_nor_the_stop() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it listens");
    // A collector that never answers is worse than a missing one.
    let process = start(&format!("http://{address}"), &[DELAY]);
    let mut peer = process.client();
    for _ in 0..10 {
        complete(&mut peer, &Message::new("m"));
    }
    let start = std::time::Instant::now();
    assert_eq!(process.ended_by("TERM").code, Some(0));
    // Two seconds for clients, two for the collector, whose response may take ten.
    assert!(start.elapsed().as_secs() < 10);
}

#[test]
fn pending_spans_are_sent_before_the_exit() {
    let collector = Collector::start(&[]);
    let process = start(
        &collector.endpoint(),
        &[("OTEL_BSP_SCHEDULE_DELAY", "3600000")],
    );
    complete(&mut process.client(), &Message::new("m"));
    assert!(collector.spans().is_empty());
    let ended = process.ended_by("TERM");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    collector.wait_for(2);
}

#[test]
fn an_invalid_tracing_variable_does_not_prevent_the_start() {
    let process = start("https://localhost:4318", &[]);
    complete(&mut process.client(), &Message::new("m"));
    let ended = process.ended_by("TERM");
    assert_eq!(ended.code, Some(0));
    assert_contains(
        &ended.stderr,
        "no spans are exported: OTEL_EXPORTER_OTLP_ENDPOINT is",
    );
}

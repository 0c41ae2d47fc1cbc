//! The queue of ended spans, and the task that sends them in batches, each on a connection of its own.
//!
//! Spans that do not fit the queue are dropped and counted, as are batches that the collector refuses. The log has a line
//! when that begins, and one when it ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use super::parent::Sampler;
use super::{Metric, TraceOptions, protobuf};

/// Maximum number of spans in the queue.
const QUEUED: usize = 2048;
/// Maximum number of spans in a request.
const BATCH: usize = 512;
/// Maximum number of followed messages in all namespaces.
const OPEN: usize = 100_000;
/// Pauses after attempts that may succeed later.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// How long the end of the emulator waits for the rest.
const END: Duration = Duration::from_secs(2);
/// Bytes of a response within which its first line ends.
const ANSWER: usize = 1024;

/// An ended span. Times are nanoseconds since the Unix epoch.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) trace: u128,
    pub(super) id: u64,
    /// Zero without a parent.
    pub(super) parent: u64,
    pub(super) name: String,
    pub(super) begun: u64,
    pub(super) ended: u64,
    /// The error with which it ended, if any.
    pub(super) error: Option<String>,
    pub(super) attributes: Vec<(&'static str, Attribute)>,
}

#[derive(Debug)]
pub(super) enum Attribute {
    Text(String),
    Number(i64),
}

/// The queue, and the task that sends.
#[derive(Debug)]
pub(super) struct Exporter {
    pub(super) sampler: Sampler,
    queue: mpsc::Sender<Span>,
    counters: Arc<Counters>,
    /// Becomes true when the emulator stops.
    stopping: watch::Sender<bool>,
    task: Mutex<JoinSet<()>>,
}

#[derive(Debug, Default)]
struct Counters {
    open: AtomicUsize,
    not_followed: AtomicU64,
    exported: AtomicU64,
    dropped: AtomicU64,
}

/// The state of the sending task.
struct Sender {
    options: TraceOptions,
    /// The head of every request except the length of its body.
    head: String,
    queue: mpsc::Receiver<Span>,
    counters: Arc<Counters>,
    stopping: watch::Receiver<bool>,
    /// Whether the last batch was dropped.
    fails: bool,
}

impl Exporter {
    pub(super) fn start(options: TraceOptions) -> Self {
        let (queue, receiver) = mpsc::channel(QUEUED);
        let (stopping, stops) = watch::channel(false);
        let counters = Arc::new(Counters::default());
        let sampler = options.sampler;
        let sender = Sender {
            head: head(&options),
            options,
            queue: receiver,
            counters: Arc::clone(&counters),
            stopping: stops,
            fails: false,
        };
        let mut task = JoinSet::new();
        task.spawn(sender.run());
        Self {
            sampler,
            queue,
            counters,
            stopping,
            task: Mutex::new(task),
        }
    }

    /// Queues a span; drops it if too many wait.
    pub(super) fn add(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts one more followed message; returns whether the limit allows it.
    pub(super) fn opens(&self) -> bool {
        let open = self.counters.open.fetch_add(1, Ordering::Relaxed);
        if open < OPEN {
            return true;
        }
        self.close(1);
        self.counters.not_followed.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Ends the count of `count` followed messages.
    pub(super) fn close(&self, count: usize) {
        self.counters.open.fetch_sub(count, Ordering::Relaxed);
    }

    pub(super) fn metrics(&self) -> Vec<Metric> {
        let Counters {
            open,
            not_followed,
            exported,
            dropped,
        } = &*self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        vec![
            (
                "servicebus_traced_messages",
                "Messages whose spans have not ended.",
                open.load(Ordering::Relaxed) as u64,
            ),
            (
                "servicebus_untraced_messages_total",
                "Messages without spans, because there were 100,000 with such already.",
                read(not_followed),
            ),
            (
                "servicebus_spans_exported_total",
                "Spans that the collector took.",
                read(exported),
            ),
            (
                "servicebus_spans_dropped_total",
                "Spans for which there was no room, or that the collector did not take.",
                read(dropped),
            ),
        ]
    }

    /// Sends what waits, and ends.
    pub(super) async fn stop(&self) {
        self.stopping.send_replace(true);
        let mut task = std::mem::take(&mut *self.task.lock());
        // Unfinished work is aborted then.
        let _ = timeout(END, task.join_next()).await;
    }
}

impl Sender {
    async fn run(mut self) {
        let mut batch = Vec::new();
        while !*self.stopping.borrow() {
            let stopping = self.stopping.clone();
            tokio::select! {
                biased;
                () = stopped(stopping) => {}
                () = self.gather(&mut batch) => self.export(&mut batch).await,
            }
        }
        loop {
            while let (true, Ok(span)) = (batch.len() < BATCH, self.queue.try_recv()) {
                batch.push(span);
            }
            if batch.is_empty() {
                return;
            }
            self.export(&mut batch).await;
        }
    }

    /// Waits for a span, and for others as long as one may wait.
    async fn gather(&mut self, batch: &mut Vec<Span>) {
        if batch.is_empty() && self.queue.recv_many(batch, BATCH).await == 0 {
            // The queue is closed: the emulator was dropped.
            return std::future::pending().await;
        }
        let end = Instant::now() + self.options.delay;
        while batch.len() < BATCH {
            let room = BATCH - batch.len();
            if !matches!(
                timeout_at(end, self.queue.recv_many(batch, room)).await,
                Ok(1..)
            ) {
                return;
            }
        }
    }

    /// Sends a batch, with retries where they may help, and counts the result.
    async fn export(&mut self, batch: &mut Vec<Span>) {
        let count = batch.len() as u64;
        let body = protobuf::request(&self.options.resource, batch);
        batch.clear();
        match self.try_to_send(&body).await {
            Ok(()) => {
                self.counters.exported.fetch_add(count, Ordering::Relaxed);
                if std::mem::take(&mut self.fails) {
                    tracing::warn!(
                        "the collector at {} accepts spans again",
                        self.options.endpoint
                    );
                }
            }
            Err(reason) => {
                self.counters.dropped.fetch_add(count, Ordering::Relaxed);
                if !std::mem::replace(&mut self.fails, true) {
                    let endpoint = &self.options.endpoint;
                    tracing::warn!("spans are dropped until {endpoint} accepts them: {reason}");
                }
            }
        }
    }

    /// While the collector fails, each batch has one attempt, so that the queue is emptied.
    async fn try_to_send(&mut self, body: &[u8]) -> Result<(), String> {
        let pauses = if self.fails { &[][..] } else { &PAUSES[..] };
        let mut pauses = pauses.iter();
        loop {
            let posted = timeout(self.options.timeout, self.post(body)).await;
            let (reason, may_help) = match posted {
                Ok(Ok(200..=299)) => return Ok(()),
                Ok(Ok(status)) => (
                    format!("it answers {status}"),
                    matches!(status, 429 | 502 | 503 | 504),
                ),
                Ok(Err(error)) => (error.to_string(), true),
                Err(_) => ("it does not answer in time".to_owned(), true),
            };
            match pauses.next() {
                Some(&pause) if may_help && !*self.stopping.borrow() => {
                    let _ = timeout(pause, stopped(self.stopping.clone())).await;
                }
                _ => return Err(reason),
            }
        }
    }

    /// Sends one request on a connection of its own; returns the status of the response.
    async fn post(&self, body: &[u8]) -> io::Result<u16> {
        let endpoint = &self.options.endpoint;
        let mut stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await?;
        let head = format!("{}content-length: {}\r\n\r\n", self.head, body.len());
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::with_capacity(ANSWER);
        while !answer.contains(&b'\n') && answer.len() < ANSWER {
            if stream.read_buf(&mut answer).await? == 0 {
                break;
            }
        }
        status(&answer).ok_or_else(|| io::Error::other("what answers speaks no HTTP"))
    }
}

/// Resolves when the emulator stops.
async fn stopped(mut stopping: watch::Receiver<bool>) {
    // A dropped sender has stopped.
    let _ = stopping.wait_for(|stops| *stops).await;
}

fn head(options: &TraceOptions) -> String {
    let endpoint = &options.endpoint;
    let mut head = format!(
        "POST {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/x-protobuf\r\nuser-agent: \
         servicebus-emulator/{}\r\n",
        endpoint.path,
        endpoint.authority,
        env!("CARGO_PKG_VERSION")
    );
    for (name, value) in &options.headers {
        // They were parsed from text.
        let value = value.to_str().unwrap_or_default();
        head.extend([name.as_str(), ": ", value, "\r\n"]);
    }
    head
}

fn status(answer: &[u8]) -> Option<u16> {
    let rest = answer.strip_prefix(b"HTTP/1.")?;
    let digits = rest.get(2..5)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exporter() -> Exporter {
        let endpoint = "http://127.0.0.1:1".to_owned();
        let variable =
            |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| endpoint.clone());
        let options = TraceOptions::from_variables(&variable).expect("it is legal");
        Exporter::start(options.expect("there is an endpoint"))
    }

    fn counted(exporter: &Exporter, name: &str) -> u64 {
        let all = exporter.metrics();
        let found = all.into_iter().find(|(own, ..)| *own == name);
        found.expect("it is counted").2
    }

    #[tokio::test]
    async fn the_number_of_traced_messages_is_limited() {
        let exporter = exporter();
        let followed = (0..OPEN + 3).filter(|_| exporter.opens()).count();
        assert_eq!(followed, OPEN);
        assert_eq!(
            counted(&exporter, "servicebus_traced_messages"),
            OPEN as u64
        );
        assert_eq!(counted(&exporter, "servicebus_untraced_messages_total"), 3);
        exporter.close(1);
        assert!(exporter.opens(), "there is a place again");
    }

    #[tokio::test]
    async fn spans_beyond_the_queue_limit_are_dropped_and_counted() {
        let exporter = exporter();
        // Its task gets no turn here.
        for id in 1..QUEUED as u64 + 6 {
            exporter.add(Span {
                trace: 1,
                id,
                parent: 0,
                name: "queued q".to_owned(),
                begun: 1,
                ended: 2,
                error: None,
                attributes: Vec::new(),
            });
        }
        assert_eq!(counted(&exporter, "servicebus_spans_dropped_total"), 5);
    }

    #[test]
    fn only_an_http_status_line_is_parsed() {
        assert_eq!(status(b"HTTP/1.1 503 Service Unavailable\r\n"), Some(503));
        assert_eq!(status(b"HTTP/1.0 200\n"), Some(200));
        for wrong in [
            &b""[..],
            b"HTTP/1.1",
            b"HTTP/1.1 2",
            b"\0\0\x06\x04",
            b"HTTP/1.1 abc",
        ] {
            assert_eq!(status(wrong), None);
        }
    }
}

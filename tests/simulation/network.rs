//! The simulated network: connections whose bytes take their time, and that are cut, fall silent or stand still.
//!
//! Bytes of one direction of one connection keep their order; those of different connections do not.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How bad the network of a seed is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NetworkConditions {
    /// Longest way of a byte, in milliseconds.
    pub(crate) delay: u64,
    /// Bytes that are on their way in one direction before a writer waits.
    pub(crate) window: usize,
}

/// All connections of a simulation.
#[derive(Debug, Clone)]
pub(crate) struct Network(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    random: SmallRng,
    conditions: NetworkConditions,
    trace: Trace,
    connections: Vec<Arc<Mutex<Connection>>>,
}

/// Everything that went over the network, as one number.
#[derive(Debug, Default)]
struct Trace {
    hasher: DefaultHasher,
    started: Option<Instant>,
    bytes: u64,
}

/// One connection.
#[derive(Debug, Default)]
struct Connection {
    number: u64,
    /// To the emulator, and to the client.
    ways: [Way; 2],
    /// Since when it is not as it should be.
    abnormal_since: Option<Instant>,
    /// When the emulator gave it up.
    server_gone: Option<Instant>,
    /// Since when its client asks without pause, and how often it did.
    requests: Option<(Instant, u32)>,
}

/// What is on its way in one direction.
#[derive(Debug, Default)]
struct Way {
    blocks: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    last: Option<Instant>,
    /// The writer ended it, at this instant for the reader.
    ends: Option<Instant>,
    /// The reader learns then that it was cut.
    reset: Option<Instant>,
    /// Nothing arrives until then.
    held: Option<Instant>,
    /// What is written is lost.
    is_lost: bool,
    reader_gone: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Stream {
    network: Network,
    connection: Arc<Mutex<Connection>>,
    /// The way that this end reads.
    reads: usize,
    timer: Option<Pin<Box<Sleep>>>,
}

/// What is known of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Observed(Arc<Mutex<Connection>>);

/// A client that asks so often at one instant does nothing else until it is answered: simulated time would stand still.
/// The client library does so between its `close` and that of the peer (fe2o3-amqp 0.18.4, `connection/engine.rs`).
const REQUESTS_WITHOUT_PAUSE: u32 = 1_000;
const MAX_REQUESTS_WITHOUT_PAUSE: u32 = 10 * REQUESTS_WITHOUT_PAUSE;

/// The emulator reads this way.
const TO_SERVER: usize = 0;
const TO_CLIENT: usize = 1;

impl Network {
    pub(crate) fn new(seed: u64, conditions: NetworkConditions) -> Self {
        let trace = Trace {
            started: Some(Instant::now()),
            ..Trace::default()
        };
        Self(Arc::new(Mutex::new(State {
            random: SmallRng::seed_from_u64(seed),
            conditions,
            trace,
            connections: Vec::new(),
        })))
    }

    /// A new connection: the client's end, the emulator's, and where the client is.
    pub(crate) fn connect(&self) -> (Stream, Stream, SocketAddr) {
        let mut state = self.state();
        let number = state.connections.len() as u64;
        let connection = Arc::new(Mutex::new(Connection {
            number,
            ..Connection::default()
        }));
        state.connections.push(Arc::clone(&connection));
        let end = |reads| Stream {
            network: self.clone(),
            connection: Arc::clone(&connection),
            reads,
            timer: None,
        };
        let port = 1024 + (number % 60_000) as u16;
        let from = SocketAddr::from(([127, 0, 0, 1], port));
        (end(TO_CLIENT), end(TO_SERVER), from)
    }

    /// From now on bytes take no longer than a millisecond, and what stood still goes on.
    pub(crate) fn restore(&self) {
        let mut state = self.state();
        state.conditions.delay = 1;
        let connections = state.connections.clone();
        drop(state);
        for connection in connections {
            let mut connection = lock(&connection);
            for way in &mut connection.ways {
                way.held = None;
                way.wake();
            }
        }
    }

    /// One of the connections that are open.
    pub(crate) fn any(&self) -> Option<Observed> {
        let mut state = self.state();
        let is_open = |connection: &&Arc<Mutex<Connection>>| {
            let connection = lock(connection);
            connection.abnormal_since.is_none() && connection.server_gone.is_none()
        };
        let open: Vec<_> = state.connections.iter().filter(is_open).cloned().collect();
        if open.is_empty() {
            return None;
        }
        let which = state.random.random_range(0..open.len());
        Some(Observed(Arc::clone(&open[which])))
    }

    /// The connections that the emulator has not given up.
    pub(crate) fn open_at_server(&self) -> Vec<u64> {
        let state = self.state();
        let connections = state.connections.iter().map(|connection| lock(connection));
        let open = connections.filter(|connection| connection.server_gone.is_none());
        open.map(|connection| connection.number).collect()
    }

    /// The hash of all bytes and when they arrived, and how many they were.
    pub(crate) fn trace(&self) -> (u64, u64) {
        let state = self.state();
        (state.trace.hasher.finish(), state.trace.bytes)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    fn delay(&self) -> Duration {
        let mut state = self.state();
        let most = state.conditions.delay;
        Duration::from_millis(state.random.random_range(0..=most))
    }

    fn note(&self, connection: u64, way: usize, bytes: &[u8]) {
        let trace = &mut self.state().trace;
        let at = trace.started.map_or(Duration::ZERO, |at| at.elapsed());
        trace.hasher.write_u64(connection << 1 | way as u64);
        trace.hasher.write_u128(at.as_nanos());
        trace.hasher.write(bytes);
        trace.bytes += bytes.len() as u64;
    }
}

impl Observed {
    /// Cuts the connection; both ends learn it, each in its time.
    pub(crate) fn cut(&self, network: &Network) {
        for way in [TO_SERVER, TO_CLIENT] {
            let at = Instant::now() + network.delay();
            let mut connection = lock(&self.0);
            connection.abnormal_since.get_or_insert_with(Instant::now);
            let way = &mut connection.ways[way];
            way.reset.get_or_insert(at);
            way.held = None;
            way.wake();
        }
    }

    /// From now on what is sent is lost, in one direction or in both, and neither end learns it.
    pub(crate) fn drop_traffic(&self, to_server: bool, to_client: bool) {
        let mut connection = lock(&self.0);
        connection.abnormal_since.get_or_insert_with(Instant::now);
        connection.ways[TO_SERVER].is_lost |= to_server;
        connection.ways[TO_CLIENT].is_lost |= to_client;
    }

    /// The client stands still for so long: nothing comes to it or from it.
    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut connection = lock(&self.0);
        connection.abnormal_since.get_or_insert_with(Instant::now);
        for way in &mut connection.ways {
            way.held = Some(until);
            way.wake();
        }
    }

    /// Whether nothing has happened to it.
    pub(crate) fn is_healthy(&self) -> bool {
        lock(&self.0).abnormal_since.is_none()
    }

    /// When the emulator gave it up.
    pub(crate) fn server_gone(&self) -> Option<Instant> {
        lock(&self.0).server_gone
    }
}

impl Stream {
    pub(crate) fn observe(&self) -> Observed {
        Observed(Arc::clone(&self.connection))
    }

    fn poll_way(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut connection = lock(&self.connection);
        let number = connection.number;
        let way = &mut connection.ways[self.reads];
        way.reader = Some(cx.waker().clone());
        let now = Instant::now();
        if way.reset.is_some_and(|at| at <= now) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let mut next = way.reset;
        let until = |next: Option<Instant>, at: Instant| Some(next.map_or(at, |next| next.min(at)));
        match (way.held.filter(|at| *at > now), way.blocks.front_mut()) {
            (Some(at), _) => next = until(next, at),
            (None, Some((at, block))) if *at <= now => {
                let taken = block.len().min(buffer.remaining());
                buffer.put_slice(&block[..taken]);
                let bytes: Vec<u8> = block.drain(..taken).collect();
                if block.is_empty() {
                    way.blocks.pop_front();
                }
                way.bytes -= taken;
                if let Some(writer) = way.writer.take() {
                    writer.wake();
                }
                drop(connection);
                self.network.note(number, self.reads, &bytes);
                return Poll::Ready(Ok(()));
            }
            (None, Some((at, _))) => next = until(next, *at),
            (None, None) => match way.ends {
                Some(at) if at <= now => return Poll::Ready(Ok(())),
                Some(at) => next = until(next, at),
                None => {}
            },
        }
        let hurries = self.reads == TO_CLIENT && connection.is_asked_without_pause(now);
        drop(connection);
        if hurries {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(at) = next {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if timer.deadline() != at {
                timer.as_mut().reset(at);
            }
            if timer.as_mut().poll(cx).is_ready() {
                // It is due this very instant.
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }

    fn end(&mut self) {
        let delay = self.network.delay();
        let mut connection = lock(&self.connection);
        let way = &mut connection.ways[1 - self.reads];
        let at = (Instant::now() + delay).max(way.last.unwrap_or_else(Instant::now));
        way.ends.get_or_insert(at);
        way.wake();
    }
}

impl Connection {
    /// Whether the client asks without pause: what is on its way arrives now, and if nothing ever comes the connection
    /// is cut.
    fn is_asked_without_pause(&mut self, now: Instant) -> bool {
        let count = match self.requests {
            Some((at, count)) if at == now => count + 1,
            _ => 1,
        };
        self.requests = Some((now, count));
        if !count.is_multiple_of(REQUESTS_WITHOUT_PAUSE) {
            return false;
        }
        for way in &mut self.ways {
            for (at, _) in &mut way.blocks {
                *at = now.min(*at);
            }
            way.last = Some(now);
            way.held = None;
            way.ends = way.ends.map(|at| at.min(now));
            way.reset = way.reset.map(|at| at.min(now));
            if count >= MAX_REQUESTS_WITHOUT_PAUSE {
                self.abnormal_since.get_or_insert(now);
                way.reset = Some(now);
            }
            way.wake();
        }
        true
    }
}

impl Way {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()]
            .into_iter()
            .flatten()
        {
            waker.wake();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll_way(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let delay = self.network.delay();
        let window = self.network.state().conditions.window;
        let mut connection = lock(&self.connection);
        let was_reset = connection.ways[self.reads].reset;
        let way = &mut connection.ways[1 - self.reads];
        let now = Instant::now();
        if way.reader_gone || way.ends.is_some() || was_reset.is_some_and(|at| at <= now) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if way.is_lost || way.reset.is_some() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let taken = bytes.len().min(window.saturating_sub(way.bytes));
        if taken == 0 && !bytes.is_empty() {
            way.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let at = (now + delay).max(way.last.unwrap_or(now));
        way.last = Some(at);
        way.bytes += taken;
        way.blocks.push_back((at, bytes[..taken].to_vec()));
        if let Some(reader) = way.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.end();
        let mut connection = lock(&self.connection);
        if self.reads == TO_SERVER {
            connection.server_gone = Some(Instant::now());
        }
        let way = &mut connection.ways[self.reads];
        way.reader_gone = true;
        way.wake();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("the simulation has not panicked")
}

//! The listeners before a namespace, and the copying of every connection that comes.
//!
//! What arrives is decoded before it is passed on, so that an answer is never decoded before its question. The bytes
//! themselves are passed on as they are.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, OnceLock},
};

use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Side, Trace,
    trace::Sink,
    upstream::{Secure, Stream},
};
use crate::random_number;

/// What begins a TLS connection: the content type of a handshake.
const TLS: u8 = 22;
/// How much is copied in one go, in bytes.
const BLOCK: usize = 32 * 1024;
/// How many addresses are tried.
const ATTEMPTS: usize = 16;

/// One listener before one route of the namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) port: u16,
    /// Where the namespace is dialled.
    pub(super) to: SocketAddr,
}

/// Listeners before a namespace; dropping them cuts every connection that came by them.
#[derive(Debug)]
pub(super) struct Listeners {
    pub(super) address: Ipv4Addr,
    /// Dropped, it cancels the listeners and what came by them.
    _serving: JoinSet<()>,
}

/// How connections of one listener go on.
#[derive(Clone)]
struct Upstream {
    to: SocketAddr,
    /// Where the namespace wants TLS of everybody.
    secure: Option<Secure>,
    tls: Arc<TlsConfig>,
    trace: Arc<Trace>,
}

/// What clients that begin with TLS are shown. It is made for the first of them, because it takes longer than all the
/// rest.
struct TlsConfig {
    address: Ipv4Addr,
    config: OnceLock<Result<Arc<ServerConfig>, String>>,
}

/// Listens on a free address.
pub(super) async fn open(
    routes: &[Route],
    secure: Option<Secure>,
    trace: &Arc<Trace>,
) -> io::Result<Listeners> {
    let (address, listeners) = bind_random_address(routes).await?;
    let tls = Arc::new(TlsConfig::at(address));
    if secure.is_some() {
        // Every client will come over TLS.
        tls.config()?;
    }
    let mut serving = JoinSet::new();
    for (listener, route) in listeners.into_iter().zip(routes) {
        let upstream = Upstream {
            to: route.to,
            secure: secure.clone(),
            tls: Arc::clone(&tls),
            trace: Arc::clone(trace),
        };
        serving.spawn(serve(listener, upstream));
    }
    Ok(Listeners {
        address,
        _serving: serving,
    })
}

impl TlsConfig {
    fn at(address: Ipv4Addr) -> Self {
        Self {
            address,
            config: OnceLock::new(),
        }
    }

    fn config(&self) -> io::Result<Arc<ServerConfig>> {
        let made = self.config.get_or_init(|| {
            let issued = servicebus_emulator::issue_certificate(self.address.to_string());
            let issued = issued.map_err(|error| error.to_string())?;
            Ok(issued.config)
        });
        made.clone().map_err(io::Error::other)
    }
}

async fn bind_random_address(routes: &[Route]) -> io::Result<(Ipv4Addr, Vec<TcpListener>)> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let address = random_address();
        match listen(address, routes).await {
            Ok(listeners) => return Ok((address, listeners)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = Some(error),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                let text = format!(
                    "this system has no loopback address {address}, and a recorder has one of its own"
                );
                return Err(io::Error::new(error.kind(), text));
            }
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

/// Draws an address from 127.64.0.0/10, from which those of emulators are too, whose last octet is neither 0 nor 255.
fn random_address() -> Ipv4Addr {
    let [_, second, third, fourth] = (random_number() as u32).to_be_bytes();
    Ipv4Addr::new(127, 64 | (second & 0x3f), third, fourth.clamp(1, 254))
}

async fn listen(address: Ipv4Addr, routes: &[Route]) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::with_capacity(routes.len());
    for route in routes {
        listeners.push(TcpListener::bind((address, route.port)).await?);
    }
    Ok(listeners)
}

async fn serve(listener: TcpListener, upstream: Upstream) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // One that was cancelled before it was accepted leaves the others alone.
                let Ok((client, _)) = accepted else { continue };
                connections.spawn(connect(client, upstream.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Both directions of one connection, until both have ended or one fails.
async fn connect(client: TcpStream, upstream: Upstream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut first = [0];
    if client.peek(&mut first).await? == 0 {
        return Ok(());
    }
    let client: Box<dyn Stream> = match first {
        [TLS] => {
            let acceptor = TlsAcceptor::from(upstream.tls.config()?);
            Box::new(acceptor.accept(client).await?)
        }
        _ => Box::new(client),
    };
    let service = TcpStream::connect(upstream.to).await?;
    service.set_nodelay(true)?;
    let service: Box<dyn Stream> = match upstream.secure {
        Some(secure) => secure.wrap(service).await?,
        None => Box::new(service),
    };
    let sink = upstream.trace.connection();
    let (from_client, to_client) = tokio::io::split(client);
    let (from_service, to_service) = tokio::io::split(service);
    tokio::try_join!(
        forward(from_client, to_service, Side::Client, &sink),
        forward(from_service, to_client, Side::Service, &sink),
    )?;
    Ok(())
}

async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    side: Side,
    sink: &Sink,
) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let length = from.read(&mut block).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        sink.push(side, &block[..length]);
        to.write_all(&block[..length]).await?;
        to.flush().await?;
    }
}

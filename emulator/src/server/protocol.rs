//! Detects the protocol of a peer by its first bytes: AMQP, HTTP, or TLS with either inside. Also runs TLS handshakes and
//! reports failed ones.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::server::Acceptor;
use rustls::{AlertDescription, ServerConfig};
use servicebus_broker::ClientId;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;

use super::web::ConnectionSecurity;
use super::{AcceptedConnection, RESERVED_TIMEOUT, web};
use crate::connection;
use crate::connection::Wire;
use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;
use crate::tls::{Secured, SniName};

/// First byte of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;

enum Protocol {
    Amqp,
    Http,
    Tls,
    Unknown(u8),
}

/// Serves a peer in its protocol.
pub(crate) async fn open(mut accepted: AcceptedConnection, stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    let peeked = accepted.unless_stopped(stream.peek(&mut first)).await;
    let Some(peeked) = peeked else { return Ok(()) };
    if peeked? == 0 {
        return Ok(());
    }
    let origin = ConnectionOrigin::at(stream.local_addr()?);
    match Protocol::by(first[0]) {
        Protocol::Amqp if accepted.is_reserved => accepted.refuse(),
        Protocol::Amqp => connection::serve(stream, &origin, accepted.shared, accepted.stop).await,
        Protocol::Http => web::serve(stream, origin, ConnectionSecurity::Plain, accepted).await,
        Protocol::Tls => open_secured(accepted, stream, origin).await,
        Protocol::Unknown(byte) => {
            log_unknown_protocol(&accepted, byte);
            // The answer to a peer with another version of AMQP (AMQP 1.0 §2.2).
            stream.try_write(b"AMQP\x03\x01\x00\x00").map(drop)
        }
    }
}

async fn open_secured(
    accepted: AcceptedConnection,
    stream: TcpStream,
    origin: ConnectionOrigin,
) -> io::Result<()> {
    let shaking = handshake(&accepted.shared, stream, accepted.address, &origin);
    let mut stop = accepted.stop.clone();
    let secured = tokio::select! {
        shaken = shaking => match shaken {
            Some(secured) => secured,
            None => return Ok(()),
        },
        () = sleep(RESERVED_TIMEOUT), if accepted.is_reserved => return Ok(()),
        _ = stop.changed() => return Ok(()),
    };
    let host = secured.get_ref().1.server_name().map(str::to_owned);
    let origin = origin.with_host(host).over("tls");
    serve(accepted, secured, origin, ConnectionSecurity::Tls).await
}

/// Serves a peer whose first byte can be read without the socket.
pub(crate) async fn serve<S>(
    mut accepted: AcceptedConnection,
    mut stream: S,
    origin: ConnectionOrigin,
    security: ConnectionSecurity,
) -> io::Result<()>
where
    S: Wire + AsyncBufRead + AsyncWrite + Unpin + Send + 'static,
{
    let first = accepted.unless_stopped(stream.fill_buf()).await;
    let Some(first) = first else { return Ok(()) };
    let Some(&first) = first?.first() else {
        return Ok(());
    };
    match Protocol::by(first) {
        Protocol::Amqp if accepted.is_reserved => accepted.refuse(),
        Protocol::Amqp => connection::serve(stream, &origin, accepted.shared, accepted.stop).await,
        Protocol::Http => web::serve(stream, origin, security, accepted).await,
        Protocol::Tls | Protocol::Unknown(_) => {
            log_unknown_protocol(&accepted, first);
            stream.shutdown().await
        }
    }
}

fn log_unknown_protocol(accepted: &AcceptedConnection, byte: u8) {
    tracing::warn!(
        address = %accepted.address,
        first_byte = byte,
        "closed: neither AMQP nor HTTP nor TLS; old clients must choose AMQP as their transport"
    );
}

impl Protocol {
    fn by(first: u8) -> Self {
        match first {
            b'A' => Self::Amqp,
            b'C' | b'D' | b'G' | b'H' | b'O' | b'P' | b'T' => Self::Http,
            HANDSHAKE => Self::Tls,
            other => Self::Unknown(other),
        }
    }
}

/// Bytes read from a socket at once: two full records.
const BLOCK: usize = 32 * 1024;

/// The condition in the record for a client that does not trust the emulator.
const NOT_TRUSTED: &str = "emulator:tls-not-trusted";

/// Runs a TLS handshake; logs a failure and returns `None`.
pub(crate) async fn handshake(
    shared: &Arc<Shared>,
    stream: TcpStream,
    address: SocketAddr,
    origin: &ConnectionOrigin,
) -> Option<Secured> {
    let step_timeout = shared.options.step_timeout;
    let stream = BufReader::with_capacity(BLOCK, stream);
    let mut sni_name = SniName::default();
    let shaking = async {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let is_host = |name: &str| shared.namespaces.is_host(name);
        let hello = start.client_hello();
        sni_name = shared
            .tls
            .sni_name(origin.address(), hello.server_name(), is_host);
        let config = config(shared, &sni_name).await?;
        start.into_stream(config).await
    };
    match timeout(step_timeout, shaking).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) if is_certificate_rejected(&error) => {
            let trusted = shared.tls.to_trust(&sni_name);
            tracing::warn!(%address, "closed: the client does not trust the emulator; let it trust {trusted}");
            if let Some(namespace) = shared.namespaces.of_origin(origin) {
                let text = format!(
                    "the client at {address} does not trust the authority of the emulator; let it trust {trusted}"
                );
                namespace.record_refusal(ClientId::BROKER, None, NOT_TRUSTED, &text);
            }
            None
        }
        Ok(Err(error)) => {
            tracing::warn!(%address, %error, "closed: the TLS handshake failed");
            None
        }
        Err(_) => {
            tracing::warn!(%address, "closed: the TLS handshake took longer than {} s", step_timeout.as_secs_f64());
            None
        }
    }
}

/// Returns the TLS configuration. Reads and writes files on a thread that may block.
async fn config(shared: &Arc<Shared>, sni_name: &SniName) -> io::Result<Arc<ServerConfig>> {
    if let Some(made) = shared.tls.cached(sni_name) {
        return Ok(made);
    }
    let (shared, sni_name) = (Arc::clone(shared), sni_name.clone());
    let making = spawn_blocking(move || shared.tls.config(&sni_name));
    making.await?.map_err(io::Error::other)
}

/// Returns whether the client has rejected the emulator's certificate.
fn is_certificate_rejected(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|error| error.downcast_ref());
    matches!(
        error,
        Some(rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
        ))
    )
}

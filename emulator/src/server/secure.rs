//! The beginning of TLS with a peer, and what is said of one that fails.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::server::Acceptor;
use rustls::{AlertDescription, ServerConfig};
use servicebus_broker::ClientId;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;
use crate::tls::{Secured, SniName};

/// What is read from a socket in one go: two full records.
const BLOCK: usize = 32 * 1024;

/// What the record has for a client that does not trust the emulator, in place of an AMQP condition.
const NOT_TRUSTED: &str = "emulator:tls-not-trusted";

/// TLS with a peer; none when it came to nothing, which is in the log then.
pub(crate) async fn handshake(
    shared: &Arc<Shared>,
    stream: TcpStream,
    address: SocketAddr,
    arrival: &ConnectionOrigin,
) -> Option<Secured> {
    let patience = shared.options.patience;
    let stream = BufReader::with_capacity(BLOCK, stream);
    let mut sought = SniName::default();
    let shaking = async {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let is_host = |name: &str| shared.namespaces.is_host(name);
        let hello = start.client_hello();
        sought = shared
            .tls
            .sought(arrival.address(), hello.server_name(), is_host);
        let config = config(shared, &sought).await?;
        start.into_stream(config).await
    };
    match timeout(patience, shaking).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) if is_distrust(&error) => {
            let trusted = shared.tls.to_trust(&sought);
            tracing::warn!(%address, "closed: the client does not trust the emulator; let it trust {trusted}");
            if let Some(namespace) = shared.namespaces.of_arrival(arrival) {
                let text = format!(
                    "the client at {address} does not trust the authority of the emulator; let it trust {trusted}"
                );
                namespace.note_refusal(ClientId::BROKER, None, NOT_TRUSTED, &text);
            }
            None
        }
        Ok(Err(error)) => {
            tracing::warn!(%address, %error, "closed: no TLS handshake");
            None
        }
        Err(_) => {
            tracing::warn!(%address, "closed: the TLS handshake took longer than {} s", patience.as_secs_f64());
            None
        }
    }
}

/// What TLS is begun with. Files are read and written where no other connection waits for it.
async fn config(shared: &Arc<Shared>, sought: &SniName) -> io::Result<Arc<ServerConfig>> {
    if let Some(made) = shared.tls.made(sought) {
        return Ok(made);
    }
    let (shared, sought) = (Arc::clone(shared), sought.clone());
    let making = spawn_blocking(move || shared.tls.config(&sought));
    making.await?.map_err(io::Error::other)
}

/// Whether the client has said that it will not believe our certificate.
fn is_distrust(error: &io::Error) -> bool {
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

//! The beginning of TLS with a peer, and what is said of one that fails.

use std::io;
use std::net::SocketAddr;

use rustls::AlertDescription;
use rustls::server::Acceptor;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use super::Shared;
use crate::namespaces::Arrival;
use crate::tls::{Secured, Sought};

/// What is read from a socket in one go: two full records.
const BLOCK: usize = 32 * 1024;

/// TLS with a peer; none when it came to nothing, which is in the log then.
pub(super) async fn handshake(
    shared: &Shared,
    stream: TcpStream,
    address: SocketAddr,
    arrival: &Arrival,
) -> Option<Secured> {
    let (tls, patience) = (&shared.tls, shared.options.patience);
    let stream = BufReader::with_capacity(BLOCK, stream);
    let shaking = async {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let name = start.client_hello().server_name().map(str::to_owned);
        let sought = Sought {
            address: arrival.address(),
            // Any other name would be one that nobody here can vouch for.
            name: name
                .map(|name| name.to_ascii_lowercase())
                .filter(|name| shared.namespaces.is_host(name)),
        };
        let config = tls.config(&sought).map_err(io::Error::other)?;
        start.into_stream(config).await
    };
    match timeout(patience, shaking).await {
        Ok(Ok(stream)) => Some(Box::new(stream)),
        Ok(Err(error)) if is_distrust(&error) => {
            let trusted = tls.authority_file().map_or_else(
                || "the authority of its certificate".to_owned(),
                |file| file.display().to_string(),
            );
            tracing::warn!(%address, "closed: the client does not trust the emulator; let it trust {trusted}");
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

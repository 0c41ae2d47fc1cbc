//! A connection of the harness, with or without TLS, as one type; and one HTTP request over it.
//!
//! The code of a protocol is compiled for every type of connection, and that of AMQP is long. A dynamic call costs nothing
//! compared to a system call.

use std::{
    fmt::{self, Debug, Display},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::{Request, StatusCode, client::conn::http1::handshake};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::{error::Error, text, variables::CONNECTION_STRING_VARIABLE};

/// Characters that are unreserved in every part of a URI (RFC 3986 §2.3).
pub(crate) const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A byte stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Debug + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Debug + Unpin + Send> Stream for T {}

/// Sends a request and returns the answer, up to a number of bytes. The connection ends with the answer: tests send few
/// requests, and a connection that is not kept cannot become stale.
pub(crate) async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Full<Bytes>>,
    most: usize,
) -> io::Result<(StatusCode, Bytes)> {
    let begun = handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = begun.map_err(io::Error::other)?;
    let answer = async move {
        let response = sender.send_request(request).await;
        let response = response.map_err(io::Error::other)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), most).collect().await;
        Ok((status, body.map_err(io::Error::other)?.to_bytes()))
    };
    // The connection makes progress only while it is polled; it ends with the answer.
    tokio::pin!(connection);
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        _ = &mut connection => answer.await,
    }
}

/// Limits an exchange to `within`.
pub(crate) async fn within<T>(
    within: Duration,
    exchange: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let late = |_elapsed| {
        let sentence = format!("no answer within {}", text::seconds(within));
        Err(io::Error::new(io::ErrorKind::TimedOut, sentence))
    };
    tokio::time::timeout(within, exchange)
        .await
        .unwrap_or_else(late)
}

/// Connects to one host over TLS as any client of the service does: trusts the system's CA certificates, or those of
/// `SSL_CERT_FILE`.
#[derive(Clone)]
pub(crate) struct Secure {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Secure {
    /// Loads the CA certificates that the system trusts.
    pub(crate) fn of_system(host: &str) -> Result<Self, Error> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (trusted, _unusable) = roots.add_parsable_certificates(found.certs);
        if trusted == 0 {
            let errors = found.errors.iter().map(ToString::to_string);
            return Err(no_trust(&Vec::from_iter(errors).join(", ")));
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| no_trust(&error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| unknown_host(host, &error))?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }

    /// Connects; a certificate error explains what to trust.
    pub(crate) async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        self.wrap(stream).await
    }

    /// Starts TLS on a connection.
    pub(crate) async fn wrap(&self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        let begun = self.connector.connect(self.name.clone(), stream).await;
        let begun = begun.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => io::Error::other(format!(
                "{error}; for an emulator, SSL_CERT_FILE must name its ca.pem"
            )),
            _ => error,
        });
        Ok(Box::new(begun?))
    }
}

/// The host of the connection string cannot be resolved.
pub(crate) fn unknown_host(host: &str, error: &dyn Display) -> Error {
    Error::namespace(format!(
        "the host {host} of {CONNECTION_STRING_VARIABLE} is not found: {error}"
    ))
}

/// The system trusts no CA certificate.
fn no_trust(why: &str) -> Error {
    Error::namespace(format!(
        "this system trusts no CA certificate, so it can trust no namespace: {why}; for an emulator, name its ca.pem in SSL_CERT_FILE"
    ))
}

impl Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secure").field(&self.name).finish()
    }
}

//! TLS to a namespace that wants it of every client.

use std::{fmt::Debug, io, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

/// A connection, over TLS or not, as one type: the copying is compiled once.
pub(super) trait Stream: AsyncRead + AsyncWrite + Debug + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Debug + Unpin + Send> Stream for T {}

/// Connects to one host over TLS.
#[derive(Clone)]
pub(super) struct Secure {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Secure {
    /// Trusts the authorities in a file.
    pub(super) fn new(authorities: &Path, host: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        let found = CertificateDer::pem_file_iter(authorities).map_err(io::Error::other)?;
        roots.add_parsable_certificates(found.flatten());
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name: ServerName::try_from(host.to_owned()).map_err(io::Error::other)?,
        })
    }

    /// Begins TLS on a connection.
    pub(super) async fn wrap(&self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        let begun = self.connector.connect(self.name.clone(), stream).await?;
        Ok(Box::new(begun))
    }
}

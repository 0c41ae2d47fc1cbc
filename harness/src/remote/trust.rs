//! TLS as any client of the service has it: with the authorities that the system trusts, or those of `SSL_CERT_FILE`.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::RemoteError;
use crate::stream::Stream;

/// Connects to one host over TLS.
#[derive(Clone)]
pub(crate) struct Secure {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Secure {
    /// Trusts what the system trusts.
    pub(crate) fn of_system(host: &str) -> Result<Self, RemoteError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        let (trusted, _unusable) = roots.add_parsable_certificates(found.certs);
        if trusted == 0 {
            let errors = found.errors.iter().map(ToString::to_string);
            return Err(RemoteError::NoTrust(Vec::from_iter(errors).join(", ")));
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| RemoteError::NoTrust(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| RemoteError::UnknownHost {
            host: host.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, error),
        })?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }

    /// Connects, and says what to trust where that is what is missing.
    pub(crate) async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        self.wrap(stream).await
    }

    /// Begins TLS on a connection.
    pub(crate) async fn wrap(&self, stream: TcpStream) -> io::Result<Box<dyn Stream>> {
        let begun = self.connector.connect(self.name.clone(), stream).await;
        let begun = begun.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => io::Error::other(format!(
                "{error}; of an emulator the ca.pem must be named in SSL_CERT_FILE"
            )),
            _ => error,
        });
        Ok(Box::new(begun?))
    }
}

impl fmt::Debug for Secure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secure").field(&self.name).finish()
    }
}

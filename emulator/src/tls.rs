//! TLS: which certificate the emulator shows, and the authority that vouches for it.
//!
//! Unless a certificate is given, there is one authority per user, kept in a directory and made when it is first
//! needed: when a door for TLS is opened, else at the first client that begins with TLS or asks for the
//! authority's certificate. The emulator's own certificate is made at the first TLS client and never written.

mod authority;
mod directory;
mod error;
mod given;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use authority::Authority;

pub use error::TlsError;

/// How TLS is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// Where the user's authority is kept; `servicebus-emulator` in the user's cache directory unless set.
    pub directory: Option<PathBuf>,
    /// A certificate to show instead of one that is made.
    pub certificate: Option<GivenCertificate>,
    /// Names and addresses that the made certificate holds for, beside those that the emulator knows.
    pub names: Vec<String>,
}

/// A certificate of the user's own, both files in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenCertificate {
    /// The certificate, and those between it and its authority.
    pub chain: PathBuf,
    /// Its private key, not encrypted.
    pub key: PathBuf,
}

/// A certificate with those above it, and its key.
type Chain = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The TLS of one emulator. What fails once fails ever after, with the same error.
pub(crate) struct Tls {
    options: TlsOptions,
    /// By what clients reach the emulator.
    names: Vec<String>,
    /// Seconds since the Unix epoch at which the emulator started.
    started_at: i64,
    authority: OnceLock<Result<Authority, Arc<TlsError>>>,
    acceptor: OnceLock<Result<TlsAcceptor, Arc<TlsError>>>,
}

impl Tls {
    /// For an emulator that is reached by `names`, among them addresses. Reads and makes nothing.
    pub(crate) fn new(options: TlsOptions, names: Vec<String>, started_at: i64) -> Self {
        Self {
            options,
            names,
            started_at,
            authority: OnceLock::new(),
            acceptor: OnceLock::new(),
        }
    }

    /// Makes sure that clients can be served, and that the authority's certificate can be read.
    pub(crate) fn prepare(&self) -> Result<(), Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => self.acceptor().map(drop),
            None => self.authority().map(drop),
        }
    }

    /// What begins TLS with a client.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, Arc<TlsError>> {
        self.acceptor.get_or_init(|| self.make_acceptor()).clone()
    }

    /// The authority's certificate in PEM; none where a certificate was given.
    pub(crate) fn authority_pem(&self) -> Result<Option<&str>, Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => Ok(None),
            None => self.authority().map(|authority| Some(authority.pem())),
        }
    }

    /// The file with the authority's certificate, once there is one.
    pub(crate) fn authority_file(&self) -> Option<&Path> {
        self.authority.get()?.as_ref().ok()?.file()
    }

    fn authority(&self) -> Result<&Authority, Arc<TlsError>> {
        let authority = self.authority.get_or_init(|| {
            let found = directory::authority(self.options.directory.as_deref());
            found.map_err(Arc::new)
        });
        authority.as_ref().map_err(Arc::clone)
    }

    fn make_acceptor(&self) -> Result<TlsAcceptor, Arc<TlsError>> {
        let (chain, key) = match &self.options.certificate {
            Some(given) => given::read(given).map_err(Arc::new)?,
            None => {
                let names = self.names.iter().chain(&self.options.names);
                let issued = self.authority()?.issue(names, self.started_at);
                issued.map_err(|error| Arc::new(TlsError::Make(error)))?
            }
        };
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| Arc::new(TlsError::Use(error)))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

impl fmt::Debug for Tls {
    /// Without keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tls")
            .field("options", &self.options)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

//! TLS: which certificate the emulator shows, the authority that vouches for it, and the stream.
//!
//! Unless a certificate is given, there is one authority per user, kept in a directory and made when it is first
//! needed: when a door for TLS is opened, else at the first client that begins with TLS or asks for the
//! authority's certificate. What the emulator itself shows is never written: it is made for the first client that comes to
//! an address, or asks for a name of a namespace, because namespaces are made while it serves.

mod authority;
mod directory;
mod error;
mod given;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use authority::Authority;

use crate::clock::{RealClock, WallClock};

pub use error::TlsError;

/// The server's side of TLS with a peer, after the handshake. Beneath it the socket is read in large blocks: rustls alone
/// asks for 4 KiB at a time.
pub(crate) type Secured = Box<TlsStream<BufReader<TcpStream>>>;

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

/// TLS for a server that is no emulator but stands before one.
#[derive(Debug, Clone)]
pub struct Vouched {
    /// What TLS with a client is begun with.
    pub config: Arc<ServerConfig>,
    /// The certificate of the authority that clients must trust, in PEM.
    pub authority: String,
}

/// Makes a certificate that holds for a name or an address, by the same authority of this user that vouches for
/// emulators unless [`TlsOptions`] say otherwise.
pub fn vouched(name: String) -> Result<Vouched, Arc<TlsError>> {
    let now = RealClock::start(WallClock::default()).unix_seconds();
    let tls = Tls::new(TlsOptions::default(), vec![name], now);
    Ok(Vouched {
        config: tls.config(&Sought::default())?,
        authority: tls.authority()?.pem().to_owned(),
    })
}

/// Most certificates that are kept: a name and an address for each of as many namespaces as there may be.
const MAX_SHOWN: usize = 2_000;

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
    shown: Mutex<HashMap<Sought, Arc<ServerConfig>>>,
}

/// What a client wants a certificate for, beside what every certificate holds for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Sought {
    /// The address that it came to.
    pub(crate) address: Option<IpAddr>,
    /// The name of a namespace that it asked for.
    pub(crate) name: Option<String>,
}

impl Tls {
    /// For an emulator that is reached by `names`, among them addresses. Reads and makes nothing.
    pub(crate) fn new(options: TlsOptions, names: Vec<String>, started_at: i64) -> Self {
        Self {
            options,
            names,
            started_at,
            authority: OnceLock::new(),
            shown: Mutex::default(),
        }
    }

    /// Makes sure that clients can be served, and that the authority's certificate can be read.
    pub(crate) fn prepare(&self) -> Result<(), Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => self.config(&Sought::default()).map(drop),
            None => self.authority().map(drop),
        }
    }

    /// What TLS with a client is begun with.
    pub(crate) fn config(&self, sought: &Sought) -> Result<Arc<ServerConfig>, Arc<TlsError>> {
        let nothing = Sought::default();
        // A certificate that was given holds for what it holds for.
        let sought = match self.options.certificate {
            Some(_) => &nothing,
            None => sought,
        };
        let mut shown = self.shown.lock();
        if let Some(made) = shown.get(sought) {
            return Ok(Arc::clone(made));
        }
        let made = Arc::new(self.make_config(sought)?);
        if shown.len() >= MAX_SHOWN {
            // Those of namespaces that are gone are among them, and the others are soon made again.
            shown.clear();
        }
        shown.insert(sought.clone(), Arc::clone(&made));
        Ok(made)
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

    fn make_config(&self, sought: &Sought) -> Result<ServerConfig, Arc<TlsError>> {
        let (chain, key) = match &self.options.certificate {
            Some(given) => given::read(given).map_err(Arc::new)?,
            None => {
                let own = [
                    sought.name.clone(),
                    sought.address.map(|address| address.to_string()),
                ];
                let names = self.names.iter().chain(&self.options.names);
                let names = names.chain(own.iter().flatten());
                let issued = self.authority()?.issue(names, self.started_at);
                issued.map_err(|error| Arc::new(TlsError::Make(error)))?
            }
        };
        ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| Arc::new(TlsError::Use(error)))
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

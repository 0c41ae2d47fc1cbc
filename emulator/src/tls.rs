//! TLS: which certificate the emulator shows, the authorities that vouch for it, and the stream.
//!
//! Unless a certificate is given, there is one authority per user, kept in a directory and made when it is first
//! needed: when a port for TLS is opened, else at the first client that begins with TLS or asks for the
//! authority's certificate. It may vouch for this machine and for the service's domain alone; for all other names there is
//! one more, in memory, for as long as the emulator runs. What the emulator itself shows is never written: it is made for
//! the first client that comes to an address, or asks for a name, because namespaces are made while it serves.
//!
//! What TLS is set up with.

mod authorities;
mod authority;
mod directory;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use authorities::Authorities;
use authority::is_local;
use parking_lot::Mutex;
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::{ServerConfig, SupportedCipherSuite};
use thiserror::Error;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::clock::{RealClock, WallClock};

/// The server's side of TLS with a peer, after the handshake. Beneath it the socket is read in large blocks: rustls alone
/// asks for 4 KiB at a time.
pub(crate) type Secured = Box<TlsStream<BufReader<TcpStream>>>;

/// TLS for a server that is no emulator but stands before one.
#[derive(Debug, Clone)]
pub struct IssuedCertificate {
    /// What TLS with a client is begun with.
    pub config: Arc<ServerConfig>,
    /// The certificates of the authorities that clients must trust, in PEM.
    pub authority: String,
}

/// Makes a certificate that holds for a name or an address, by the same authority of this user that vouches for
/// emulators unless [`TlsOptions`] say otherwise; for a name that means neither this machine nor the service, by an
/// authority that is made for this call.
pub fn vouched(name: String) -> Result<IssuedCertificate, Arc<TlsError>> {
    let now = RealClock::start(WallClock::default()).unix_seconds();
    let tls = Tls::new(TlsOptions::default(), None, Vec::new(), now);
    let sought = SniName {
        name: Some(name),
        address: None,
    };
    Ok(IssuedCertificate {
        config: tls.config(&sought)?,
        authority: tls.authorities()?.pem()?.to_owned(),
    })
}

/// The file with the certificate that vouches for loopback addresses and the service's domain, made now if there is none;
/// none where a certificate is given.
pub fn authority_file(options: TlsOptions) -> Result<Option<PathBuf>, Arc<TlsError>> {
    let now = RealClock::start(WallClock::default()).unix_seconds();
    let tls = Tls::new(options, None, Vec::new(), now);
    tls.prepare()?;
    Ok(tls.authority_file().map(Path::to_owned))
}

/// Most certificates that are kept: a name and an address for each of as many namespaces as there may be.
const MAX_SHOWN: usize = 2_000;

const LOCALHOST: &str = "localhost";

/// The TLS of one emulator. What fails once fails ever after, with the same error.
pub(crate) struct Tls {
    options: TlsOptions,
    /// Where the authority is kept of a user that has no place for it.
    data: Option<PathBuf>,
    /// By what clients reach the emulator.
    names: Vec<String>,
    /// Seconds since the Unix epoch at which the emulator started.
    started_at: i64,
    authorities: OnceLock<Result<Authorities, Arc<TlsError>>>,
    shown: Mutex<HashMap<SniName, Arc<ServerConfig>>>,
}

/// What a client wants a certificate for, beside what every certificate holds for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct SniName {
    /// The address that it came to.
    address: Option<IpAddr>,
    /// The name that it asked for, if the emulator has it.
    name: Option<String>,
}

impl SniName {
    /// The name or address by which the client judges the certificate.
    fn judged(&self) -> String {
        let address = || self.address.map(|address| address.to_string());
        self.name
            .clone()
            .or_else(address)
            .unwrap_or_else(|| LOCALHOST.to_owned())
    }
}

impl Tls {
    /// For an emulator that is reached by `names`, among them addresses, and keeps what it holds in `data`. Reads and makes
    /// nothing.
    pub(crate) fn new(
        options: TlsOptions,
        data: Option<PathBuf>,
        names: Vec<String>,
        started_at: i64,
    ) -> Self {
        Self {
            options,
            data,
            names,
            started_at,
            authorities: OnceLock::new(),
            shown: Mutex::default(),
        }
    }

    /// Makes sure that clients can be served, and that the authority's certificate can be read.
    pub(crate) fn prepare(&self) -> Result<(), Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => self.config(&SniName::default()).map(drop),
            None => self.authorities().map(drop),
        }
    }

    /// What a client wants that came to an address and began TLS with a name; `is_host` tells names of namespaces.
    pub(crate) fn sought(
        &self,
        address: Option<IpAddr>,
        name: Option<&str>,
        is_host: impl FnOnce(&str) -> bool,
    ) -> SniName {
        // A certificate that was given holds for what it holds for.
        if self.options.certificate.is_some() {
            return SniName::default();
        }
        let known = |name: String| {
            let mut own = self.options.names.iter().chain(&self.names);
            if own.any(|own| own.eq_ignore_ascii_case(&name)) || is_host(&name) {
                return Some(name);
            }
            // It is in every certificate of the kept authority, or no authority here can vouch for it.
            is_local(&name).then(|| LOCALHOST.to_owned())
        };
        let name = match name {
            Some(name) => known(name.to_ascii_lowercase()),
            None => self.address_elsewhere(),
        };
        SniName { address, name }
    }

    /// An address of another machine by which clients were said to come. They name none, and what passes them on may come
    /// to loopback.
    fn address_elsewhere(&self) -> Option<String> {
        let is_elsewhere = |name: &&String| {
            let address = name.parse::<IpAddr>();
            address.is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
        };
        self.options.names.iter().find(is_elsewhere).cloned()
    }

    /// What TLS with a client is begun with, if that was made before.
    pub(crate) fn made(&self, sought: &SniName) -> Option<Arc<ServerConfig>> {
        let shown = self.shown.lock();
        shown.get(sought).map(Arc::clone)
    }

    /// What TLS with a client is begun with. Reads and writes files where that was not made before.
    pub(crate) fn config(&self, sought: &SniName) -> Result<Arc<ServerConfig>, Arc<TlsError>> {
        if let Some(made) = self.made(sought) {
            return Ok(made);
        }
        let made = Arc::new(self.make_config(sought)?);
        let mut shown = self.shown.lock();
        if shown.len() >= MAX_SHOWN {
            // Those of namespaces that are gone are among them, and the others are soon made again.
            shown.clear();
        }
        Ok(Arc::clone(shown.entry(sought.clone()).or_insert(made)))
    }

    /// The certificates of the authorities in PEM, that of the user's first; none where a certificate was given. Reads and
    /// writes files where they were not needed before.
    pub(crate) fn authority_pem(&self) -> Result<Option<&str>, Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => Ok(None),
            None => self.authorities()?.pem().map(Some),
        }
    }

    /// The file with the certificates of the authorities that clients must trust, once there is one.
    pub(crate) fn authority_file(&self) -> Option<&Path> {
        self.authorities.get()?.as_ref().ok()?.file()
    }

    /// The same certificates in a trust store for Java, once there is one.
    pub(crate) fn trust_store(&self) -> Option<&Path> {
        self.authorities.get()?.as_ref().ok()?.trust_store()
    }

    /// What a client must trust to believe the certificate that it was shown.
    pub(crate) fn to_trust(&self, sought: &SniName) -> String {
        if self.options.certificate.is_some() {
            return "the authority of the certificate that was given".to_owned();
        }
        let both = self.authorities.get().and_then(|both| both.as_ref().ok());
        match both.and_then(|both| both.file_for(&sought.judged())) {
            Some(file) => file.display().to_string(),
            None => "the certificates at /$emulator/v1/ca.pem".to_owned(),
        }
    }

    fn authorities(&self) -> Result<&Authorities, Arc<TlsError>> {
        let authorities = self
            .authorities
            .get_or_init(|| Authorities::new(&self.options, self.data.as_deref()));
        authorities.as_ref().map_err(Arc::clone)
    }

    fn make_config(&self, sought: &SniName) -> Result<ServerConfig, Arc<TlsError>> {
        let (chain, key) = match &self.options.certificate {
            Some(given) => read(given).map_err(Arc::new)?,
            None => {
                let judged = sought.judged();
                let address = sought.address.map(|address| address.to_string());
                let names = self.names.iter().chain(&self.options.names);
                let names = names.chain(address.iter()).chain([&judged]);
                let authority = self.authorities()?.that_may(&judged)?;
                let issued = authority.issue(names, self.started_at);
                issued.map_err(|error| Arc::new(TlsError::Make(error)))?
            }
        };
        let made = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = made.map_err(|error| Arc::new(TlsError::Use(error)))?;
        config.ignore_client_order = true;
        Ok(config)
    }
}

/// The cipher suites of ring, those with AES-128 first: messages between a test and its emulator need no longer keys, and
/// shorter ones take fewer rounds.
fn provider() -> CryptoProvider {
    let mut provider = default_provider();
    let takes_longer = |suite: &SupportedCipherSuite| match suite.suite().as_str() {
        Some(name) => !name.contains("AES_128"),
        None => true,
    };
    provider.cipher_suites.sort_by_key(takes_longer);
    provider
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

/// How TLS is set up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// Where the user's authority is kept; `servicebus-emulator` in the user's cache directory unless set.
    pub directory: Option<PathBuf>,
    /// A certificate to show instead of one that is made.
    pub certificate: Option<UserCertificate>,
    /// Names and addresses that the made certificate holds for, beside those that the emulator knows. Those that mean
    /// neither this machine nor the service are vouched for by an authority that ends with the emulator.
    pub names: Vec<String>,
}

/// A certificate of the user's own, both files in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCertificate {
    /// The certificate, and those between it and its authority.
    pub chain: PathBuf,
    /// Its private key, not encrypted.
    pub key: PathBuf,
}

/// A certificate with those above it, and its key.
pub(crate) type Chain = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads both files.
pub(crate) fn read(given: &UserCertificate) -> Result<Chain, TlsError> {
    let unread = |what, file: &Path, error: pem::Error| TlsError::Given {
        what,
        file: file.to_owned(),
        reason: error.to_string(),
    };
    let chain = CertificateDer::pem_file_iter(&given.chain)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .and_then(|chain| match chain.is_empty() {
            true => Err(pem::Error::NoItemsFound),
            false => Ok(chain),
        })
        .map_err(|error| unread("a certificate", &given.chain, error))?;
    let key = PrivateKeyDer::from_pem_file(&given.key)
        .map_err(|error| unread("a private key", &given.key, error))?;
    Ok((chain, key))
}

/// Why there is no TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The directory of the authority cannot be used.
    #[error("cannot keep the certificate authority in {}: {source}; --tls-directory names another place", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The authority's files do not make an authority.
    #[error(
        "ca.pem and ca-key.pem in {} are no certificate authority of this program ({reason}); remove both and it \
         makes them anew",
        directory.display()
    )]
    Damaged {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// A file that was given cannot be read.
    #[error("cannot read {what} from {}: {reason}", file.display())]
    Given {
        /// The certificate or its key.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No certificate can be made, because of a name that was asked for or for want of randomness.
    #[error("cannot make a certificate: {0}")]
    Make(rcgen::Error),
    /// A certificate and its key do not go together.
    #[error("cannot use the certificate: {0}")]
    Use(rustls::Error),
}

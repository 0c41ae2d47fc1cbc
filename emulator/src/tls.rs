//! TLS: the server certificate, the authorities that issue it, and the stream.
//!
//! Unless the options have a certificate, one authority per user issues it. The authority is kept in a directory and created
//! when it is first needed: when a port for TLS is opened, else when a client begins TLS or asks for the authority's
//! certificate. It issues certificates only for this machine and the service's domain; a second authority in memory, which
//! ends with the emulator, issues those for all other names. Server certificates are never written: each is created for the
//! first client of an address or name, because namespaces are created at run time.

mod authorities;
mod authority;
mod directory;

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use authorities::Authorities;
#[cfg(feature = "cli")]
pub(crate) use authority::is_certifiable;
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

/// The server side of TLS after the handshake. The buffer reads the socket in large blocks; rustls alone reads 4 KiB at a
/// time.
pub(crate) type Secured = Box<TlsStream<BufReader<TcpStream>>>;

/// A certificate for a server in front of the emulator.
#[derive(Debug, Clone)]
pub struct IssuedCertificate {
    /// The TLS configuration of the server.
    pub config: Arc<ServerConfig>,
    /// The certificates of the authorities that clients must trust, in PEM.
    pub authority: String,
}

/// Issues a certificate for a name or an address. The authority of this user that emulators use unless their [`TlsOptions`]
/// say otherwise signs it; for a name that means neither this machine nor the service, an authority that is created for this
/// call.
pub fn issue_certificate(name: String) -> Result<IssuedCertificate, Arc<TlsError>> {
    let now = RealClock::start(WallClock::default()).unix_seconds();
    let tls = Tls::new(TlsOptions::default(), None, Vec::new(), now);
    let sni_name = SniName {
        name: Some(name),
        address: None,
    };
    Ok(IssuedCertificate {
        config: tls.config(&sni_name)?,
        authority: tls.authorities()?.pem()?.to_owned(),
    })
}

/// Returns the file with the certificate of the user's authority, which issues certificates for loopback addresses and the
/// service's domain; creates it if needed. It is below the data directory if the user has no cache directory. `None` where
/// the options have a certificate, and where the authority is in memory only.
pub fn authority_file(
    options: TlsOptions,
    data: Option<PathBuf>,
) -> Result<Option<PathBuf>, Arc<TlsError>> {
    let now = RealClock::start(WallClock::default()).unix_seconds();
    let options = TlsOptions {
        // For names elsewhere an emulator has an authority of its run, in a file that ends with it.
        names: Vec::new(),
        ..options
    };
    let tls = Tls::new(options, data, Vec::new(), now);
    tls.prepare()?;
    Ok(tls.authority_file().map(Path::to_owned))
}

/// Maximum number of cached certificates: a name and an address for each namespace that may exist.
const MAX_SHOWN: usize = 2_000;

const LOCALHOST: &str = "localhost";

/// The TLS state of one emulator. A failure is permanent and repeats with the same error.
pub(crate) struct Tls {
    options: TlsOptions,
    /// Where the authority is kept if the user has no cache directory.
    data: Option<PathBuf>,
    /// The names by which clients reach the emulator.
    names: Vec<String>,
    /// Seconds since the Unix epoch at which the emulator started.
    started_at: i64,
    authorities: OnceLock<Result<Authorities, Arc<TlsError>>>,
    shown: Mutex<HashMap<SniName, Arc<ServerConfig>>>,
}

/// The names that a client needs in the certificate beside those that every certificate has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct SniName {
    /// The address that the client connected to.
    address: Option<IpAddr>,
    /// The name that the client asked for, if it is one of the emulator's.
    name: Option<String>,
}

impl SniName {
    /// Returns the name or address that the client compares with the certificate.
    fn compared_name(&self) -> String {
        let address = || self.address.map(|address| address.to_string());
        self.name
            .clone()
            .or_else(address)
            .unwrap_or_else(|| LOCALHOST.to_owned())
    }
}

impl Tls {
    /// Creates the TLS state of an emulator that clients reach by `names`, addresses among them, with the data directory
    /// `data`. Neither reads nor creates files.
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

    /// Prepares TLS, so that clients can be served and the authority's certificate can be read.
    pub(crate) fn prepare(&self) -> Result<(), Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => self.config(&SniName::default()).map(drop),
            None => self.authorities().map(drop),
        }
    }

    /// Determines the names that a client needs by its address and its server name (SNI); `is_host` recognizes namespaces'
    /// names.
    pub(crate) fn sni_name(
        &self,
        address: Option<IpAddr>,
        name: Option<&str>,
        is_host: impl FnOnce(&str) -> bool,
    ) -> SniName {
        // The names of a given certificate cannot be changed.
        if self.options.certificate.is_some() {
            return SniName::default();
        }
        let known = |name: String| {
            let mut own = self.options.names.iter().chain(&self.names);
            if own.any(|own| own.eq_ignore_ascii_case(&name)) || is_host(&name) {
                return Some(name);
            }
            // Every certificate of the kept authority has the name, or no authority here can issue it.
            is_local(&name).then(|| LOCALHOST.to_owned())
        };
        let name = match name {
            Some(name) => known(name.to_ascii_lowercase()),
            None => self.address_elsewhere(),
        };
        SniName { address, name }
    }

    /// Returns the address of another machine by which clients reach the emulator according to the options. Such clients
    /// send no name, and a proxy may forward them to the loopback.
    fn address_elsewhere(&self) -> Option<String> {
        let is_elsewhere = |name: &&String| {
            let address = name.parse::<IpAddr>();
            address.is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
        };
        self.options.names.iter().find(is_elsewhere).cloned()
    }

    /// Returns the TLS configuration if it was created before.
    pub(crate) fn cached(&self, sni_name: &SniName) -> Option<Arc<ServerConfig>> {
        let shown = self.shown.lock();
        shown.get(sni_name).map(Arc::clone)
    }

    /// Returns the TLS configuration. Reads and writes files if it was not created before.
    pub(crate) fn config(&self, sni_name: &SniName) -> Result<Arc<ServerConfig>, Arc<TlsError>> {
        if let Some(made) = self.cached(sni_name) {
            return Ok(made);
        }
        let made = Arc::new(self.make_config(sni_name)?);
        let mut shown = self.shown.lock();
        if shown.len() >= MAX_SHOWN {
            // Certificates of removed namespaces are among them, and the others are quickly created again.
            shown.clear();
        }
        Ok(Arc::clone(shown.entry(sni_name.clone()).or_insert(made)))
    }

    /// Returns the certificates of the authorities in PEM, that of the user's first; `None` where the options have a
    /// certificate. Reads and writes files if they were not needed before.
    pub(crate) fn authority_pem(&self) -> Result<Option<&str>, Arc<TlsError>> {
        match self.options.certificate {
            Some(_) => Ok(None),
            None => self.authorities()?.pem().map(Some),
        }
    }

    /// Returns the file with the certificates of the authorities that clients must trust, once it exists.
    pub(crate) fn authority_file(&self) -> Option<&Path> {
        self.authorities.get()?.as_ref().ok()?.file()
    }

    /// Returns the trust store for Java with the same certificates, once it exists.
    pub(crate) fn trust_store(&self) -> Option<&Path> {
        self.authorities.get()?.as_ref().ok()?.trust_store()
    }

    /// Describes what a client must trust to accept the certificate.
    pub(crate) fn to_trust(&self, sni_name: &SniName) -> String {
        if self.options.certificate.is_some() {
            return "the authority of the certificate that was given".to_owned();
        }
        let both = self.authorities.get().and_then(|both| both.as_ref().ok());
        match both.and_then(|both| both.file_for(&sni_name.compared_name())) {
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

    fn make_config(&self, sni_name: &SniName) -> Result<ServerConfig, Arc<TlsError>> {
        let (chain, key) = match &self.options.certificate {
            Some(given) => read(given).map_err(Arc::new)?,
            None => {
                let compared_name = sni_name.compared_name();
                let address = sni_name.address.map(|address| address.to_string());
                let names = self.names.iter().chain(&self.options.names);
                let names = names.chain(address.iter()).chain([&compared_name]);
                let authority = self.authorities()?.authority_for(&compared_name)?;
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

/// Returns the cipher suites of ring with AES-128 first: traffic between a test and its emulator needs no longer keys, and
/// AES-128 takes fewer rounds.
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
    /// Leaves out the keys.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tls")
            .field("options", &self.options)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// Options of TLS.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// The directory of the user's authority; `servicebus-emulator` in the user's cache directory unless set.
    pub directory: Option<PathBuf>,
    /// A certificate to use instead of a created one.
    pub certificate: Option<UserCertificate>,
    /// Further names and addresses for the created certificate. Those that mean neither this machine nor the service are
    /// signed by an authority that ends with the emulator.
    pub names: Vec<String>,
}

/// A certificate of the user's own, both files in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserCertificate {
    /// The certificate with its intermediate certificates.
    pub chain: PathBuf,
    /// Its private key, not encrypted: RSA of 2,048 to 4,096 bits, EC P-256 or P-384, or Ed25519.
    pub key: PathBuf,
}

/// A certificate with its chain, and its key.
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
        .map_err(|error| unread("a certificate in PEM", &given.chain, error))?;
    let key = PrivateKeyDer::from_pem_file(&given.key)
        .map_err(|error| unread("an unencrypted private key in PEM", &given.key, error))?;
    Ok((chain, key))
}

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The directory of the authority cannot be used.
    #[error("cannot store the certificate authority in {}: {source}; select another directory with --tls-directory", directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The authority's files are not a valid authority.
    #[error(
        "ca.pem and ca-key.pem in {} are not a certificate authority of this program ({reason}); remove both and it \
         makes them anew",
        directory.display()
    )]
    Damaged {
        /// The directory.
        directory: PathBuf,
        /// What is wrong with the files.
        reason: String,
    },
    /// A file of the options cannot be read.
    #[error("cannot read {what} from {}: {reason}", file.display())]
    Given {
        /// The certificate or its key.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// No certificate can be created, because of a name in the options or a lack of randomness.
    #[error("cannot create a certificate: {0}")]
    Make(rcgen::Error),
    /// A certificate and its key do not match, or the key is of another kind.
    #[error(
        "cannot use the certificate and its key, which may be RSA of 2,048 to 4,096 bits, EC P-256 or P-384, or Ed25519: {0}"
    )]
    Use(rustls::Error),
}

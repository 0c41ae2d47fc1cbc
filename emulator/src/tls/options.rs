//! What TLS is set up with.

use std::io;
use std::path::PathBuf;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

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
    let unread = |what, file: &std::path::Path, error: pem::Error| TlsError::Given {
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

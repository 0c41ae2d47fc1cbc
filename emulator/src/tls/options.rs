//! What TLS is set up with.

use std::path::PathBuf;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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

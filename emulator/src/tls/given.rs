//! A certificate that the user brings.

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::error::TlsError;
use super::options::{Chain, UserCertificate};

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

//! Why there is no TLS, with the file that is to blame.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

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

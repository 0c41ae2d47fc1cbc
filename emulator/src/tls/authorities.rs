//! The authorities of one emulator: the user's, and one in memory that ends with the emulator and issues certificates for
//! names that the user's may not.
//!
//! Also writes the trust store for Java: a PKCS#12 file (RFC 7292) with certificates to trust and no key. It is neither
//! encrypted nor authenticated, because certificates are public and the directory is its owner's. Every JDK reads it, with
//! any password or without.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, DERWriterSeq, Tag, construct_der};

use super::authority::{Authority, Scope, is_local};
use super::{TlsError, TlsOptions, directory};

/// Both authorities.
pub(crate) struct Authorities {
    kept: Authority,
    /// Created when it is first needed, for a name or for a client that asks for all certificates: few emulators ever need
    /// its key.
    of_run: OnceLock<Result<RunAuthority, Arc<TlsError>>>,
    /// `None` if the user's authority is in memory only.
    file: Option<CertificateFile>,
    /// The same certificates for Java; `None` if the file cannot be written.
    trust_store: Option<PathBuf>,
}

/// The authority that ends with the emulator.
struct RunAuthority {
    authority: Authority,
    /// The certificates of both in PEM, that of the user's first.
    pem: String,
}

/// A file with certificates to trust.
enum CertificateFile {
    /// That of the user's authority.
    Kept(PathBuf),
    /// Those of both; removed with this value.
    RunAuthority { path: PathBuf, _lock: File },
}

impl Authorities {
    /// Finds or creates the user's authority. If a name in the options needs the other one, a file of this run has both
    /// certificates.
    pub(crate) fn new(options: &TlsOptions, data: Option<&Path>) -> Result<Self, Arc<TlsError>> {
        let (kept, directory) = directory::authority(options.directory.as_deref(), data)?;
        let mut authorities = Self {
            kept,
            of_run: OnceLock::new(),
            file: None,
            trust_store: None,
        };
        let Some(directory) = directory else {
            return Ok(authorities);
        };
        let needs_both = options.names.iter().any(|name| !is_local(name));
        let (file, certificates) = match needs_both {
            true => {
                let both = authorities.pem()?;
                (CertificateFile::of_run(&directory, both), both)
            }
            false => {
                let kept = directory::certificate(&directory);
                (CertificateFile::Kept(kept), authorities.kept.pem())
            }
        };
        let trust_store = directory::trust_store(file.path(), certificates);
        (authorities.file, authorities.trust_store) = (Some(file), trust_store);
        Ok(authorities)
    }

    /// Returns the authority for servers with this name or address.
    pub(crate) fn authority_for(&self, name: &str) -> Result<&Authority, Arc<TlsError>> {
        match is_local(name) {
            true => Ok(&self.kept),
            false => self.of_run().map(|of_run| &of_run.authority),
        }
    }

    pub(crate) fn pem(&self) -> Result<&str, Arc<TlsError>> {
        self.of_run().map(|of_run| &*of_run.pem)
    }

    fn of_run(&self) -> Result<&RunAuthority, Arc<TlsError>> {
        let of_run = self.of_run.get_or_init(|| {
            let authority = Authority::make(Scope::Any).map_err(TlsError::Make)?;
            let pem = format!("{}{}", self.kept.pem(), authority.pem());
            Ok(RunAuthority { authority, pem })
        });
        of_run.as_ref().map_err(Arc::clone)
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(CertificateFile::path)
    }

    pub(super) fn trust_store(&self) -> Option<&Path> {
        self.trust_store.as_deref()
    }

    /// Returns the file with the certificate of the authority for a name.
    pub(crate) fn file_for(&self, name: &str) -> Option<&Path> {
        match &self.file {
            Some(CertificateFile::Kept(file)) if is_local(name) => Some(file),
            Some(CertificateFile::RunAuthority { path, .. }) => Some(path),
            Some(CertificateFile::Kept(_)) | None => None,
        }
    }
}

impl CertificateFile {
    fn of_run(directory: &Path, pem: &str) -> Self {
        match directory::write_for_run(directory, pem) {
            Ok((path, lock)) => Self::RunAuthority { path, _lock: lock },
            Err(error) => {
                tracing::warn!(
                    "cannot write the certificates of this run to {}: {error}; they are at /$emulator/v1/ca.pem",
                    directory.display()
                );
                Self::Kept(directory::certificate(directory))
            }
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) | Self::RunAuthority { path, .. } => path,
        }
    }
}

impl Drop for CertificateFile {
    fn drop(&mut self) {
        if let Self::RunAuthority { path, .. } = self {
            // A file left behind would name an authority whose key is gone.
            let _ = fs::remove_file(directory::beside(path));
            let _ = fs::remove_file(path);
        }
    }
}

/// PKCS#7 data.
const DATA: &[u64] = &[1, 2, 840, 113_549, 1, 7, 1];
const CERTIFICATE_BAG: &[u64] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 3];
const X509_CERTIFICATE: &[u64] = &[1, 2, 840, 113_549, 1, 9, 22, 1];
/// The alias of an entry.
const FRIENDLY_NAME: &[u64] = &[1, 2, 840, 113_549, 1, 9, 20];
/// Java's own attribute: the JDK trusts no certificate of such a file without it.
const TRUSTED_KEY_USAGE: &[u64] = &[2, 16, 840, 1, 113_894, 746_875, 1, 1];
const ANY_EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37, 0];
const VERSION: u8 = 3;
const ALIAS: &str = "servicebus-emulator";

/// Encodes the trust store of certificates in PEM: the same bytes for the same certificates.
pub(super) fn encode(pem: &str) -> Vec<u8> {
    let certificates: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .filter_map(Result::ok)
        .collect();
    let entries = construct_der(|writer| {
        writer.write_sequence(|entries| {
            for (number, certificate) in (1..).zip(&certificates) {
                entry(entries.next(), number, certificate);
            }
        });
    });
    let safe = construct_der(|writer| writer.write_sequence(|parts| data(parts.next(), &entries)));
    construct_der(|writer| {
        writer.write_sequence(|file| {
            file.next().write_u8(VERSION);
            data(file.next(), &safe);
        });
    })
}

/// Writes bytes as PKCS#7 data.
fn data(writer: DERWriter<'_>, content: &[u8]) {
    writer.write_sequence(|parts| typed(parts, DATA, |value| value.write_bytes(content)));
}

/// Writes a certificate under an alias of its own: `servicebus-emulator`, `servicebus-emulator-2`.
fn entry(writer: DERWriter<'_>, number: u32, certificate: &[u8]) {
    let alias = match number {
        1 => ALIAS.to_owned(),
        _ => format!("{ALIAS}-{number}"),
    };
    writer.write_sequence(|bag| {
        typed(bag, CERTIFICATE_BAG, |value| {
            value.write_sequence(|parts| {
                typed(parts, X509_CERTIFICATE, |value| {
                    value.write_bytes(certificate)
                });
            });
        });
        bag.next().write_set_of(|attributes| {
            attribute(attributes.next(), FRIENDLY_NAME, |value| {
                value.write_bmp_string(&alias)
            });
            attribute(attributes.next(), TRUSTED_KEY_USAGE, |value| {
                value.write_oid(&identifier(ANY_EXTENDED_KEY_USAGE));
            });
        });
    });
}

/// Writes an identifier of a type, and a value of it under the explicit tag 0.
fn typed(parts: &mut DERWriterSeq<'_>, kind: &[u64], value: impl FnOnce(DERWriter<'_>)) {
    parts.next().write_oid(&identifier(kind));
    parts.next().write_tagged(Tag::context(0), value);
}

fn attribute(writer: DERWriter<'_>, kind: &[u64], value: impl FnOnce(DERWriter<'_>)) {
    writer.write_sequence(|parts| {
        parts.next().write_oid(&identifier(kind));
        parts.next().write_set_of(|values| value(values.next()));
    });
}

fn identifier(components: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(components)
}

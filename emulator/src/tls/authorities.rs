//! The authorities of one emulator: the user's, and one in memory that ends with the emulator and vouches for the names
//! that the user's may not.

use std::fs;
use std::path::{Path, PathBuf};

use super::authority::{Authority, Scope, is_local};
use super::directory;
use super::options::TlsError;
use super::options::TlsOptions;

/// Both of them.
pub(crate) struct Authorities {
    kept: Authority,
    of_run: Authority,
    /// The certificates of both in PEM, that of the kept one first.
    pem: String,
    /// None where the kept one is in memory alone.
    file: Option<CertificateFile>,
    /// What is in the file, for Java; none where it cannot be written either.
    trust_store: Option<PathBuf>,
}

/// A file with certificates to trust.
enum CertificateFile {
    /// That of the kept authority.
    Kept(PathBuf),
    /// Those of both; removed with this value.
    OfRun(PathBuf),
}

impl Authorities {
    /// Finds or makes the user's, and makes the other. Where a name that was asked for needs the other one, both are in a
    /// file of this run's own.
    pub(crate) fn new(options: &TlsOptions) -> Result<Self, TlsError> {
        let (kept, directory) = directory::authority(options.directory.as_deref())?;
        let of_run = Authority::make(Scope::Any).map_err(TlsError::Make)?;
        let pem = format!("{}{}", kept.pem(), of_run.pem());
        let needs_both = options.names.iter().any(|name| !is_local(name));
        let file = directory.map(|directory| match needs_both {
            true => CertificateFile::of_run(&directory, &pem),
            false => CertificateFile::Kept(directory::certificate(&directory)),
        });
        let trust_store = file.as_ref().and_then(|file| {
            let certificates = match file {
                CertificateFile::Kept(_) => kept.pem(),
                CertificateFile::OfRun(_) => &pem,
            };
            directory::trust_store(file.path(), certificates)
        });
        Ok(Self {
            kept,
            of_run,
            pem,
            file,
            trust_store,
        })
    }

    /// The one that vouches for servers that are reached by a name or an address.
    pub(crate) fn that_may(&self, name: &str) -> &Authority {
        match is_local(name) {
            true => &self.kept,
            false => &self.of_run,
        }
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(CertificateFile::path)
    }

    pub(super) fn trust_store(&self) -> Option<&Path> {
        self.trust_store.as_deref()
    }

    /// The file with the certificate of the authority that vouches for a name.
    pub(crate) fn file_for(&self, name: &str) -> Option<&Path> {
        match &self.file {
            Some(CertificateFile::Kept(file)) if is_local(name) => Some(file),
            Some(CertificateFile::OfRun(file)) => Some(file),
            Some(CertificateFile::Kept(_)) | None => None,
        }
    }
}

impl CertificateFile {
    fn of_run(directory: &Path, pem: &str) -> Self {
        match directory::write_for_run(directory, pem) {
            Ok(file) => Self::OfRun(file),
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
            Self::Kept(file) | Self::OfRun(file) => file,
        }
    }
}

impl Drop for CertificateFile {
    fn drop(&mut self) {
        if let Self::OfRun(file) = self {
            // What is left behind names an authority whose key is gone.
            let _ = fs::remove_file(directory::beside(file));
            let _ = fs::remove_file(file);
        }
    }
}

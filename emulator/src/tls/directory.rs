//! The directory of the user's authority, so that its certificate need be trusted only once.
//!
//! Everybody may read `ca.pem`, only its owner `ca-key.pem`. Processes that find neither, or an authority that may issue
//! certificates for any name, create them one after the other under a lock: the key is written before the certificate, and
//! both appear completely.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, process};

use super::authority::{Authority, Scope};
use super::{TlsError, authorities};

const CERTIFICATE: &str = "ca.pem";
/// The file extension of trust stores.
const TRUST_STORE: &str = "p12";
const KEY: &str = "ca-key.pem";
const LOCK: &str = "ca.lock";
/// The beginning of the names of files that end with a run.
const OF_RUN: &str = "ca-of-run-";
/// Below the data directory.
const BELOW_DATA: &str = "tls";
/// Below the user's cache directory.
const NAME: &str = "servicebus-emulator";

/// Returns the user's authority and its directory: the one of the options, else the user's cache directory. Without a cache
/// directory, or if it cannot be written, as in a container, it is in the data directory, if there is one, else in memory
/// only, and ends with the emulator.
pub(crate) fn authority(
    configured: Option<&Path>,
    data: Option<&Path>,
) -> Result<(Authority, Option<PathBuf>), TlsError> {
    let in_memory = || Ok((Authority::make(Scope::Local).map_err(TlsError::Make)?, None));
    let kept_in = |directory: &Path| Ok((find_or_create(directory)?, Some(directory.to_owned())));
    if let Some(directory) = configured {
        return kept_in(directory);
    }
    let below_data = data.map(|data| data.join(BELOW_DATA));
    let Some(directory) = cache_directory(|name| env::var_os(name).map(PathBuf::from)) else {
        if let Some(directory) = below_data {
            return kept_in(&directory);
        }
        tracing::warn!(
            "there is no home directory to keep a certificate authority in: this one ends with the \
             emulator; --tls-directory names a place"
        );
        return in_memory();
    };
    match find_or_create(&directory) {
        Err(error @ TlsError::Directory { .. }) => {
            if let Some(directory) = below_data {
                return kept_in(&directory);
            }
            let text =
                format!("{error}; this certificate authority is valid until the emulator stops");
            match has_parent(&directory) {
                true => tracing::warn!("{text}"),
                // As in a container, where the user has no home.
                false => tracing::info!("{text}"),
            }
            in_memory()
        }
        kept => Ok((kept?, Some(directory))),
    }
}

/// Returns whether a directory above this one exists, other than the root.
fn has_parent(directory: &Path) -> bool {
    let mut existing = directory.ancestors().filter(|above| above.exists());
    existing
        .next()
        .is_some_and(|above| above.parent().is_some())
}

/// Returns the file with the certificate of the authority in a directory.
pub(crate) fn certificate(directory: &Path) -> PathBuf {
    directory.join(CERTIFICATE)
}

/// Writes the certificates that clients of one run trust to a file with a unique name beside the certificate of the user's
/// authority, and removes those of runs that were killed. The returned file has the lock that shows that its run goes on.
pub(crate) fn write_for_run(directory: &Path, certificates: &str) -> io::Result<(PathBuf, File)> {
    remove_of_ended_runs(directory);
    let digest = ring::digest::digest(&ring::digest::SHA256, certificates.as_bytes());
    let unique: String = digest
        .as_ref()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let name = format!("{OF_RUN}{unique}.pem");
    let unfinished = write_unfinished(directory, &name, certificates, 0o644)?;
    // Shared, because on Windows others cannot read a file that is locked otherwise. Without locks, as on some network
    // drives, the file stays if its run is killed.
    let _ = unfinished.1.lock_shared();
    let file = directory.join(name);
    fs::rename(unfinished.0, &file)?;
    Ok((file, unfinished.1))
}

/// Removes the files of runs that have ended without removing them: those that no process has locked.
fn remove_of_ended_runs(directory: &Path) {
    let files = fs::read_dir(directory).into_iter().flatten().flatten();
    for file in files.map(|entry| entry.path()) {
        let name = file.file_name().and_then(OsStr::to_str);
        let is_of_run = name.is_some_and(|name| name.starts_with(OF_RUN) && name.ends_with(".pem"));
        if is_of_run && File::open(&file).is_ok_and(|opened| opened.try_lock().is_ok()) {
            let _ = fs::remove_file(beside(&file));
            let _ = fs::remove_file(&file);
        }
    }
}

/// Writes the trust store beside the file with its certificates, unless it exists; `None` if it cannot be written.
pub(super) fn trust_store(file: &Path, certificates: &str) -> Option<PathBuf> {
    let store = beside(file);
    match write_if_changed(&store, &authorities::encode(certificates)) {
        Ok(()) => Some(store),
        Err(error) => {
            let store = store.display();
            tracing::warn!("cannot write the trust store for Java, {store}: {error}");
            None
        }
    }
}

/// Returns the path of the trust store for a certificate file.
pub(super) fn beside(file: &Path) -> PathBuf {
    file.with_extension(TRUST_STORE)
}

fn find_or_create(directory: &Path) -> Result<Authority, TlsError> {
    let is_current = |found: &Authority| found.scope() == Scope::Local;
    // The reason may be another process that is just replacing both files.
    if let Some(found) = find(directory).ok().flatten().filter(is_current) {
        return Ok(warn_if_exposed(directory, found));
    }
    let unusable = |source| TlsError::Directory {
        directory: directory.to_owned(),
        source,
    };
    fs::create_dir_all(directory).map_err(unusable)?;
    let lock = File::create(directory.join(LOCK)).map_err(unusable)?;
    lock.lock().map_err(unusable)?;
    match find(directory)? {
        Some(found) if is_current(&found) => return Ok(warn_if_exposed(directory, found)),
        Some(_) => {
            tracing::warn!("{}", replaced(directory));
            fs::remove_file(certificate(directory)).map_err(unusable)?;
        }
        None => {}
    }
    let made = Authority::make(Scope::Local).map_err(TlsError::Make)?;
    write(directory, KEY, made.key_pem(), 0o600).map_err(unusable)?;
    write(directory, CERTIFICATE, made.pem(), 0o644).map_err(unusable)?;
    Ok(made)
}

/// Returns the warning about an authority of an older version that may issue certificates for any name.
fn replaced(directory: &Path) -> String {
    let file = certificate(directory);
    format!(
        "the certificate authority in {} could vouch for any name and is replaced by one that vouches for loopback \
         addresses, localhost and servicebus.windows.net alone: have clients trust that, and the old one no longer",
        file.display()
    )
}

/// Returns the authority; logs a warning if others than its owner may use its key.
fn warn_if_exposed(directory: &Path, found: Authority) -> Authority {
    if let Some(warning) = exposure_warning(&directory.join(KEY)) {
        tracing::warn!("{warning}");
    }
    found
}

/// Returns the existing authority.
fn find(directory: &Path) -> Result<Option<Authority>, TlsError> {
    let damaged = |reason| TlsError::Damaged {
        directory: directory.to_owned(),
        reason,
    };
    let read = |file: &Path| match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TlsError::Directory {
            directory: directory.to_owned(),
            source,
        }),
    };
    let Some(certificate) = read(&certificate(directory))? else {
        return Ok(None);
    };
    let key = read(&directory.join(KEY))?;
    let key = key.ok_or_else(|| damaged("the key is missing".to_owned()))?;
    Authority::restore(certificate, &key)
        .map(Some)
        .map_err(damaged)
}

/// Returns the warning about a key that others than its owner may use: with it they can impersonate any server to clients
/// that trust the authority.
#[cfg(unix)]
fn exposure_warning(key: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(key).ok()?.permissions().mode() & 0o777;
    let name = key.display();
    (mode & 0o077 != 0).then(|| {
        format!(
            "the key of the certificate authority, {name}, has mode {mode:04o}: others may have read it. Remove it and \
             {CERTIFICATE} beside it, so that both are made anew, or make it 0600 if no other has"
        )
    })
}

/// There a user's cache directory belongs to the user alone.
#[cfg(not(unix))]
fn exposure_warning(_: &Path) -> Option<String> {
    None
}

/// Writes a file unless it has these contents; one process and thread after the other.
fn write_if_changed(file: &Path, contents: &[u8]) -> io::Result<()> {
    let is_written = || fs::read(file).is_ok_and(|found| found == contents);
    let parts = (file.parent(), file.file_name().and_then(OsStr::to_str));
    let (Some(directory), Some(name)) = parts else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    if is_written() {
        return Ok(());
    }
    let lock = File::create(directory.join(LOCK))?;
    lock.lock()?;
    match is_written() {
        true => Ok(()),
        false => write(directory, name, contents, 0o644),
    }
}

/// Writes a file that is complete from the moment it has its name.
fn write(directory: &Path, name: &str, contents: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    let (unfinished, _) = write_unfinished(directory, name, contents, mode)?;
    fs::rename(&unfinished, directory.join(name))
}

/// Writes the contents of a file that is to get a name.
fn write_unfinished(
    directory: &Path,
    name: &str,
    contents: impl AsRef<[u8]>,
    mode: u32,
) -> io::Result<(PathBuf, File)> {
    let unfinished = directory.join(format!("{name}.{}", process::id()));
    // A file left behind by a process of the same number could be open to others.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create(&unfinished, mode)?;
    file.write_all(contents.as_ref())?;
    file.sync_all()?;
    Ok((unfinished, file))
}

#[cfg(unix)]
fn create(path: &Path, mode: u32) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = File::options();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// There a user's cache directory belongs to the user alone.
#[cfg(not(unix))]
fn create(path: &Path, _mode: u32) -> io::Result<File> {
    File::create_new(path)
}

/// Returns the user's cache directory according to the environment (XDG base directories; `LOCALAPPDATA` on Windows).
fn cache_directory(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| variable(name).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("LOCALAPPDATA"))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join(NAME))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use servicebus_test_support::temporary::TemporaryDirectory;

    use super::*;

    #[test]
    fn a_directory_below_the_root_alone_has_no_parent() {
        assert!(!has_parent(Path::new(
            "/no-such-home/.cache/servicebus-emulator"
        )));
        assert!(has_parent(&env::temp_dir().join("no-such-directory/below")));
    }

    #[test]
    fn concurrent_starts_share_one_ca_in_the_directory() {
        let temporary = TemporaryDirectory::unused();
        let place = temporary.0.join("below");
        let barrier = Barrier::new(8);
        let found: Vec<String> = thread::scope(|scope| {
            let one = || {
                barrier.wait();
                authority(Some(&place), None).map(|(authority, _)| authority.pem().to_owned())
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            let joined = all.into_iter().map(|one| one.join().unwrap());
            joined.map(Result::unwrap).collect()
        });
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        let written = fs::read_to_string(place.join(CERTIFICATE)).unwrap();
        assert_eq!(written, found[0]);
        let (_, directory) = authority(Some(&place), None).unwrap();
        assert_eq!(directory.as_ref(), Some(&place));
    }

    #[cfg(unix)]
    #[test]
    fn the_ca_key_file_is_readable_by_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let temporary = TemporaryDirectory::unused();
        let place = temporary.0.join("below");
        authority(Some(&place), None).unwrap();
        let mode = |name| fs::metadata(place.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(KEY), 0o600);
        let key = place.join(KEY);
        assert_eq!(exposure_warning(&key), None);
        for (mode, shown) in [(0o640, "0640"), (0o604, "0604"), (0o620, "0620")] {
            fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
            let warning = exposure_warning(&key).unwrap();
            assert!(
                warning.contains(shown) && warning.contains("0600"),
                "{warning}"
            );
            assert!(warning.contains(&key.display().to_string()), "{warning}");
        }
    }

    #[test]
    fn a_ca_with_a_missing_or_damaged_file_is_an_error_with_a_remedy() {
        let temporary = TemporaryDirectory::unused();
        let place = temporary.0.join("below");
        authority(Some(&place), None).unwrap();
        fs::remove_file(place.join(KEY)).unwrap();
        let error = authority(Some(&place), None).map(|_| ()).unwrap_err();
        assert!(matches!(error, TlsError::Damaged { .. }), "{error}");
        // A key without a certificate does not count: the certificate may have been lost before a client saw it.
        fs::write(place.join(KEY), "x").unwrap();
        fs::remove_file(place.join(CERTIFICATE)).unwrap();
        authority(Some(&place), None).unwrap();
    }

    #[test]
    fn an_unconstrained_ca_is_replaced_once() {
        let temporary = TemporaryDirectory::unused();
        let place = temporary.0.join("below");
        let old = Authority::make(Scope::Any).unwrap();
        fs::create_dir_all(&place).unwrap();
        write(&place, KEY, old.key_pem(), 0o600).unwrap();
        write(&place, CERTIFICATE, old.pem(), 0o644).unwrap();
        let found: Vec<String> = thread::scope(|scope| {
            let one =
                || authority(Some(&place), None).map(|(authority, _)| authority.pem().to_owned());
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            let joined = all.into_iter().map(|one| one.join().unwrap());
            joined.map(Result::unwrap).collect()
        });
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
        assert_ne!(found[0], old.pem());
        let (kept, _) = authority(Some(&place), None).unwrap();
        assert_eq!(
            (kept.pem(), kept.scope()),
            (found[0].as_str(), Scope::Local)
        );
        assert_ne!(kept.key_pem(), old.key_pem());
    }

    #[test]
    fn a_tls_directory_that_cannot_be_created_is_named() {
        let temporary = TemporaryDirectory::unused();
        let place = temporary.0.join("below");
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "a file").unwrap();
        let error = authority(Some(&place.join("below")), None)
            .map(|_| ())
            .unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&place.display().to_string()) && text.contains("--tls-directory"),
            "{text}"
        );
    }

    #[test]
    fn the_cache_directory_is_read_from_the_environment() {
        let with = |name: &'static str, value: &'static str| {
            cache_directory(move |variable| (variable == name).then(|| value.into()))
        };
        let expected = |path: &str| Some(PathBuf::from(path));
        assert_eq!(
            with("XDG_CACHE_HOME", "/x"),
            expected("/x/servicebus-emulator")
        );
        assert_eq!(
            with("HOME", "/h"),
            expected("/h/.cache/servicebus-emulator")
        );
        assert_eq!(with("XDG_CACHE_HOME", "relative"), None);
    }
}

use std::sync::Barrier;
use std::thread;

use super::*;

/// A directory of this test's own that does not exist yet.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("servicebus-emulator-{}-{name}", process::id());
        Self(env::temp_dir().join(name).join("below"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(above) = self.0.parent() {
            let _ = fs::remove_dir_all(above);
        }
    }
}

#[test]
fn the_first_makes_it_and_everybody_finds_it() {
    let place = Place::new("together");
    let barrier = Barrier::new(8);
    let found: Vec<String> = thread::scope(|scope| {
        let one = || {
            barrier.wait();
            authority(Some(&place.0)).map(|(authority, _)| authority.pem().to_owned())
        };
        let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        let joined = all.into_iter().map(|one| one.join().unwrap());
        joined.map(Result::unwrap).collect()
    });
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    let written = fs::read_to_string(place.0.join(CERTIFICATE)).unwrap();
    assert_eq!(written, found[0]);
    let (_, directory) = authority(Some(&place.0)).unwrap();
    assert_eq!(directory.as_ref(), Some(&place.0));
}

#[cfg(unix)]
#[test]
fn the_key_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("alone");
    authority(Some(&place.0)).unwrap();
    let mode = |name| {
        fs::metadata(place.0.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(KEY), 0o600);
    let key = place.0.join(KEY);
    assert_eq!(open_to_others(&key), None);
    for (mode, told) in [(0o640, "0640"), (0o604, "0604"), (0o620, "0620")] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let warning = open_to_others(&key).unwrap();
        assert!(
            warning.contains(told) && warning.contains("0600"),
            "{warning}"
        );
        assert!(warning.contains(&key.display().to_string()), "{warning}");
    }
}

#[test]
fn half_an_authority_is_an_error_that_says_what_to_do() {
    let place = Place::new("half");
    authority(Some(&place.0)).unwrap();
    fs::remove_file(place.0.join(KEY)).unwrap();
    let error = authority(Some(&place.0)).map(|_| ()).unwrap_err();
    assert!(matches!(error, TlsError::Damaged { .. }), "{error}");
    // A key alone is none: its certificate may have been lost before anybody saw it.
    fs::write(place.0.join(KEY), "x").unwrap();
    fs::remove_file(place.0.join(CERTIFICATE)).unwrap();
    authority(Some(&place.0)).unwrap();
}

#[test]
fn one_that_may_vouch_for_any_name_is_replaced_once() {
    let place = Place::new("unconstrained");
    let old = Authority::make(Scope::Any).unwrap();
    fs::create_dir_all(&place.0).unwrap();
    write(&place.0, KEY, old.key_pem(), 0o600).unwrap();
    write(&place.0, CERTIFICATE, old.pem(), 0o644).unwrap();
    let found: Vec<String> = thread::scope(|scope| {
        let one = || authority(Some(&place.0)).map(|(authority, _)| authority.pem().to_owned());
        let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
        let joined = all.into_iter().map(|one| one.join().unwrap());
        joined.map(Result::unwrap).collect()
    });
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]));
    assert_ne!(found[0], old.pem());
    let (kept, _) = authority(Some(&place.0)).unwrap();
    assert_eq!(
        (kept.pem(), kept.scope()),
        (found[0].as_str(), Scope::Local)
    );
    assert_ne!(kept.key_pem(), old.key_pem());
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = Place::new("file");
    fs::create_dir_all(place.0.parent().unwrap()).unwrap();
    fs::write(&place.0, "a file").unwrap();
    let error = authority(Some(&place.0.join("below")))
        .map(|_| ())
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&place.0.display().to_string()) && text.contains("--tls-directory"),
        "{text}"
    );
}

#[test]
fn the_cache_directory_is_where_the_environment_says() {
    let with = |name: &'static str, value: &'static str| {
        cache_directory(move |asked| (asked == name).then(|| value.into()))
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

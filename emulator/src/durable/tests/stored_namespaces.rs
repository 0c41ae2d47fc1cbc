//! Namespaces in a data directory: which entities a reset restores, what a kill leaves of their creation and removal, and whether
//! their clocks step automatically.

use std::time::Duration;

use super::*;

type StoredRows = BTreeMap<Vec<u8>, Bytes>;

/// The number of entities of the namespace of this number, and whether its declaration is stored.
fn stored_parts(rows: &StoredRows, number: u32) -> (usize, bool) {
    let prefix = load::prefix(number);
    let keys = || rows.keys().filter_map(|key| key.strip_prefix(&prefix[..]));
    let is_definition = |key: &&[u8]| key[0] == load::ENTITY && key[5..] == [load::DEFINITION];
    let count = keys().filter(is_definition).count();
    (count, keys().any(|key| key == [load::DECLARATION]))
}

impl Process {
    fn entities(&self) -> Vec<String> {
        let all = self.namespace.entities().into_iter();
        all.map(|entity| entity.path.to_string()).collect()
    }

    fn create(&self, name: &str) {
        let description = EntityDescription::default();
        let path = path(name);
        let made = (self.namespace).create(EntityKind::Queue, &path, description, Vec::new());
        made.expect("its name is free");
    }

    /// Creates the namespace `two` with the queues `x` and `y`.
    fn create_namespace(&self) -> Namespace {
        let queue = |name| (path(name), EntityDescription::default());
        let config = NamespaceConfig {
            queues: vec![queue("x"), queue("y")],
            ..NamespaceConfig::new("two")
        };
        let (_, real) = put_by_hand();
        let own = self.store.namespace("two");
        let own = (own, Contents::Declared { prunes: false });
        let made = Namespace::open_stored(config, real, Some(1), false, self.failures.clone(), own);
        made.expect("it is new")
    }

    /// Commits wherever the writer thread could, which does not commit until `Store::end_writing`; returns the rows after each
    /// of these commits.
    fn commit_everywhere(&self, stored: &Arc<Mutex<Stored>>) -> Arc<Mutex<Vec<StoredRows>>> {
        let seen = Arc::<Mutex<Vec<_>>>::default();
        let (stored, all) = (Arc::clone(stored), Arc::clone(&seen));
        while std::mem::replace(&mut self.store.pending.lock().is_writing, true) {
            std::thread::yield_now();
        }
        *self.store.between.lock() = Some(Box::new(move |store| {
            let mut disk = store.disk.lock();
            let (batch, _) = store.take_batch();
            let written = disk.as_deref_mut().map(|disk| disk.write(batch));
            assert_eq!(written, Some(Ok(())));
            all.lock().push(stored.lock().rows.clone());
        }));
        seen
    }
}

#[tokio::test]
async fn a_reset_restores_the_declared_entities_of_an_undeclared_namespace() {
    let stored = Arc::default();
    let process = Process::start(&stored);
    process.create("made");
    process.namespace.delete(&path("a"));
    process.flush().await;
    drop(process);
    for _ in 0..2 {
        let process = Process::start_undeclared(&stored);
        assert_eq!(process.entities(), ["b", "made"], "clients deleted a");
        process.flush().await;
    }
    let process = Process::start_undeclared(&stored);
    process.namespace.reset();
    assert_eq!(process.entities(), ["a", "b"]);
    let target = process.at("a", |entity, _| entity.description().forward_to.clone());
    assert_eq!(target, Some(path("b")));
}

#[tokio::test]
async fn a_reset_keeps_the_entities_of_a_directory_without_declared_ones() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    process.create("made");
    process.send("made");
    process.flush().await;
    drop(process);
    (stored.lock().rows).retain(|key, _| key.get(5) != Some(&load::WHOLE_DECLARATION));
    let process = Process::start_undeclared(&stored);
    process.namespace.reset();
    assert_eq!(process.entities(), ["a", "b", "made"]);
    assert_eq!(process.active("made"), 0);
}

#[tokio::test]
async fn a_kill_leaves_a_removed_namespace_whole_or_not_at_all() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    process.send("a");
    process.flush().await;
    let seen = process.commit_everywhere(&stored);
    process.namespace.end();
    process.store.end_writing();
    process.flush().await;
    for rows in &*seen.lock() {
        let parts = stored_parts(rows, 1);
        assert!([(2, true), (0, false)].contains(&parts), "{parts:?}");
    }
    assert_eq!(stored.lock().rows.len(), 0);
    assert_eq!(stored.lock().bodies.len(), 0);
}

#[tokio::test]
async fn a_namespace_whose_creation_was_interrupted_is_removed_at_the_next_start() {
    let stored = Arc::<Mutex<Stored>>::default();
    let process = Process::start(&stored);
    process.flush().await;
    let seen = process.commit_everywhere(&stored);
    drop(process.create_namespace());
    process.store.end_writing();
    drop(process);
    let mut interrupted = None;
    for rows in &*seen.lock() {
        match stored_parts(rows, 2) {
            (1, false) => interrupted = Some(rows.clone()),
            parts => assert!(
                [(0, false), (2, false), (2, true)].contains(&parts),
                "{parts:?}"
            ),
        }
    }
    stored.lock().rows = interrupted.expect("a kill can come between two entities");
    let process = Process::start(&stored);
    let again = process.create_namespace();
    assert_eq!(again.entities().len(), 2);
    process.flush().await;
    assert_eq!(stored_parts(&stored.lock().rows, 2), (0, false));
    assert_eq!(stored_parts(&stored.lock().rows, 3), (2, true));
}

#[tokio::test]
async fn an_automatic_clock_is_automatic_after_a_restart_until_it_is_frozen() {
    let stored = Arc::default();
    let state = |process: &Process| {
        let namespace = &process.namespace;
        (namespace.clock.read().frozen, namespace.auto.is_on())
    };
    let process = Process::start(&stored);
    process.namespace.automate_clock().await;
    process.flush().await;
    drop(process);
    let process = Process::start(&stored);
    assert_eq!(state(&process), (true, true));
    process.namespace.freeze().await;
    process.flush().await;
    drop(process);
    assert_eq!(state(&Process::start(&stored)), (true, false));
}

#[tokio::test]
async fn messages_that_are_due_at_a_start_expire_by_the_stored_settings() {
    // More than one operation expires.
    const MANY: usize = 10_000;
    let stored = Arc::default();
    let start = |dead_letters: bool, ahead: i64| {
        let queue = EntityDescription {
            default_message_time_to_live: Some(Duration::from_secs(3600)),
            dead_lettering_on_message_expiration: dead_letters,
            ..EntityDescription::default()
        };
        let config = NamespaceConfig {
            queues: vec![(path("q"), queue)],
            ..NamespaceConfig::new("one")
        };
        Process::open_at(&stored, config, Contents::Declared { prunes: false }, ahead)
    };
    let process = start(true, 0);
    for _ in 0..MANY {
        process.send("q");
    }
    process.flush().await;
    drop(process);
    let process = start(false, 7_200_000);
    let dead = process.at("q", |entity, _| entity.counts(SubQueue::DeadLetter).active);
    assert_eq!(dead, MANY);
}

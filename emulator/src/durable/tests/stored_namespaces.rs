//! Namespaces in a data directory: which entities a reset restores.

use super::*;

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

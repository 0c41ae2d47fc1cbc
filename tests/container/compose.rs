//! The compose file of the examples: what was sent is there after `down` and `up`.

use std::path::Path;
use std::process::Command;

use crate::docker::{eventually, image};

/// The example under a project of its own, which goes with everything when this is dropped.
struct Project(String);

impl Project {
    fn try_compose(&self, arguments: &[&str]) -> bool {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/compose/compose.yml");
        let mut command = Command::new("docker-compose");
        command
            .args(["--project-name", &self.0, "--file"])
            .arg(file);
        command.env("SERVICEBUS_EMULATOR_IMAGE", image());
        let status = command.args(arguments).status();
        status.is_ok_and(|status| status.success())
    }

    fn compose(&self, arguments: &[&str]) {
        assert!(self.try_compose(arguments), "docker-compose {arguments:?}");
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        self.try_compose(&["down", "--volumes"]);
    }
}

/// What the control API answers; empty where it does not.
fn control(arguments: &[&str]) -> String {
    let namespace = "http://127.0.0.1:5300/$emulator/v1/namespaces/sbemulatorns/";
    let (path, options) = arguments.split_first().expect("a path");
    let mut command = Command::new("curl");
    command.args(["--silent", "--fail"]).args(options);
    let output = command.arg(format!("{namespace}{path}")).output();
    let output = output.unwrap_or_else(|error| panic!("`curl` cannot be run: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn messages_survive_compose_down_and_up() {
    let project = Project(format!("kept-{}", std::process::id()));
    project.compose(&["up", "--detach"]);
    let is_served = || control(&["counts?entity=queue.1"]).contains("\"active\":");
    eventually("the emulator serves", is_served);
    let message = r#"[{"properties":{"message_id":"kept"},"body":{"text":"x"}}]"#;
    let sent = control(&["messages?entity=queue.1", "--data", message]);
    assert!(sent.contains("sequence_numbers"), "{sent}");

    project.compose(&["down"]);
    project.compose(&["up", "--detach"]);
    eventually("the emulator serves again", is_served);
    let held = control(&["messages?entity=queue.1"]);
    assert!(held.contains(r#""message_id":"kept""#), "{held}");

    project.compose(&["down", "--volumes"]);
    project.compose(&["up", "--detach"]);
    eventually("an empty one serves", is_served);
    assert!(control(&["counts?entity=queue.1"]).contains("\"active\":0"));
}

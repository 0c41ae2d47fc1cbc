//! A container that cannot be had is an error that says what is missing and how to get it.

use servicebus_harness::prelude::*;

use crate::docker::{docker, image};
use servicebus_test_support::built;

/// What starting a bus says in a process with this variable.
fn refusal(variable: &str, value: &str) -> String {
    let mut process = built::rerun();
    process.env("NEXTEST_RUN_ID", format!("refused-{}", std::process::id()));
    let output = process.env(variable, value).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[expect(clippy::print_stdout, reason = "the tests below read it")]
async fn start() {
    match ServiceBus::builder()
        .mode(Mode::Container)
        .start()
        .result()
        .await
    {
        Ok(servicebus) => println!("started in mode {}", servicebus.mode()),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_missing_engine_is_reported() {
    if built::is_child() {
        return built::run_child(start());
    }
    // The port of TCPMUX, where no program listens.
    let refused = refusal("DOCKER_HOST", "tcp://127.0.0.1:1");
    for words in [
        "no container engine answers at tcp://127.0.0.1:1: ",
        "install and start Docker, or name another engine in DOCKER_HOST",
    ] {
        assert!(refused.contains(words), "{words:?} is not in {refused}");
    }
    let refused = refusal("DOCKER_HOST", "unix:///nowhere.sock");
    let words = "no container engine answers at unix:///nowhere.sock: ";
    assert!(refused.contains(words), "{refused}");
}

#[test]
fn a_missing_image_is_reported() {
    if built::is_child() {
        return built::run_child(start());
    }
    let missing = "127.0.0.1:1/nobody/emulator:1";
    let refused = refusal("SERVICEBUS_EMULATOR_IMAGE", missing);
    let words = "the image 127.0.0.1:1/nobody/emulator:1, named by SERVICEBUS_EMULATOR_IMAGE, does not exist locally and cannot be pulled: ";
    assert!(refused.contains(words), "{refused}");
}

#[test]
fn an_image_of_another_version_is_reported() {
    if built::is_child() {
        return built::run_child(start());
    }
    let relabelled = RelabelledImage::new("9.9.9");
    let refused = refusal("SERVICEBUS_EMULATOR_IMAGE", &relabelled.0);
    for words in [
        &format!(
            "the image {} is version 9.9.9, this harness needs ",
            relabelled.0
        ),
        "run `emulator/image/build`",
    ] {
        assert!(refused.contains(words), "{words:?} is not in {refused}");
    }
}

/// The image under test, with another version on its label; removed when it has served.
struct RelabelledImage(String);

impl RelabelledImage {
    fn new(version: &str) -> Self {
        let name = format!("servicebus-emulator-test:{}", std::process::id());
        let container = docker(&["create", &image()]);
        let label = format!("LABEL org.opencontainers.image.version={version}");
        docker(&["commit", "--change", &label, &container, &name]);
        docker(&["rm", &container]);
        Self(name)
    }
}

impl Drop for RelabelledImage {
    fn drop(&mut self) {
        docker(&["rmi", &self.0]);
    }
}

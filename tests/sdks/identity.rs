//! `DefaultAzureCredential` of `azure-identity`, unchanged: its managed identity is the emulator, where the environment says
//! so that the harness gives a child process.

use std::fs;
use std::path::{Path, PathBuf};

use servicebus_harness::ClientSettings;
use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::driver::run_to_the_end;
use crate::environment::{self, Language};
use crate::java;

#[tokio::test]
async fn python() {
    let Some(environment) = environment::ready(Language::Python).await else {
        return;
    };
    let mut command = Command::new(environment::python(&environment));
    command.arg(program("identity.py"));
    receives(command, "Python").await;
}

#[tokio::test]
async fn javascript() {
    let Some(mut command) = environment::node(Language::JavaScript).await else {
        return;
    };
    command.arg(program("identity.js"));
    receives(command, "JavaScript").await;
}

#[tokio::test]
async fn go() {
    if environment::ready(Language::Go).await.is_none() {
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("identity-go");
    fs::create_dir_all(&directory).unwrap();
    for file in ["main.go", "go.mod", "go.sum"] {
        fs::copy(program("go").join(file), directory.join(file)).unwrap();
    }
    receives(environment::go_run(&directory), "Go").await;
}

#[tokio::test]
async fn java() {
    let Some(environment) = environment::ready(Language::Java).await else {
        return;
    };
    // The JDK compiles a program of one file when it is run.
    let source = program("Identity.java").display().to_string();
    receives(java::program(&environment, &source).into(), "Java").await;
}

/// Runs a program that sends a message and completes it, by tokens alone.
async fn receives(mut command: Command, language: &str) {
    let servicebus = ServiceBus::builder().tls(true).start().await;
    let settings = servicebus.client_settings().expect("it was started here");
    if let Some(store) = &settings.trust_store {
        let options = ClientSettings::java_options(&store.display().to_string());
        command.env("JDK_JAVA_OPTIONS", options.join(" "));
    }
    command.envs(servicebus.env());
    run_to_the_end(command, &format!("DefaultAzureCredential of {language}")).await;
    assert_completed!(servicebus.queue("queue.1"), count = 1).await;
}

fn program(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
    tests.join("identity").join(name)
}

//! Management clients of Azure Resource Manager, to which only the address of the emulator and its authority are said.

use std::path::{Path, PathBuf};

use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::driver::run_to_the_end;
use crate::environment::{self, Language};

#[tokio::test]
async fn python() {
    manages_with_python(Language::Python).await;
}

/// With `azure-mgmt-servicebus` 8.
#[cfg(feature = "matrices")]
#[tokio::test]
async fn python_before() {
    manages_with_python(Language::Python714).await;
}

#[tokio::test]
async fn javascript() {
    let Some(environment) = environment::ready(Language::JavaScript).await else {
        return;
    };
    let servicebus = ServiceBus::builder().tls(true).start().await;
    let mut command = Command::new("node");
    command
        .env("NODE_PATH", environment.join("node_modules"))
        .envs(servicebus.env())
        .arg(program("resources.js"))
        .arg(endpoint(&servicebus));
    run_to_the_end(command, "@azure/arm-servicebus").await;
}

/// `az` itself, in a configuration of its own.
#[cfg(feature = "matrices")]
#[tokio::test]
async fn az() {
    let Some(environment) = environment::ready(Language::Az).await else {
        return;
    };
    let servicebus = ServiceBus::builder().tls(true).start().await;
    let queue = servicebus.queue("queue.1");
    queue.send("one").await;
    queue.send("two").await;
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("az");
    let _ = std::fs::remove_dir_all(&directory);
    let mut command = Command::new(environment::python(&environment));
    command
        .envs(servicebus.env())
        .env("AZURE_CONFIG_DIR", directory)
        .env("AZURE_CORE_COLLECT_TELEMETRY", "no")
        .arg(program("az.py"))
        .arg(endpoint(&servicebus));
    run_to_the_end(command, "az").await;
    assert_message_count!(queue, active = 2).await;
}

async fn manages_with_python(language: Language) {
    let Some(environment) = environment::ready(language).await else {
        return;
    };
    let servicebus = ServiceBus::start().await;
    let authority = servicebus.ca_certificate_file().expect("it is kept");
    let mut command = Command::new(environment::python(&environment));
    command
        .arg(program("resources.py"))
        .arg(endpoint(&servicebus))
        .arg(authority)
        .arg(servicebus.connection_string());
    run_to_the_end(command, "azure-mgmt-servicebus").await;
}

/// Every port takes TLS.
fn endpoint(servicebus: &ServiceBus) -> String {
    format!("https://{}", servicebus.endpoints().http)
}

fn program(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdks");
    tests.join("resources").join(name)
}

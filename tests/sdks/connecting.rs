//! The snippets of harness/CONNECTING.md do what the page says, as they stand there: the client connects, its receiver has
//! the name that it was given, and what is refused is tried once.

use std::fs;
use std::path::{Path, PathBuf};

use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::driver::run_to_the_end;
use crate::environment::{self, Language};
use crate::java;

const AUTHORITY: &str = "/home/me/.cache/servicebus-emulator/ca.pem";

const PYTHON: &str = r#"
import os
from azure.servicebus.exceptions import ServiceBusError

connection_string = os.environ["SERVICEBUS_CONNECTION_STRING"]
{snippet}
try:
    receiver.peek_messages()
    raise SystemExit("the peek was answered")
except ServiceBusError:
    pass
for message in receiver.receive_messages(max_wait_time=60):
    receiver.complete_message(message)
client.close()
"#;

const PYTHON_ADMINISTRATION: &str = r#"
import os

admin_connection_string = os.environ["SERVICEBUS_ADMIN_CONNECTION_STRING"]
{snippet}
assert [queue.name for queue in queues] == ["queue.1"], queues
"#;

const JAVASCRIPT: &str = r#"
const connectionString = process.env.SERVICEBUS_CONNECTION_STRING;
{snippet}
async function main() {
  let refused = false;
  await receiver.peekMessages(1).catch(() => (refused = true));
  if (!refused) throw new Error("the peek was answered");
  for (const message of await receiver.receiveMessages(1)) await receiver.completeMessage(message);
  await client.close();
}
main().catch((error) => {
  console.error(error);
  process.exit(1);
});
"#;

const GO: &str = r#"
package main

import (
	"context"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	connectionString := os.Getenv("SERVICEBUS_CONNECTION_STRING")
{snippet}
	check(err)
	receiver, err := client.NewReceiverForQueue("queue.1", nil)
	check(err)
	if _, err := receiver.PeekMessages(context.Background(), 1, nil); err == nil {
		panic("the peek was answered")
	}
	messages, err := receiver.ReceiveMessages(context.Background(), 1, nil)
	check(err)
	for _, message := range messages {
		check(receiver.CompleteMessage(context.Background(), message, nil))
	}
	check(client.Close(context.Background()))
}
"#;

const JAVA: &str = r#"
import com.azure.core.amqp.AmqpClientOptions;
import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import java.net.URL;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import reactor.core.publisher.Mono;

class Snippet {
    public static void main(String[] arguments) {
        String connectionString = System.getenv("SERVICEBUS_CONNECTION_STRING");
{snippet}
        try {
            receiver.peekMessage();
            throw new IllegalStateException("the peek was answered");
        } catch (ServiceBusException refused) {
            // As it should be.
        }
        receiver.receiveMessages(1, Duration.ofSeconds(60)).forEach(receiver::complete);
        receiver.close();
        administrate(System.getenv("SERVICEBUS_ADMIN_CONNECTION_STRING"));
        System.exit(0);
    }

    /** Where its administration client goes, which the page says. */
    private static void administrate(String connectionString) {
        var requested = new AtomicReference<URL>();
        var client = new ServiceBusAdministrationClientBuilder()
                .connectionString(connectionString)
                .addPolicy((context, next) -> {
                    requested.set(context.getHttpRequest().getUrl());
                    return Mono.error(new IllegalStateException("it goes nowhere"));
                })
                .buildClient();
        try {
            client.getQueue("queue.1");
        } catch (IllegalStateException nowhere) {
            // As it should be.
        }
        if (!requested.get().getProtocol().equals("https") || requested.get().getPort() != -1) {
            throw new IllegalStateException(requested.get() + " is not at 443");
        }
    }
}
"#;

#[tokio::test]
async fn python() {
    let Some(environment) = environment::ready(Language::Python).await else {
        return;
    };
    let mut command = Command::new(environment::python(&environment));
    command.arg("-c").arg(filled(PYTHON, "python", 0));
    connects(command, "Python", Some("worker-1")).await;
}

#[tokio::test]
async fn python_administration() {
    administrates(Language::Python).await;
}

#[cfg(feature = "matrices")]
#[tokio::test]
async fn python_administration_before_7_15() {
    administrates(Language::Python714).await;
}

async fn administrates(language: Language) {
    let Some(environment) = environment::ready(language).await else {
        return;
    };
    let servicebus = ServiceBus::builder().tls(true).start().await;
    let authority = servicebus.ca_certificate_file().expect("it is kept");
    let program = filled(PYTHON_ADMINISTRATION, "python", 1);
    assert!(program.contains(AUTHORITY), "{program}");
    let mut command = Command::new(environment::python(&environment));
    let program = program.replace(AUTHORITY, &authority.display().to_string());
    command.arg("-c").arg(program).env(
        "SERVICEBUS_ADMIN_CONNECTION_STRING",
        servicebus.admin_connection_string(),
    );
    run_to_the_end(command, "Python's administration").await;
}

#[tokio::test]
async fn javascript() {
    let Some(mut command) = environment::node(Language::JavaScript).await else {
        return;
    };
    command
        .arg("--eval")
        .arg(filled(JAVASCRIPT, "javascript", 0));
    connects(command, "JavaScript", Some("worker-1")).await;
}

#[tokio::test]
async fn go() {
    let Some(_environment) = environment::ready(Language::Go).await else {
        return;
    };
    let directory = directory("go");
    for file in ["go.mod", "go.sum"] {
        let from = environment::scripts(Language::Go).join(file);
        fs::copy(from, directory.join(file)).unwrap();
    }
    fs::write(directory.join("main.go"), filled(GO, "go", 0)).unwrap();
    connects(environment::go_run(&directory), "Go", None).await;
}

#[tokio::test]
async fn java() {
    let Some(environment) = environment::ready(Language::Java).await else {
        return;
    };
    let source = directory("java").join("Snippet.java");
    fs::write(&source, filled(JAVA, "java", 0)).unwrap();
    // The JDK compiles a program of one file when it is run.
    let program = java::program(&environment, &source.display().to_string());
    connects(Command::from(program), "Java", Some("worker-1")).await;
}

/// Runs a program that peeks, which is refused, and then receives and completes a message.
async fn connects(mut command: Command, language: &str, name: Option<&str>) {
    let servicebus = ServiceBus::start().await;
    let queue = servicebus.queue("queue.1");
    queue.send("an order").await;
    let faults = servicebus.faults();
    let refusal = faults.on(Operation::Management).every(1).answer(503).await;
    command.envs(servicebus.env());
    run_to_the_end(command, &format!("the snippet for {language}")).await;
    assert_eq!(refusal.hits().await, 1, "{language} tried again");
    assert_completed!(queue, count = 1).await;
    if let Some(name) = name {
        assert_delivered!(queue, to = name, times = 1).await;
    }
}

/// A program around the snippet of a language, the first one or a later one.
fn filled(program: &str, language: &str, index: usize) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/CONNECTING.md");
    let page = fs::read_to_string(page).unwrap();
    let begins = format!("```{language}\n");
    let snippet = page.split(&begins).nth(index + 1).expect("the page has it");
    let (snippet, _) = snippet.split_once("```").unwrap();
    program.trim_start().replace("{snippet}", snippet)
}

fn directory(language: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("connecting-{language}"));
    fs::create_dir_all(&directory).unwrap();
    directory
}

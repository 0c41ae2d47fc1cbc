//! The image as somebody uses it who has nothing but Docker.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use servicebus_harness::azservicebus::{ServiceBusClient, ServiceBusClientOptions};

use crate::docker::{docker, eventually, image, try_docker};

/// What the official emulator is told, none of which this one needs.
const OFFICIAL: [&str; 4] = [
    "ACCEPT_EULA=Y",
    "SQL_SERVER=mssql",
    "MSSQL_SA_PASSWORD=Password.1",
    "SQL_WAIT_INTERVAL=0",
];
const CONFIG: &str = "/ServiceBus_Emulator/ConfigFiles/Config.json";
/// Most bytes that the image may have.
const MAX_SIZE: u64 = 10_000_000;
/// Long enough for an answer on any machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A container that is removed when it is dropped.
struct Container(String);

impl Container {
    /// Runs the image with these arguments of `docker run`.
    fn run(arguments: &[&str]) -> Self {
        let run = ["run", "--detach", "--publish-all"];
        Self(docker(&[&run, arguments, &[&image()]].concat()))
    }

    /// Its address on this host for one of its ports.
    fn address(&self, port: u16) -> String {
        let port = port.to_string();
        let addresses = docker(&["port", &self.0, &port]);
        let mut ports = addresses.lines().filter_map(|line| line.rsplit_once(':'));
        let (_, port) = ports.next().expect("the port is published");
        format!("127.0.0.1:{port}")
    }

    /// Asks for a path and returns the answer, head and body.
    fn get(&self, port: u16, path: &str) -> String {
        self.try_get(port, path).expect("HTTP is served")
    }

    fn try_get(&self, port: u16, path: &str) -> std::io::Result<String> {
        ask(&self.address(port), path, "")
    }

    /// The port of HTTP that it chose on the network of this machine, as it says once it serves.
    fn http_port(&self) -> u16 {
        let ready = || {
            let printed = docker(&["logs", &self.0]);
            serde_json::from_str::<serde_json::Value>(printed.lines().next()?).ok()
        };
        eventually("the container says where it serves", || ready().is_some());
        let address = ready().expect("it was printed")["http"].to_string();
        let port = address.trim_matches('"').rsplit_once(':');
        let (_, port) = port.expect("an address has a port");
        port.parse().expect("a port is a number")
    }

    /// Waits until it serves.
    fn ready(self) -> Self {
        eventually("the container is healthy", || {
            let answer = self.try_get(5300, "/health");
            answer.is_ok_and(|answer| answer.contains(r#""status":"healthy""#))
        });
        self
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // One that has ended by itself may be gone already.
        let _ = try_docker(&["rm", "--force", &self.0]);
    }
}

/// Asks an address for a path, with more headers.
fn ask(address: &str, path: &str, headers: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn inspect(format: &str) -> String {
    docker(&["image", "inspect", "--format", format, &image()])
}

#[test]
fn the_image_is_small_and_reports_its_version() {
    let size: u64 = inspect("{{.Size}}").parse().expect("a size is a number");
    assert!(
        size <= MAX_SIZE,
        "the image has {size} bytes, {MAX_SIZE} are allowed"
    );
    assert_eq!(
        inspect("{{json .Config.ExposedPorts}}"),
        r#"{"5300/tcp":{},"5671/tcp":{},"5672/tcp":{}}"#
    );
    assert_eq!(inspect("{{.Config.User}}"), "65532:65532");
}

#[test]
fn the_image_has_oci_labels() {
    let label = |name: &str| {
        inspect(&format!(
            "{{{{index .Config.Labels \"org.opencontainers.image.{name}\"}}}}"
        ))
    };
    assert_eq!(label("title"), "servicebus-emulator");
    let description = "An emulator of Azure Service Bus for tests";
    assert_eq!(label("description"), description);
    assert_eq!(label("version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(label("licenses"), "MIT OR Apache-2.0");
    let revision = label("revision");
    let is_commit = revision.len() == 40 && revision.chars().all(|digit| digit.is_ascii_hexdigit());
    assert!(is_commit, "{revision:?} is not a commit");
}

#[test]
fn the_health_check_succeeds() {
    let container = Container::run(&["--env", "EMULATOR_HTTP_PORT=5301"]);
    eventually("the engine says that it is healthy", || {
        docker(&[
            "inspect",
            "--format",
            "{{.State.Health.Status}}",
            &container.0,
        ]) == "healthy"
    });
}

#[test]
fn a_command_of_the_official_emulator_works_unchanged() {
    let file = std::env::current_dir().expect("there is a directory");
    let mount = format!("{}/fixtures/config/orders.json:{CONFIG}:ro", file.display());
    let mut arguments = vec!["--volume", &mount];
    arguments.extend(OFFICIAL.iter().flat_map(|variable| ["--env", *variable]));
    let container = Container::run(&arguments).ready();
    let queue = "/$emulator/v1/namespaces/sbemulatorns/queues/orders";
    let answer = container.get(5300, queue);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn the_official_variable_sets_the_http_port() {
    let arguments = ["--env", "EMULATOR_HTTP_PORT=8080", "--expose", "8080"];
    let container = Container::run(&arguments);
    eventually("the other port is served", || {
        let answer = container.try_get(8080, "/health");
        answer.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
    });
}

#[test]
fn the_image_without_a_file_serves_the_official_default() {
    let container = Container::run(&[]).ready();
    let topics = container.get(5300, "/$emulator/v1/namespaces/sbemulatorns/topics");
    assert!(topics.contains(r#""name":"topic.1""#), "{topics}");
    for number in 1..=4 {
        assert!(
            topics.contains(&format!(r#""subscription.{number}""#)),
            "{topics}"
        );
    }
    let queues = container.get(5300, "/$emulator/v1/namespaces/sbemulatorns/queues");
    assert!(queues.contains(r#""name":"queue.1""#), "{queues}");
}

#[test]
fn an_invalid_file_ends_the_container_with_the_reasons() {
    let output = try_docker(&[
        "run",
        "--rm",
        "--env",
        "SERVICEBUS_EMULATOR_CONFIG=/nowhere.json",
        &image(),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.starts_with("/nowhere.json"), "{stderr}");
}

#[test]
fn the_image_needs_no_privileges_and_writes_no_file() {
    let hardened = [
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
    ];
    let container = Container::run(&hardened).ready();
    let answer = container.get(5300, "/health");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// A client is beyond loopback and no gateway if it comes by the address that the engine's bridge has on this machine.
#[test]
fn remote_clients_need_the_control_token() {
    // The network itself tells its gateway only once the engine has been started again.
    let beside = Container::run(&[]).ready();
    let gateway = "{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}";
    let bridge = docker(&["inspect", "--format", gateway, &beside.0]);
    for (token, refusal) in [
        (None, "HTTP/1.1 403"),
        (
            Some("SERVICEBUS_EMULATOR_CONTROL_TOKEN=secret"),
            "HTTP/1.1 401",
        ),
    ] {
        let mut arguments = vec!["run", "--detach", "--network", "host"];
        arguments.extend(["--env", "SERVICEBUS_EMULATOR_AMQP_PORT=0"]);
        arguments.extend(["--env", "EMULATOR_HTTP_PORT=0"]);
        arguments.extend(token.into_iter().flat_map(|token| ["--env", token]));
        let image = image();
        arguments.push(&image);
        let container = Container(docker(&arguments));
        let port = container.http_port();
        let ask = |path: &str, header: &str| ask(&format!("{bridge}:{port}"), path, header);
        let health = ask("/health", "").expect("HTTP is served");
        assert!(health.starts_with("HTTP/1.1 200"), "{health}");
        let clock = |header| ask("/$emulator/v1/clock", header).expect("HTTP is served");
        assert!(clock("").starts_with(refusal), "{}", clock(""));
        let shown = clock("Authorization: Bearer secret\r\n");
        let expected = if token.is_some() {
            "HTTP/1.1 200"
        } else {
            refusal
        };
        assert!(shown.starts_with(expected), "{shown}");
        let local = self::ask(&format!("127.0.0.1:{port}"), "/$emulator/v1/clock", "");
        assert!(local.is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")));
    }
}

#[tokio::test]
async fn an_sdk_uses_the_container_on_the_network_of_the_engine() {
    let container = Container::run(&[]).ready();
    let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
    let address = docker(&["inspect", "--format", format, &container.0]);
    let connection_string = format!(
        "Endpoint=sb://{address};SharedAccessKeyName=RootManageSharedAccessKey;\
         SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;"
    );
    let client = ServiceBusClient::unsecured().new_from_connection_string(
        connection_string.as_str(),
        ServiceBusClientOptions::default(),
    );
    let mut client = client.await.expect("the client connects");
    let sender = client.create_sender("queue.1", Default::default()).await;
    let mut sender = sender.expect("the queue is there");
    sender.send_message("hello").await.expect("it is accepted");
    let receiver = client.create_receiver_for_queue("queue.1", Default::default());
    let mut receiver = receiver.await.expect("the queue can be received from");
    let message = receiver
        .receive_message()
        .await
        .expect("there is a message");
    assert_eq!(message.body().expect("it has a body"), b"hello");
    receiver
        .complete_message(&message)
        .await
        .expect("it is locked");
    sender.dispose().await.expect("it closes");
    receiver.dispose().await.expect("it closes");
    client.dispose().await.expect("it closes");
}

#[test]
fn the_container_stops_on_sigterm() {
    let container = Container::run(&[]).ready();
    docker(&["stop", "-t", "60", &container.0]);
    let code = docker(&["inspect", "--format", "{{.State.ExitCode}}", &container.0]);
    assert_eq!(code, "0", "it had to be killed");
}

//! The container that a test run shares: how it is found or started, and how long it lives.
//!
//! The container's name identifies the run: all processes of a run of nextest, or this process. The engine accepts a name
//! only once, so one of several processes starts the container and the others find it. While a container is starting or
//! being removed, the harness retries until the deadline. Each process holds a connection as its lease. The emulator counts
//! these, and exits and is removed after a time without any. The system closes the connections of a process however it ends,
//! so a killed process leaves no container behind.

use std::{
    env, io, process,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use servicebus_config::{AMQP_PORT, AMQPS_PORT, ControlToken, HTTP_PORT};
use testcontainers::TestcontainersError;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use super::{
    engine::{Container, Image, Volume, is_temporary, reason},
    network::Network,
};
use crate::{
    address::random_number,
    background::{Background, Task},
    error::Error,
    liveness::Output,
    text,
};

/// How long a container stays without a connection, in seconds: longer than the pause between two tests.
const IDLE_SECONDS: u16 = 20;
/// The pause before a container that is starting or being removed is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// The variable in which nextest gives every process the id of the run.
const RUN_VARIABLE: &str = "NEXTEST_RUN_ID";

static SHARED: Mutex<Weak<LeasedContainer>> = Mutex::const_new(Weak::new());

#[derive(Debug)]
pub(crate) struct LeasedContainer {
    /// `None` if the run's id is not a valid token.
    pub(crate) token: Option<ControlToken>,
    pub(crate) network: Network,
    pub(crate) ports: Arc<SharedPortMapping>,
    pub(crate) output: Output,
    pub(crate) _lease: Lease,
    pub(crate) _reading: Task<()>,
    pub(crate) container: Container,
}

impl LeasedContainer {
    /// Returns the container of the run, and starts it if necessary. Must run on the background runtime.
    pub(crate) async fn of_test_run(
        background: &Background,
        within: Duration,
    ) -> Result<Arc<Self>, Error> {
        let mut shared = SHARED.lock().await;
        let known = shared.upgrade();
        if let Some(alive) = known.filter(|known| !known.output.is_complete()) {
            return Ok(alive);
        }
        let found = Arc::new(Self::start(run_id(), &[], None, background, within).await?);
        *shared = Arc::downgrade(&found);
        Ok(found)
    }

    /// Returns the container of an id, with a lease. Must run on the background runtime.
    pub(crate) async fn start(
        id: &str,
        arguments: &[String],
        volume: Option<&Volume>,
        background: &Background,
        within: Duration,
    ) -> Result<Self, Error> {
        let deadline = Instant::now() + within;
        let image = Image::find().await?;
        let name = format!("servicebus-emulator-{id}");
        let network = Network::of(&name);
        let arguments = [common_arguments(network), arguments.to_vec()].concat();
        // Every process of the run knows the id; no machine beyond those of the run and of its engine does.
        let token: Option<ControlToken> = id.parse().ok();
        let given = token.is_some().then_some(id);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let attempt = try_start(&image, &name, given, arguments.clone(), volume, left).await;
            match attempt {
                Ok((container, ports, lease)) => {
                    let output = Output::default();
                    return Ok(Self {
                        token,
                        network,
                        ports: Arc::new(SharedPortMapping::new(ports)),
                        _reading: read_output(&container, &output, background),
                        output,
                        _lease: lease,
                        container,
                    });
                }
                Err(StartError::Temporary(_)) if Instant::now() + RETRY < deadline => {
                    sleep(RETRY).await
                }
                Err(StartError::Temporary(reason)) => {
                    let within = text::seconds(within);
                    let sentence =
                        format!("the container of {image} was not ready within {within}: {reason}");
                    return Err(Error::start(sentence));
                }
                Err(StartError::Permanent(reason)) => {
                    let sentence = format!("the container of {image} does not run: {reason}");
                    return Err(Error::start(sentence));
                }
            }
        }
    }
}

/// Returns the id that the processes of a test run share; without nextest one of this process.
fn run_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| env::var(RUN_VARIABLE).unwrap_or_else(|_| unique_id()))
}

/// Returns an id that no other process uses.
pub(crate) fn dedicated_id() -> String {
    format!("alone-{}", unique_id())
}

fn unique_id() -> String {
    format!("{}-{:016x}", process::id(), random_number())
}

/// The ports of the running container.
pub(crate) type SharedPortMapping = parking_lot::Mutex<PortMapping>;

/// The host and ports at which the engine publishes the emulator.
#[derive(Debug, Clone)]
pub(crate) struct PortMapping {
    pub(crate) host: String,
    pub(crate) amqp: u16,
    pub(crate) amqps: u16,
    pub(crate) http: u16,
}

/// Why an attempt did not find or start a container.
enum StartError {
    /// A retry may succeed.
    Temporary(String),
    Permanent(String),
}

async fn try_start(
    image: &Image,
    name: &str,
    token: Option<&str>,
    arguments: Vec<String>,
    volume: Option<&Volume>,
    within: Duration,
) -> Result<(Container, PortMapping, Lease), StartError> {
    let run = image.run(name, token, arguments, volume, within);
    let container = run.await?;
    let ports = PortMapping::of(&container).await?;
    let authorization: Option<ControlToken> = token.and_then(|token| token.parse().ok());
    match Lease::take(&ports.host, ports.http, authorization.as_ref()).await {
        Ok(lease) => Ok((container, ports, lease)),
        Err(error) => Err(StartError::Temporary(error.to_string())),
    }
}

/// Returns the arguments of every container.
fn common_arguments(network: Network) -> Vec<String> {
    let addresses = network.addresses().map(|address| address.to_string());
    let addresses = Vec::from_iter(addresses).join(",");
    let idle = IDLE_SECONDS.to_string();
    let all = [
        "--record-messages",
        "--exit-when-idle",
        &idle,
        "--tls-name",
        &addresses,
    ];
    all.map(str::to_owned).to_vec()
}

/// Collects the last output of a container until it ends.
fn read_output(container: &Container, output: &Output, background: &Background) -> Task<()> {
    let mut lines = container.stderr(true).lines();
    let output = output.clone();
    background.spawn(async move {
        // The output stream of a removed container ends with an error.
        while let Ok(Some(line)) = lines.next_line().await {
            output.push(line);
        }
        output.complete();
    })
}

impl PortMapping {
    async fn of(container: &Container) -> Result<Self, TestcontainersError> {
        let host = container.get_host().await?.to_string();
        Ok(Self {
            // The engine published IPv4 ports, and `localhost` may resolve to IPv6 first.
            host: host.replace("localhost", "127.0.0.1"),
            amqp: container.get_host_port_ipv4(AMQP_PORT).await?,
            amqps: container.get_host_port_ipv4(AMQPS_PORT).await?,
            http: container.get_host_port_ipv4(HTTP_PORT).await?,
        })
    }
}

impl From<TestcontainersError> for StartError {
    fn from(error: TestcontainersError) -> Self {
        match is_temporary(&error) {
            true => Self::Temporary(reason(&error)),
            false => Self::Permanent(reason(&error)),
        }
    }
}

/// How long the emulator may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
const OK_STATUS_LINE: &[u8] = b"HTTP/1.1 200 ";

/// Keeps the container alive.
#[derive(Debug)]
pub(crate) struct Lease {
    _open: TcpStream,
}

impl Lease {
    /// Connects to the emulator's HTTP port and waits until the emulator counts the connection.
    pub(crate) async fn take(
        host: &str,
        port: u16,
        token: Option<&ControlToken>,
    ) -> io::Result<Self> {
        timeout(RESPONSE_TIMEOUT, open_lease(host, port, token)).await?
    }
}

async fn open_lease(host: &str, port: u16, token: Option<&ControlToken>) -> io::Result<Lease> {
    let mut stream = TcpStream::connect((host, port)).await?;
    let authorization = token.map(|token| format!("Authorization: {}\r\n", token.authorization()));
    let authorization = authorization.unwrap_or_default();
    let request =
        format!("GET /$emulator/v1/hold HTTP/1.1\r\nHost: localhost\r\n{authorization}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = [0; OK_STATUS_LINE.len()];
    stream.read_exact(&mut answer).await?;
    match answer == OK_STATUS_LINE {
        true => Ok(Lease { _open: stream }),
        false => Err(io::Error::other(format!(
            "the emulator refuses the connection that keeps it running: it answers {:?}",
            String::from_utf8_lossy(&answer)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_control_token_is_sent() {
        let emulator = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = emulator.local_addr().unwrap().port();
        let token = "S3cret".parse().unwrap();
        let answering = async {
            let (mut client, _) = emulator.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(client.read_u8().await.unwrap());
            }
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let (held, head) = tokio::join!(Lease::take("127.0.0.1", port, Some(&token)), answering);
        held.unwrap();
        assert!(
            head.contains("\r\nAuthorization: Bearer S3cret\r\n"),
            "{head}"
        );
    }
}

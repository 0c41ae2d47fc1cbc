//! Starting the container of a name, or finding the one that another process has started.
//!
//! The engine gives a name once, so that of several processes one starts the container and the others find it. One that
//! is just coming or going is asked for again until the deadline.

use std::{sync::Arc, time::Duration};

use servicebus_emulator::{AMQP_PORT, AMQPS_PORT, ControlToken, HTTP_PORT};
use testcontainers::TestcontainersError;
use tokio::{
    io::AsyncBufReadExt as _,
    time::{Instant, sleep},
};

use super::{
    engine::{Container, Image, is_passing, reason},
    hold::Hold,
    network::Network,
    shared::Shared,
};
use crate::{
    background::{Background, Task},
    error::Error,
    liveness::Output,
    text,
};

/// How long a container stays without a connection, in seconds: longer than it takes to go on to the next test.
const IDLE_SECONDS: u16 = 20;
/// How long it takes before a container that is coming or going is looked at again.
const RETRY: Duration = Duration::from_millis(100);

/// Where the connections of the emulator are, as the engine has them.
#[derive(Debug)]
pub(crate) struct Mapped {
    pub(crate) host: String,
    pub(crate) amqp: u16,
    pub(crate) amqps: u16,
    pub(crate) http: u16,
}

/// Why an attempt did not yield a container.
enum Trouble {
    /// The next one may.
    Passing(String),
    Lasting(String),
}

/// Returns the container of an id, held. To be awaited on the background runtime.
pub(crate) async fn start(
    id: &str,
    arguments: &[String],
    background: &Background,
    within: Duration,
) -> Result<Shared, Error> {
    let deadline = Instant::now() + within;
    let image = Image::find().await?;
    let name = format!("servicebus-emulator-{id}");
    let network = Network::of(&name);
    let arguments = [fixed(network), arguments.to_vec()].concat();
    // Every process of the run knows it, and no machine beyond those of the run and of its engine.
    let token: Option<ControlToken> = id.parse().ok();
    let given = token.is_some().then_some(id);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let attempt = attempt(&image, &name, given, arguments.clone(), left).await;
        match attempt {
            Ok((container, mapped, hold)) => {
                let output = Output::default();
                return Ok(Shared {
                    token,
                    network,
                    mapped: Arc::new(mapped),
                    _reading: read(&container, &output, background),
                    output,
                    _hold: hold,
                    _container: container,
                });
            }
            Err(Trouble::Passing(_)) if Instant::now() + RETRY < deadline => sleep(RETRY).await,
            Err(Trouble::Passing(reason)) => {
                let within = text::seconds(within);
                let sentence =
                    format!("the container of {image} was not ready within {within}: {reason}");
                return Err(Error::start(sentence));
            }
            Err(Trouble::Lasting(reason)) => {
                let sentence = format!("the container of {image} does not run: {reason}");
                return Err(Error::start(sentence));
            }
        }
    }
}

async fn attempt(
    image: &Image,
    name: &str,
    token: Option<&str>,
    arguments: Vec<String>,
    within: Duration,
) -> Result<(Container, Mapped, Hold), Trouble> {
    let container = image.run(name, token, arguments, within).await?;
    let mapped = Mapped::of(&container).await?;
    let shown: Option<ControlToken> = token.and_then(|token| token.parse().ok());
    match Hold::take(&mapped.host, mapped.http, shown.as_ref()).await {
        Ok(hold) => Ok((container, mapped, hold)),
        Err(error) => Err(Trouble::Passing(error.to_string())),
    }
}

/// What every container is started with.
fn fixed(network: Network) -> Vec<String> {
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

/// Keeps the last output of a container, until it ends.
fn read(container: &Container, output: &Output, background: &Background) -> Task<()> {
    let mut lines = container.stderr(true).lines();
    let output = output.clone();
    background.spawn(async move {
        // The stream of a container that was removed ends with an error.
        while let Ok(Some(line)) = lines.next_line().await {
            output.push(line);
        }
        output.complete();
    })
}

impl Mapped {
    async fn of(container: &Container) -> Result<Self, TestcontainersError> {
        let host = container.get_host().await?.to_string();
        Ok(Self {
            // The ports are those of IPv4, and this name may mean IPv6 first.
            host: host.replace("localhost", "127.0.0.1"),
            amqp: container.get_host_port_ipv4(AMQP_PORT).await?,
            amqps: container.get_host_port_ipv4(AMQPS_PORT).await?,
            http: container.get_host_port_ipv4(HTTP_PORT).await?,
        })
    }
}

impl From<TestcontainersError> for Trouble {
    fn from(error: TestcontainersError) -> Self {
        match is_passing(&error) {
            true => Self::Passing(reason(&error)),
            false => Self::Lasting(reason(&error)),
        }
    }
}

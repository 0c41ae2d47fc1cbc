//! The container that a test run shares.
//!
//! Its name says the run: all processes of a run of nextest, or this process. Whoever comes first starts it; everybody
//! holds it by a connection. It ends, and is removed, when nobody has held it for a while.

use std::{
    env, process,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use testcontainers::TestcontainersError;
use tokio::{
    io::AsyncBufReadExt as _,
    sync::Mutex,
    time::{Instant, sleep},
};

use super::{
    ContainerError,
    engine::{Container, Image, is_passing, reason},
    hold::Hold,
};
use crate::{
    address::random_number,
    background::{Background, Task},
    output::Output,
};

/// What nextest tells every process of a run.
const RUN_VARIABLE: &str = "NEXTEST_RUN_ID";
/// How long a container stays that nobody holds, in seconds: longer than it takes to go on to the next test.
const IDLE_SECONDS: u16 = 20;
/// How long it takes before a container that is coming or going is looked at again.
const RETRY: Duration = Duration::from_millis(100);

static SHARED: Mutex<Weak<Shared>> = Mutex::const_new(Weak::new());

/// A container that is held.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) mapped: Arc<Mapped>,
    pub(super) output: Output,
    _hold: Hold,
    _reading: Task<()>,
    _container: Container,
}

/// Where the doors of the emulator are, as the engine has them.
#[derive(Debug)]
pub(super) struct Mapped {
    pub(super) host: String,
    pub(super) amqp: u16,
    pub(super) amqps: u16,
    pub(super) http: u16,
}

/// Why an attempt did not yield a container.
enum Trouble {
    /// It may by now.
    Passing(String),
    Lasting(String),
}

impl Shared {
    /// Returns the container of the run, and starts it when there is none. To be awaited on the background runtime.
    pub(super) async fn of_the_run(
        background: &Arc<Background>,
        within: Duration,
    ) -> Result<Arc<Self>, ContainerError> {
        let mut shared = SHARED.lock().await;
        if let Some(alive) = shared.upgrade().filter(|found| !found.output.is_complete()) {
            return Ok(alive);
        }
        let found = Self::named(run_id(), Vec::new(), background, within).await?;
        let found = Arc::new(found);
        *shared = Arc::downgrade(&found);
        Ok(found)
    }

    /// Starts a container for one bus, whose choices are repeatable as long as nobody else's are among them.
    pub(super) async fn seeded(
        seed: u64,
        background: &Arc<Background>,
        within: Duration,
    ) -> Result<Arc<Self>, ContainerError> {
        let arguments = vec!["--seed".to_owned(), seed.to_string()];
        let own = Self::named(&unique_id(), arguments, background, within).await?;
        Ok(Arc::new(own))
    }

    async fn named(
        id: &str,
        arguments: Vec<String>,
        background: &Arc<Background>,
        within: Duration,
    ) -> Result<Self, ContainerError> {
        let image = Image::find().await?;
        let name = format!("servicebus-emulator-{id}");
        let idle = ["--exit-when-idle".to_owned(), IDLE_SECONDS.to_string()];
        let arguments = [&idle[..], &arguments].concat();
        let deadline = Instant::now() + within;
        loop {
            let left = deadline - Instant::now();
            match Self::attempt(&image, &name, arguments.clone(), background, left).await {
                Ok(shared) => return Ok(shared),
                Err(Trouble::Passing(_)) if Instant::now() + RETRY < deadline => {
                    sleep(RETRY).await;
                }
                Err(Trouble::Passing(reason)) => {
                    return Err(ContainerError::Late {
                        image: image.to_string(),
                        within,
                        reason,
                    });
                }
                Err(Trouble::Lasting(reason)) => {
                    return Err(ContainerError::Failed {
                        image: image.to_string(),
                        reason,
                    });
                }
            }
        }
    }

    async fn attempt(
        image: &Image,
        name: &str,
        arguments: Vec<String>,
        background: &Background,
        within: Duration,
    ) -> Result<Self, Trouble> {
        let container = image.run(name, arguments, within).await?;
        let mapped = Mapped::of(&container).await?;
        let hold = Hold::take(&mapped.host, mapped.http).await;
        let hold = hold.map_err(|error| Trouble::Passing(error.to_string()))?;
        let output = Output::default();
        let mut lines = container.stderr(true).lines();
        let kept = output.clone();
        let reading = background.spawn(async move {
            // An error is how the stream of a container that was removed ends.
            while let Ok(Some(line)) = lines.next_line().await {
                kept.push(line);
            }
            kept.complete();
        });
        Ok(Self {
            mapped: Arc::new(mapped),
            output,
            _hold: hold,
            _reading: reading,
            _container: container,
        })
    }
}

impl Mapped {
    async fn of(container: &Container) -> Result<Self, TestcontainersError> {
        let host = container.get_host().await?.to_string();
        Ok(Self {
            // The ports are those of IPv4, and the name may mean IPv6 first.
            host: host.replace("localhost", "127.0.0.1"),
            amqp: container.get_host_port_ipv4(5672).await?,
            amqps: container.get_host_port_ipv4(5671).await?,
            http: container.get_host_port_ipv4(5300).await?,
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

/// What the processes of one test run have in common; without nextest that is this process.
fn run_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| env::var(RUN_VARIABLE).unwrap_or_else(|_| unique_id()))
}

fn unique_id() -> String {
    format!("{}-{:016x}", process::id(), random_number())
}

//! The container that a test run shares.
//!
//! Its name says the run: all processes of a run of nextest, or this process. The first process starts it; each
//! holds it by a connection. It ends, and is removed, some time after the last connection.

use std::{
    env, process,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use servicebus_emulator::ControlToken;
use tokio::sync::Mutex;

use super::{
    engine::Container,
    hold::Hold,
    network::Network,
    run::{self, Mapped},
};
use crate::{
    address::random_number,
    background::{Background, Task},
    error::Error,
    liveness::Output,
};

/// What nextest tells every process of a run.
const RUN_VARIABLE: &str = "NEXTEST_RUN_ID";

static SHARED: Mutex<Weak<Shared>> = Mutex::const_new(Weak::new());

/// A container that is held.
#[derive(Debug)]
pub(crate) struct Shared {
    /// None where the run's id can be no token.
    pub(crate) token: Option<ControlToken>,
    pub(crate) network: Network,
    pub(crate) mapped: Arc<Mapped>,
    pub(crate) output: Output,
    pub(crate) _hold: Hold,
    pub(crate) _reading: Task<()>,
    pub(crate) _container: Container,
}

impl Shared {
    /// Returns the container of the run, and starts it when there is none. To be awaited on the background runtime.
    pub(crate) async fn of_the_run(
        background: &Background,
        within: Duration,
    ) -> Result<Arc<Self>, Error> {
        let mut shared = SHARED.lock().await;
        let known = shared.upgrade();
        if let Some(alive) = known.filter(|known| !known.output.is_complete()) {
            return Ok(alive);
        }
        let found = Arc::new(run::start(run_id(), &[], background, within).await?);
        *shared = Arc::downgrade(&found);
        Ok(found)
    }

    /// Starts a container that no other process finds, with further arguments.
    pub(crate) async fn alone(
        arguments: &[String],
        background: &Background,
        within: Duration,
    ) -> Result<Arc<Self>, Error> {
        let own = run::start(
            &format!("alone-{}", unique_id()),
            arguments,
            background,
            within,
        )
        .await?;
        Ok(Arc::new(own))
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

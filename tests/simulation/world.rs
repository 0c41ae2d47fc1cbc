//! One seed from beginning to end: an emulator, clients that work, a network that fails, and the judge.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use servicebus_emulator::{Config, Emulator, Options, TlsOptions};
use servicebus_test_support::client::part;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::drain::drain;
use crate::ledger::{BEGINNING, Ledger};
use crate::network::{Network, NetworkConditions};
use crate::worker::{Work, work};

/// Longest that clients work, in simulated time; more is a hang.
const WORK: Duration = Duration::from_secs(3_600);

/// What everybody in a simulation shares.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) emulator: Emulator,
    pub(crate) network: Network,
    pub(crate) ledger: Ledger,
    /// Name and value of the key.
    pub(crate) key: (String, String),
}

/// What came of a seed.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) findings: Vec<String>,
    /// The hash of everything that went over the network, and when.
    pub(crate) trace: u64,
    pub(crate) bytes: u64,
    pub(crate) messages: usize,
    /// Simulated seconds.
    pub(crate) seconds: u64,
}

/// How often the network fails.
#[derive(Debug, Clone, Copy)]
struct Failures {
    /// Mean time between two of them in milliseconds; none where nothing fails.
    every: Option<u64>,
}

/// Simulates what follows from a seed.
pub(crate) fn simulate(seed: u64, is_verbose: bool) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime is built");
    runtime.block_on(run(seed, is_verbose))
}

async fn run(seed: u64, is_verbose: bool) -> Report {
    let mut random = SmallRng::seed_from_u64(seed);
    let conditions = NetworkConditions {
        delay: [1, 10, 80, 300][random.random_range(0..4)],
        window: [512, 4096, 65_536][random.random_range(0..3)],
    };
    let failures = Failures {
        every: [None, Some(4_000), Some(1_500), Some(12_000)][random.random_range(0..4)],
    };
    let started = tokio::time::Instant::now();
    let ledger = Ledger::new(is_verbose);
    ledger.say(|| format!("seed {seed}: {conditions:?} {failures:?}"));
    let world = Arc::new(World::new(seed, random.random(), conditions, ledger));
    let mut clients = JoinSet::new();
    for (kind, how_many) in [
        (Work::Send, 2..4),
        (Work::Receive, 2..5),
        (Work::HoldSessions, 1..3),
        (Work::UseJms, 1..3),
    ] {
        for number in 0..random.random_range(how_many) {
            clients.spawn(work(Arc::clone(&world), kind, number, random.random()));
        }
    }
    let failing = tokio::spawn(fail(world.network.clone(), failures, random.random()));
    if timeout(WORK, clients.join_all()).await.is_err() {
        world.ledger.find("the clients hang".into());
    }
    failing.abort();
    world.network.restore();
    if drain(&world).await {
        world.ledger.check_result();
    }
    let (trace, bytes) = world.network.trace();
    Report {
        findings: world.ledger.findings(),
        trace,
        bytes,
        messages: world.ledger.sent(),
        seconds: started.elapsed().as_secs(),
    }
}

impl World {
    fn new(seed: u64, network: u64, conditions: NetworkConditions, ledger: Ledger) -> Self {
        let config =
            Config::parse(crate::entities::CONFIGURATION).expect("the configuration is right");
        let options = Options {
            config,
            seed: Some(seed),
            amqps_port: None,
            tls: TlsOptions::default(),
            ..Options::default()
        };
        let wall = UNIX_EPOCH + Duration::from_millis(BEGINNING as u64);
        let emulator = Emulator::start_simulated(options, wall).expect("the emulator starts");
        let connection_string = emulator.namespaces()[0].connection_string.clone();
        let part = |name| part(&connection_string, name).to_owned();
        Self {
            key: (part("SharedAccessKeyName"), part("SharedAccessKey")),
            emulator,
            network: Network::new(network, conditions),
            ledger,
        }
    }
}

/// Cuts connections, lets them fall silent, and lets clients stand still.
async fn fail(network: Network, failures: Failures, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let Some(every) = failures.every else { return };
    loop {
        sleep(Duration::from_millis(random.random_range(0..2 * every))).await;
        let Some(connection) = network.any() else {
            continue;
        };
        match random.random_range(0..10) {
            0..5 => connection.cut(&network),
            5 => connection.drop_traffic(true, true),
            6 => connection.drop_traffic(false, true),
            7 => connection.drop_traffic(true, false),
            _ => connection.pause(Duration::from_millis(random.random_range(100..15_000))),
        }
    }
}

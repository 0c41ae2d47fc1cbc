//! Every way to a namespace of its own, against a namespace that runs already.
//!
//! All take turns, so that a busy moment of the machine meets all of them, and each is compared with a test that ran just
//! before it.

use std::{
    env,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use servicebus_harness::{Builder, Error, prelude::*};

use crate::{alone, exchange, table::Row};

/// How many turns are measured, and how many are not, before them.
const TURNS: usize = 41;
const WARM_UP: usize = 5;
/// A container takes part in one turn of so many: it costs a hundred times what the others do.
const TURNS_PER_CONTAINER: usize = 4;

/// A way to a namespace of its own.
struct Way {
    what: &'static str,
    builder: Builder,
    /// How much longer than with a namespace that runs already the test may take, in milliseconds.
    limit: f64,
    /// It takes part in one turn of so many.
    turns: usize,
    /// It is only started and ended, without a test.
    idle: bool,
    /// How much longer it took, in milliseconds; or why there is no such namespace here.
    longer: Result<Vec<f64>, Error>,
}

/// How much longer the test takes with a namespace of its own than with one that runs already.
pub(crate) async fn measure(benchmark: bool) -> Vec<Row> {
    let turns = if benchmark { WARM_UP + TURNS } else { 1 };
    let running = start(ServiceBus::builder().mode(Mode::InProcess)).await;
    let mut ways = all();
    for turn in 0..turns {
        for way in &mut ways {
            if turn.is_multiple_of(way.turns) {
                way.take_turn(&running, turn >= WARM_UP || !benchmark).await;
            }
        }
    }
    ways.into_iter().map(Way::row).collect()
}

/// Where namespaces share an address, they are virtual: the one that runs already has the emulator, and no other can start.
fn all() -> Vec<Way> {
    let of = |mode| ServiceBus::builder().mode(mode);
    if env::var_os("SERVICEBUS_HARNESS_ADDRESS").is_some() {
        return vec![
            Way::new("as a virtual namespace", of(Mode::InProcess), 2.0),
            Way {
                idle: true,
                ..Way::new(
                    "start and end, as a virtual namespace",
                    of(Mode::InProcess),
                    0.5,
                )
            },
        ];
    }
    let process = of(Mode::Process).binary(emulator());
    // One with a seed of its own is not shared.
    let container = Way::new(
        "in a container of its own",
        of(Mode::Container).seed(1),
        1_500.0,
    );
    vec![
        Way::new("in process", of(Mode::InProcess), 2.0),
        Way::new("in a process of its own", process.clone(), 15.0),
        Way {
            idle: true,
            ..Way::new("start and end, in process", of(Mode::InProcess), 0.4)
        },
        Way {
            idle: true,
            ..Way::new("start and end, in a process of its own", process, 4.0)
        },
        Way {
            turns: TURNS_PER_CONTAINER,
            ..container
        },
    ]
}

impl Way {
    fn new(what: &'static str, builder: Builder, limit: f64) -> Self {
        Self {
            what,
            builder,
            limit,
            turns: 1,
            idle: false,
            longer: Ok(Vec::new()),
        }
    }

    /// Runs the test with a namespace that runs, then with one of its own; `kept` is whether that counts.
    async fn take_turn(&mut self, running: &ServiceBus, kept: bool) {
        let Ok(longer) = &mut self.longer else { return };
        // What the test before has left to be done is not to be measured.
        exchange(running).await;
        let without = match self.idle {
            true => Duration::ZERO,
            false => timed(exchange(running)).await.1,
        };
        let (ended, with) = timed(alone(self.builder.clone(), !self.idle)).await;
        match ended {
            Ok(()) if kept => longer.push(milliseconds(with) - milliseconds(without)),
            Ok(()) => {}
            Err(error) => self.longer = Err(error),
        }
    }

    fn row(self) -> Row {
        Row {
            what: self.what,
            measured: self.longer.map_err(|error| error.to_string()),
            limit: self.limit,
            unit: " ms",
        }
    }
}

async fn start(builder: Builder) -> ServiceBus {
    let started = builder.start().result().await;
    started.unwrap_or_else(|error| panic!("{error}"))
}

async fn timed<T>(test: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let value = test.await;
    (value, started.elapsed())
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The emulator's binary in the profile of this benchmark, built if need be.
fn emulator() -> PathBuf {
    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--package", "servicebus-emulator"]);
    build.args(["--bin", "servicebus-emulator"]);
    let executable = env::current_exe().expect("a program knows where it is");
    let directory = executable.ancestors().nth(2).expect("it lies in deps");
    if directory.ends_with("release") {
        build.args(["--profile", "bench"]);
    }
    let status = build.status().expect("cargo runs");
    assert!(status.success(), "cargo did not build the emulator");
    directory.join(format!("servicebus-emulator{}", env::consts::EXE_SUFFIX))
}

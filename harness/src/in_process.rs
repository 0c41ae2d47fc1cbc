//! Runs the emulator library inside the test's process.
//!
//! Its tasks run on the background runtime, so the test's own runtime may have one thread or be paused.

use std::{
    io::ErrorKind,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime},
};

use servicebus_config::Config;
use servicebus_control_api::Failure;
use servicebus_emulator::{Emulator, Options, WallClock};
use tokio::sync::Mutex;

use crate::{
    address::{AddressSearch, ListenAddress, RELEASE_TIMEOUT, retry_while_in_use},
    background::Background,
    data::Data,
    endpoints::{Endpoints, HttpPorts, Namespace},
    error::Error,
    running::{
        CreateFuture, OwnEmulator, RestartFuture, Running, Started, StopFuture, Termination,
    },
};

/// How long a directory may be in use by an emulator that is ending.
const DIRECTORY_RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// An emulator in this process; `None` during a restart.
#[derive(Debug)]
struct InProcess {
    emulator: Arc<Mutex<Option<Emulator>>>,
    options: Options,
}

/// Starts an emulator on an address of the place.
pub(crate) async fn start(
    background: &Arc<Background>,
    config: Option<Config>,
    seed: Option<u64>,
    ports: HttpPorts,
    listen: ListenAddress,
    data: Option<&Data>,
) -> Result<Started, Error> {
    let mut search = AddressSearch::new(listen);
    loop {
        let address = search.next(background).await?;
        let activity = background.activity();
        let wall_clock = match activity {
            Some(_) => WallClock::starting_at(SystemTime::now()).with_lasting_tokens(),
            None => WallClock::default(),
        };
        let options = Options {
            activity,
            wall_clock,
            host: address.to_string(),
            http_port: ports.http,
            https_port: ports.https,
            seed,
            record_messages: true,
            data: data.map(Data::options),
            ..Options::default()
        };
        let options = match &config {
            Some(config) => Options {
                config: config.clone(),
                ..options
            },
            None => options,
        };
        let starting = options.clone();
        // A `ServiceBus` that was dropped releases its directory a moment later.
        let start = move || Emulator::start_read(starting.clone());
        match background
            .spawn(retry_while_in_use(
                DIRECTORY_RELEASE_TIMEOUT,
                start,
                is_directory_in_use,
            ))
            .await
        {
            Ok(emulator) => return Ok(started(emulator, options)),
            Err(error) if is_port_in_use(&error) => search.ports_taken(error.to_string()),
            Err(error) => return Err(not_started(&error)),
        }
    }
}

impl OwnEmulator for Mutex<Option<Emulator>> {
    fn failures(&self) -> Option<Vec<Failure>> {
        let emulator = self.try_lock().ok()?;
        emulator.as_ref().map(Emulator::failures)
    }

    fn create_namespace(self: Arc<Self>, name: String, topology: String) -> CreateFuture {
        Box::pin(async move {
            match &*self.lock().await {
                Some(emulator) => emulator.create_namespace(&name, topology).await,
                None => Err("it has ended".into()),
            }
        })
    }

    fn remove_namespace(self: Arc<Self>, name: String) -> StopFuture {
        Box::pin(async move {
            if let Some(emulator) = &*self.lock().await {
                // It may not exist any more.
                let _ = emulator.remove_namespace(&name).await;
            }
        })
    }
}

impl Running for InProcess {
    fn own_emulator(&self) -> Option<Arc<dyn OwnEmulator>> {
        Some(Arc::clone(&self.emulator) as _)
    }

    #[cfg(feature = "explore")]
    fn exploration_namespace(&self) -> Option<servicebus_emulator::ConductedNamespace> {
        let emulator = self.emulator.try_lock().ok()?;
        let emulator = emulator.as_ref()?;
        let first = emulator.namespaces().into_iter().next()?;
        Emulator::conducted(emulator, &first.name)
    }

    fn restart(&self, termination: Termination) -> RestartFuture {
        let (emulator, options) = (Arc::clone(&self.emulator), self.options.clone());
        Box::pin(async move {
            let mut emulator = emulator.lock().await;
            match (emulator.take(), termination) {
                (Some(running), Termination::Stop) => running.stop().await,
                (Some(running), Termination::Crash) => running.crash().await,
                // An earlier start failed.
                (None, _) => {}
            }
            let start = || Emulator::start(options.clone());
            let started = retry_while_in_use(RELEASE_TIMEOUT, start, is_port_in_use).await;
            *emulator = Some(started.map_err(|error| not_started(&error))?);
            Ok(())
        })
    }

    fn stop(self: Box<Self>) -> StopFuture {
        Box::pin(async move {
            if let Some(emulator) = self.emulator.lock().await.take() {
                emulator.stop().await;
            }
        })
    }
}

fn started(emulator: Emulator, options: Options) -> Started {
    let own = emulator.endpoints();
    let endpoints = Endpoints {
        amqp: own.amqp,
        // Requested by the options.
        amqps: own.amqps.unwrap_or(own.amqp),
        http: own.http,
        https: own.https,
    };
    let namespaces = emulator.namespaces().into_iter().map(Namespace::from);
    Started {
        endpoints,
        namespaces: namespaces.collect(),
        ca_file: emulator.ca_certificate().map(Path::to_owned),
        file_lock: None,
        running: Box::new(InProcess {
            emulator: Arc::new(Mutex::new(Some(emulator))),
            options,
        }),
    }
}

fn not_started(error: &servicebus_emulator::StartError) -> Error {
    Error::start(format!("the emulator did not start: {error}"))
}

fn is_port_in_use(error: &servicebus_emulator::StartError) -> bool {
    matches!(
        error,
        servicebus_emulator::StartError::Listen { source, .. }
            if source.kind() == ErrorKind::AddrInUse
    )
}

fn is_directory_in_use(error: &servicebus_emulator::StartError) -> bool {
    matches!(
        error,
        servicebus_emulator::StartError::Data(servicebus_emulator::DataError::InUse(_))
    )
}

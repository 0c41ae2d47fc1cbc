//! The emulator library inside the test's process.
//!
//! Its tasks run on the background runtime, so the test's own may have one thread or be paused.

use std::{io::ErrorKind, path::Path, sync::Arc, time::SystemTime};

use servicebus_emulator::{Emulator, Options, WallClock, config::Config};

use crate::{
    address::{Place, Search},
    background::Background,
    endpoints::{Endpoints, HttpPorts, Namespace},
    error::Error,
    running::{Running, Started, Stopped},
};

/// Starts an emulator on an address of the place.
pub(crate) async fn start(
    background: &Arc<Background>,
    config: Option<Config>,
    seed: Option<u64>,
    ports: HttpPorts,
    place: Place,
) -> Result<Started, Error> {
    let mut search = Search::new(place);
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
            ..Options::default()
        };
        let options = match &config {
            Some(config) => Options {
                config: config.clone(),
                ..options
            },
            None => options,
        };
        match background.spawn(Emulator::start(options)).await {
            Ok(emulator) => return Ok(started(emulator)),
            Err(error) if is_taken(&error) => search.taken(error.to_string()),
            Err(error) => {
                return Err(Error::start(format!("the emulator did not start: {error}")));
            }
        }
    }
}

impl Running for Emulator {
    #[cfg(feature = "explore")]
    fn conducted(&self) -> Option<servicebus_emulator::ConductedNamespace> {
        let first = self.namespaces().into_iter().next()?;
        Self::conducted(self, &first.name)
    }

    fn stop(self: Box<Self>) -> Stopped {
        Box::pin((*self).stop())
    }
}

fn started(emulator: Emulator) -> Started {
    let own = emulator.endpoints();
    let endpoints = Endpoints {
        amqp: own.amqp,
        // It was asked for.
        amqps: own.amqps.unwrap_or(own.amqp),
        http: own.http,
        https: own.https,
    };
    let namespaces = emulator.namespaces().into_iter().map(Namespace::from);
    Started {
        endpoints,
        namespaces: namespaces.collect(),
        ca_file: emulator.ca_certificate().map(Path::to_owned),
        running: Box::new(emulator),
    }
}

fn is_taken(error: &servicebus_emulator::StartError) -> bool {
    matches!(
        error,
        servicebus_emulator::StartError::Listen { source, .. }
            if source.kind() == ErrorKind::AddrInUse
    )
}

//! A namespace that runs elsewhere, of which nothing is known but its connection string.
//!
//! Nothing is started. What the topology declares is made there by the administration API under its own names, so that
//! code and tests need no others, and is removed when the bus ends. One bus of a machine at a time works in a namespace:
//! the next waits for its turn. What a killed run left goes by itself after five minutes without use, and the next bus
//! that needs the name removes it before. Everything goes over TLS, and nothing is asked that the service does not
//! answer: what only an emulator's record or clock could tell is an error that says so.

mod admin;
mod answers;
mod description;
mod error;
mod given;
mod plan;
mod rule;
mod site;
mod trust;
mod xml;

use std::{env, path::PathBuf, sync::Arc, time::Duration};

use servicebus_emulator::config::Config;

use crate::{
    background::Background,
    error::StartError,
    running::{Endpoints, Namespace, Running, Started},
    secret::Secret,
    turn::Waiting,
};

pub use error::RemoteError;
pub(crate) use site::{RemoteRun, Site};
pub(crate) use trust::Secure;

use admin::Admin;
use given::Given;

/// The environment variable that names the namespace of mode [`Mode::Namespace`](crate::Mode::Namespace), by its
/// connection string.
pub const CONNECTION_STRING_VARIABLE: &str = "SERVICEBUS_CONNECTION_STRING";
/// The environment variable that says for how many seconds an advance of the clock may really wait in mode
/// [`Mode::Namespace`](crate::Mode::Namespace), where the builder does not say it.
pub const LONGEST_WAIT_VARIABLE: &str = "SERVICEBUS_HARNESS_LONGEST_WAIT";

/// The environment variable that names the authorities to trust instead of those of the system, as for SDKs.
const AUTHORITIES_VARIABLE: &str = "SSL_CERT_FILE";

/// What a bus in a namespace is started with.
#[derive(Debug)]
pub(crate) struct RemoteOptions {
    /// Where the environment is not to say it.
    pub(crate) connection_string: Option<Secret>,
    pub(crate) config: Config,
    pub(crate) longest_wait: Option<Duration>,
}

/// Finds the namespace, waits for a turn in it and makes what the topology declares.
pub(crate) async fn start(
    background: &Arc<Background>,
    options: RemoteOptions,
) -> Result<Started, StartError> {
    let given = Given::read(options.connection_string.map(String::from))?;
    let longest_wait = given::longest_wait(options.longest_wait)?;
    let waiting = Waiting::new("in the namespace", &given.host);
    let turn = background.spawn(waiting.take()).await;
    let turn = turn.map_err(RemoteError::Turn)?;
    let reached = {
        let given = given.clone();
        background.spawn(async move { given.reach().await })
    };
    let (endpoints, secure) = reached.await?;
    let admin = Admin::new(&given, endpoints.http, secure.clone());
    let site = Arc::new(Site::new(admin, longest_wait));
    // From here on whatever was made is removed, also when the rest fails.
    let running = RemoteRun::new(Arc::clone(&site), Arc::clone(background), secure, turn);
    let config = options.config;
    let name = background.spawn(async move { plan::carry_out(&site, &config).await });
    let namespace = Namespace {
        name: name.await?,
        connection_string: given.client_string().into(),
        admin_connection_string: given.admin_string().into(),
    };
    Ok(Started {
        endpoints,
        namespaces: vec![namespace],
        ca_file: env::var_os(AUTHORITIES_VARIABLE).map(PathBuf::from),
        running: Running::Remote(running),
    })
}

impl Given {
    /// Looks the host up and prepares to trust it.
    async fn reach(&self) -> Result<(Endpoints, Secure), RemoteError> {
        let secure = Secure::of_system(&self.host)?;
        let amqps = self.resolve(given::AMQPS_PORT).await?;
        let https = self.resolve(self.admin_port()).await?;
        let endpoints = Endpoints {
            amqp: amqps,
            amqps,
            http: https,
            https: Some(https),
        };
        Ok((endpoints, secure))
    }
}

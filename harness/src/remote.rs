//! A namespace that runs elsewhere, known only by its connection string.
//!
//! The harness starts nothing. It creates the entities of the topology by the administration API, under their own names, so
//! that code and tests need no others, and deletes them when the `ServiceBus` ends. One `ServiceBus` of a machine works in a
//! namespace at a time: the next one waits for the lock, unless its entities have a prefix of their own. What a killed run
//! left, the service deletes after five minutes without use, or the next `ServiceBus` that needs the name deletes it before.
//! Every connection uses TLS. The harness sends only requests that the service answers: an assertion that needs an
//! emulator's record or clock fails with an error that says so.

mod admin;
mod backend;
mod config;
mod description;
mod namespace;
mod plan;

use std::{env, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use servicebus_config::config::Config;

use crate::{
    background::Background,
    endpoints::{Endpoints, Namespace, Secret},
    error::Error,
    file_lock::PendingLock,
    running::Started,
    stream::Secure,
};

pub(crate) use namespace::RemoteNamespace;

use admin::Admin;
use config::RemoteConfig;
use namespace::{Prefix, RemoteLease};

/// The environment variable with the CA certificates to trust instead of the system's, as for SDKs.
const AUTHORITIES_VARIABLE: &str = "SSL_CERT_FILE";

/// The start options of a `ServiceBus` in a namespace.
#[derive(Debug)]
pub(crate) struct RemoteOptions {
    /// Overrides the environment.
    pub(crate) connection_string: Option<Secret>,
    pub(crate) config: Config,
    pub(crate) max_real_wait: Option<Duration>,
    /// Whether its entities get names that no other `ServiceBus` uses.
    pub(crate) is_prefixed: bool,
}

/// Finds the namespace, waits for its lock and creates the entities of the topology.
pub(crate) async fn start(
    background: &Arc<Background>,
    options: RemoteOptions,
) -> Result<Started, Error> {
    let remote_config = RemoteConfig::read(options.connection_string.map(String::from))?;
    let max_real_wait = config::max_real_wait(options.max_real_wait)?;
    let (prefix, file_lock) = match options.is_prefixed {
        true => (Prefix::unique(), None),
        false => {
            let waiting = PendingLock::in_namespace(&remote_config.host);
            (
                Prefix::default(),
                Some(background.spawn(waiting.take()).await?),
            )
        }
    };
    let reached = {
        let remote_config = remote_config.clone();
        background.spawn(async move { remote_config.reach().await })
    };
    let (endpoints, secure) = reached.await?;
    let admin = Admin::new(&remote_config, endpoints.http, secure.clone());
    let remote = Arc::new(RemoteNamespace {
        admin,
        max_real_wait,
        prefix,
        created: Mutex::default(),
    });
    // From here on a drop deletes everything that was created, also when a later step fails.
    let running = RemoteLease {
        remote: Arc::clone(&remote),
        background: Arc::clone(background),
        secure,
        _file_lock: file_lock,
    };
    let config = options.config;
    let name = background.spawn(async move { plan::create_entities(&remote, &config).await });
    let namespace = Namespace {
        name: name.await?,
        connection_string: remote_config.client_string().into(),
        admin_connection_string: remote_config.admin_string().into(),
    };
    Ok(Started {
        endpoints,
        namespaces: vec![namespace],
        ca_file: env::var_os(AUTHORITIES_VARIABLE).map(PathBuf::from),
        file_lock: None,
        running: Box::new(running),
    })
}

impl RemoteConfig {
    /// Resolves the host and loads the CA certificates to trust.
    async fn reach(&self) -> Result<(Endpoints, Secure), Error> {
        let secure = Secure::of_system(&self.host)?;
        let amqps = self.resolve(config::AMQPS_PORT).await?;
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

//! A namespace that runs elsewhere, of which nothing is known but its connection string.
//!
//! Nothing is started. What the topology declares is made there by the administration API under its own names, so that
//! code and tests need no others, and is removed when the `ServiceBus` ends. One `ServiceBus` of a machine at a time works
//! in a namespace: the next waits for the lock, unless its entities have a prefix of their own. What a killed run left is deleted by the service after five minutes
//! without use, or before by the next `ServiceBus` that needs the name. Every connection uses TLS, and nothing is asked
//! that the service does not answer: a question for an emulator's record or clock is an error that says so.

mod admin;
mod answers;
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
use namespace::{Prefix, RemoteRun};

/// The environment variable that names the authorities to trust instead of those of the system, as for SDKs.
const AUTHORITIES_VARIABLE: &str = "SSL_CERT_FILE";

/// What a `ServiceBus` in a namespace is started with.
#[derive(Debug)]
pub(crate) struct RemoteOptions {
    /// Where the environment is not to say it.
    pub(crate) connection_string: Option<Secret>,
    pub(crate) config: Config,
    pub(crate) max_real_wait: Option<Duration>,
    /// Whether its entities have names that no other `ServiceBus` uses.
    pub(crate) is_prefixed: bool,
}

/// Finds the namespace, waits for its lock and makes what the topology declares.
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
        made: Mutex::default(),
    });
    // From here on everything that was made is removed, also when the rest fails.
    let running = RemoteRun {
        remote: Arc::clone(&remote),
        background: Arc::clone(background),
        secure,
        _file_lock: file_lock,
    };
    let config = options.config;
    let name = background.spawn(async move { plan::carry_out(&remote, &config).await });
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
    /// Looks the host up and prepares to trust it.
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

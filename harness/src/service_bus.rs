//! The namespace of a test.
//!
//! A [`ServiceBus`] is one namespace of an emulator, which it has to itself unless the emulator is shared. It ends when it
//! is dropped: without blocking, without a panic during a panic, and even if clients remain.

mod builder;
mod restart;
mod topology;

use std::{
    fmt,
    panic::Location,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use servicebus_config::{
    ClientSettings,
    auth::{Claims, ConnectionString, Key},
};

use crate::{
    action::Action,
    amqp::{Amqp, Login},
    backend::Backend,
    background::Background,
    catalog::{EntitySettings, subscription_path},
    clients::{EntityClient, QueueClient, SubscriptionClient, TopicClient},
    clock::Clock,
    connections::Unchecked,
    connections::{Cancelled, Connections},
    control::{Control, control_url},
    data::Data,
    end_check::{EndCheck, EndCheckKind},
    endpoints::{Endpoints, Namespace},
    error::Error,
    faults::Faults,
    file_lock::FileLock,
    keep::KeepOnFailure,
    keys::{Keys, tls_namespace},
    liveness::{EndOnDrop, NamespaceEnd},
    mode::Mode,
    observer::{ClientAccess, Recording},
    report::ReportOnFailure,
    running::{Running, Started},
    scripted_faults::ScriptedFaults,
};

pub use builder::Builder;
use servicebus_assertions::Timeline;

/// A Service Bus namespace for one test.
pub struct ServiceBus {
    mode: Mode,
    endpoints: Endpoints,
    namespace: Namespace,
    /// The namespace with its connection strings for TLS.
    tls_namespace: Namespace,
    tls: bool,
    ca_file: Option<PathBuf>,
    keys: Keys,
    pub(crate) connections: Arc<Connections>,
    /// Dropped before the emulator ends, because they send it requests.
    end_checks: [EndCheck; 3],
    /// Dropped after the checks, whose failures it includes.
    report_on_failure: Option<ReportOnFailure>,
    /// Dropped after the report, which exists while the namespace is kept and the end of the test waits.
    keep_on_failure: Option<KeepOnFailure>,
    /// Dropped while the namespace exists, because clients reach that through the recorder.
    recording: Option<Recording>,
    /// Dropped after everything that uses the namespace.
    end: EndOnDrop,
    /// Dropped last, so that connections close before the emulator does.
    running: Box<dyn Running>,
    /// Released when the emulator's end has begun.
    _file_lock: Option<FileLock>,
    /// Dropped after the emulator, which writes to it.
    data: Option<Data>,
}

impl ServiceBus {
    /// Starts a namespace with one queue, `queue.1`, like the official emulator's.
    ///
    /// # Panics
    ///
    /// Panics if the namespace does not start; the panic says why.
    #[track_caller]
    pub fn start() -> Action<'static, Self> {
        Builder::default().start()
    }

    /// Returns a builder of a namespace.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns where the emulator runs.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the name of the namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace.name
    }

    /// Returns the connection string for clients that send and receive, in any language.
    pub fn connection_string(&self) -> &str {
        match self.tls {
            true => &self.tls_namespace.connection_string,
            false => &self.namespace.connection_string,
        }
    }

    /// Returns the connection string with a key that has exactly these rights.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # fn test(servicebus: &ServiceBus) {
    /// let reader = servicebus.connection_string_with(Claims::LISTEN);
    /// let worker = servicebus.connection_string_with(Claims::SEND | Claims::LISTEN);
    /// # }
    /// ```
    ///
    /// The right to manage includes all others, as in the service.
    ///
    /// # Panics
    ///
    /// Panics if there is no such key: for no right at all, or for fewer than all in mode [`Mode::Namespace`], which has
    /// only its owner's keys.
    #[track_caller]
    pub fn connection_string_with(&self, claims: Claims) -> String {
        let with_claims = self.keys.with_claims(self.connection_string(), claims);
        with_claims.unwrap_or_else(|| {
            panic!(
                "this namespace has no key with the rights \"{claims}\"; in the modes in-process, process and container a namespace has keys for Send, Listen, both, and all; in mode namespace it has the given key only"
            )
        })
    }

    /// Returns the connection string for clients without TLS.
    #[cfg(feature = "azservicebus")]
    pub(crate) fn plain_connection_string(&self) -> &str {
        &self.namespace.connection_string
    }

    /// Returns the connection string for administration clients.
    pub fn admin_connection_string(&self) -> &str {
        match self.tls {
            true => &self.tls_namespace.admin_connection_string,
            false => &self.namespace.admin_connection_string,
        }
    }

    /// Returns the connection string for clients that use TLS, as they do with the service.
    pub fn tls_connection_string(&self) -> &str {
        &self.tls_namespace.connection_string
    }

    /// Returns the connection string for administration clients that use TLS.
    pub fn tls_admin_connection_string(&self) -> &str {
        &self.tls_namespace.admin_connection_string
    }

    /// Returns the CA certificate that clients over TLS must trust, in PEM. It is the same for every namespace of this user,
    /// and in [`Mode::Container`] for every namespace of the test run.
    ///
    /// # Panics
    ///
    /// Panics if the emulator does not answer.
    #[track_caller]
    pub fn ca_certificate_pem(&self) -> Action<'_, String> {
        Action::new(self.connections.ask(|backend| backend.ca_certificate()))
    }

    /// Returns the file with the CA certificate that clients over TLS must trust; `None` if the emulator stores none on this
    /// machine. In mode [`Mode::Namespace`] it is the one that `SSL_CERT_FILE` names; without that variable clients trust
    /// the namespace by the system's certificates.
    pub fn ca_certificate_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// Returns the settings for clients that require a host of `*.servicebus.windows.net`: they take the name of a namespace
    /// and use only the ports 5671 and 443. `Display` explains them.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # async fn test(servicebus: &ServiceBus) -> std::io::Result<()> {
    /// let settings = servicebus.client_settings().expect("it was started here");
    /// let mut worker = std::process::Command::new("worker");
    /// worker.envs(settings.env()).env("HOSTS", settings.hosts_line()).spawn()?;
    /// println!("{settings}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Returns `None` in mode [`Mode::Namespace`]: a namespace that the harness did not start has a name and ports of its
    /// own.
    pub fn client_settings(&self) -> Option<ClientSettings> {
        if self.mode == Mode::Namespace {
            return None;
        }
        let entry: ConnectionString = self.namespace.connection_string.parse().ok()?;
        let key = Key {
            name: entry.key_name?,
            key: entry.key?,
            claims: Claims::ALL,
        };
        let Endpoints {
            amqps, http, https, ..
        } = self.endpoints;
        Some(ClientSettings::new(
            &self.namespace.name,
            &key,
            amqps,
            // Every port accepts TLS.
            https.unwrap_or(http),
            self.ca_file.clone(),
        ))
    }

    /// Returns where a client must connect while a comparison records a namespace whose host is a name. Tokens are signed
    /// for that host, so the connection strings keep it.
    pub(crate) fn custom_endpoint(&self) -> Option<String> {
        let recording = self.recording.as_ref();
        recording.and_then(Recording::custom_endpoint)
    }

    /// Returns the header for token requests: the control token if there is one, else any text.
    pub(crate) fn identity_header(&self) -> String {
        let token = self.running.control_token();
        let header = token.map(|token| token.authorization());
        let header = header
            .as_deref()
            .and_then(|header| header.strip_prefix("Bearer "));
        header.unwrap_or("servicebus-emulator").to_owned()
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.tls
    }

    /// Returns the addresses at which the namespace listens.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// Returns the URL of the emulator's control API; in mode [`Mode::Namespace`] nothing answers there.
    pub fn control_url(&self) -> String {
        let url = self.connections.backend.control_url();
        url.unwrap_or_else(|| control_url(self.endpoints.http))
    }

    /// Returns a client of a queue, without checking that it exists.
    pub fn queue(&self, name: impl Into<String>) -> QueueClient {
        let name = self.connections.backend.entity_name(&name.into());
        QueueClient::new(Arc::clone(&self.connections), name)
    }

    /// Returns a client of a topic, without checking that it exists.
    pub fn topic(&self, name: impl Into<String>) -> TopicClient {
        let name = self.connections.backend.entity_name(&name.into());
        TopicClient::new(Arc::clone(&self.connections), name)
    }

    /// Returns a client of a subscription, without checking that it exists.
    pub fn subscription(
        &self,
        topic: impl AsRef<str>,
        name: impl AsRef<str>,
    ) -> SubscriptionClient {
        let topic = self.connections.backend.entity_name(topic.as_ref());
        let path = subscription_path(&topic, name.as_ref());
        SubscriptionClient::new(Arc::clone(&self.connections), path)
    }

    /// Returns a client of the durable subscription that a client of JMS 2.0 calls `name`; in the namespace it is the
    /// subscription `name$client$D` of the topic. `client` is the client identifier, empty for a shared subscription of
    /// clients without one. A subscription that is not durable is `subscription(topic, "name$client$ND")` while it has
    /// consumers.
    pub fn jms_subscription(
        &self,
        topic: impl AsRef<str>,
        name: impl AsRef<str>,
        client: impl AsRef<str>,
    ) -> SubscriptionClient {
        let name = format!("{}${}$D", name.as_ref(), client.as_ref());
        self.subscription(topic, name)
    }

    /// Returns the namespace's clock.
    pub fn clock(&self) -> Clock {
        Clock::new(Arc::clone(&self.connections))
    }

    /// Returns the faults of the namespace, for scripting. A fault that has not fired when the namespace ends, by
    /// [`Self::stop`] or by a drop, fails the test.
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.connections))
    }

    /// Waits until the namespace is idle: nothing is due, no receiver with credit has a ready message, no message is locked,
    /// and all forwards have arrived. A message for which no receiver has credit may remain, unless a client is connecting:
    /// that client is waited for, up to two seconds from its first frame. The emulator does not know of a client that has
    /// not begun to connect; [`wait_for_receiver`](crate::SubQueueClient::wait_for_receiver) waits for one.
    ///
    /// # Panics
    ///
    /// Panics if the namespace does not become idle within 5 s, or what [`Builder::within`] sets; the panic says what is
    /// busy.
    #[track_caller]
    pub fn wait_idle(&self) -> Action<'_, ()> {
        Action::new(self.try_wait_idle(self.connections.within))
    }

    /// Waits until the namespace is idle, up to a deadline in real time.
    ///
    /// # Panics
    ///
    /// Panics if the namespace does not become idle in time; the panic says what is busy.
    #[track_caller]
    pub fn wait_idle_within(&self, within: Duration) -> Action<'_, ()> {
        Action::new(self.try_wait_idle(within))
    }

    /// Waits until the namespace is idle, up to a deadline in real time.
    pub(crate) async fn try_wait_idle(&self, within: Duration) -> Result<(), Error> {
        let wait =
            |connections: Arc<Connections>| async move { connections.wait_idle(within).await };
        self.connections.run(wait).await
    }

    /// Removes all messages, sessions and history; the entities are as they were declared.
    ///
    /// # Panics
    ///
    /// Panics if the emulator does not answer.
    #[track_caller]
    pub fn reset(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.reset()))
    }

    /// Returns the events of a queue, topic or subscription so far.
    ///
    /// # Panics
    ///
    /// Panics if the emulator does not answer, or the entity does not exist.
    #[track_caller]
    pub fn timeline(&self, client: &impl EntityClient) -> Action<'_, Timeline> {
        let client = client.as_ref().clone();
        Action::new(async move { client.try_timeline().await })
    }

    /// Ends the namespace and waits for its end. A drop ends it too, but waits only for the check of scripted faults, if
    /// there are any.
    ///
    /// # Panics
    ///
    /// Panics if a scripted fault has not fired, the leak check finds messages, or the emulator had an internal failure.
    pub async fn stop(self) {
        let Self {
            connections,
            running,
            end_checks,
            recording,
            end,
            data: _data,
            // Bound last, so dropped first if a check fails: the report, then what keeps the namespace.
            keep_on_failure: _keep_on_failure,
            report_on_failure: _report_on_failure,
            ..
        } = self;
        for check in end_checks {
            check.check().await;
        }
        drop(recording);
        drop(end);
        connections.run(|_| running.stop()).await;
    }

    /// Returns the first namespace of the emulator in this process, for an exploration.
    #[cfg(feature = "explore")]
    pub(crate) fn exploration_namespace(&self) -> Option<servicebus_emulator::ConductedNamespace> {
        self.running.exploration_namespace()
    }

    /// Returns the key name and the connection string of a party, counted from 0.
    #[cfg(feature = "explore")]
    pub(crate) fn for_party(&self, party: usize) -> Option<(String, String)> {
        self.keys
            .for_party(&self.namespace.connection_string, party)
    }

    fn new(
        mode: Mode,
        background: Arc<Background>,
        started: Started,
        client_access: ClientAccess,
        declared: Vec<EntitySettings>,
        options: Options,
    ) -> Result<Self, Error> {
        let namespace = started.first_namespace()?.clone();
        let remote = started.running.remote();
        let (http, name) = (started.endpoints.http, &namespace.name);
        let liveness = started.running.liveness();
        let (is_remote, end) = (remote.is_some(), NamespaceEnd::default());
        let (backend, secure): (Arc<dyn Backend>, _) = match remote {
            Some((backend, secure)) => (backend, Some(secure)),
            None => {
                let control = Control::new(http, name, liveness.clone()).with_end(end.clone());
                let control = control.with_token(started.running.control_token());
                (Arc::new(control), None)
            }
        };
        let declared = declared.into_iter().map(|declared| EntitySettings {
            name: backend.entity_name(&declared.name),
            forwards_to: declared
                .forwards_to
                .map(|target| backend.entity_name(&target)),
            ..declared
        });
        let (address, string) = (started.endpoints.amqp, &namespace.connection_string);
        let login = Login::new(address, string, liveness, end.clone(), secure);
        let connections = Connections {
            background,
            amqp: Amqp::new(login),
            declared: declared.collect(),
            backend,
            cancelled: Cancelled::default(),
            scripted_faults: ScriptedFaults::default(),
            unfinished_restart: Mutex::default(),
            within: options.within,
            leak_check: options.leak_check,
            started_at: options.started_at,
            unchecked: Unchecked::from_environment()?,
            evidence: Mutex::default(),
        };
        let connections = Arc::new(connections);
        let (process, own) = (started.running.process(), started.running.own_emulator());
        Ok(Self {
            keep_on_failure: KeepOnFailure::new(&namespace, &connections, process)?,
            report_on_failure: ReportOnFailure::new(&namespace.name, &connections),
            mode,
            tls_namespace: match is_remote {
                true => client_access.namespace.clone(),
                false => tls_namespace(&client_access.namespace, client_access.endpoints),
            },
            endpoints: client_access.endpoints,
            // In a namespace that runs elsewhere every client uses TLS.
            tls: options.tls || is_remote,
            ca_file: started.ca_file,
            keys: options.keys,
            namespace: client_access.namespace,
            recording: client_access.recording,
            end: EndOnDrop(end),
            end_checks: EndCheckKind::ALL
                .map(|kind| EndCheck::new(kind, &connections, own.clone())),
            connections,
            running: started.running,
            _file_lock: started.file_lock,
            data: options.data,
        })
    }
}

impl fmt::Debug for ServiceBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBus")
            .field("mode", &self.mode)
            .field("is_kept", &self.keep_on_failure.is_some())
            .field("namespace", &self.namespace.name)
            .finish_non_exhaustive()
    }
}

/// The options of a namespace in any mode.
#[derive(Debug, Clone)]
struct Options {
    keys: Keys,
    tls: bool,
    leak_check: bool,
    started_at: &'static Location<'static>,
    within: Duration,
    data: Option<Data>,
}

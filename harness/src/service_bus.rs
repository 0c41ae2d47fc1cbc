//! The namespace a test holds.
//!
//! A [`ServiceBus`] is one namespace of an emulator, which it has to itself unless that is shared. It ends when it is dropped:
//! without blocking, without a panic during a panic, and with any clients still around.

mod builder;
mod restart;
mod topology;

use std::{
    fmt,
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
    catalog::{Declared, subscription_path},
    clients::{EntityClient, QueueClient, SubscriptionClient, TopicClient},
    clock::Clock,
    connections::Unchecked,
    connections::{Cancelled, Connections},
    control::{Control, control_url},
    data::Data,
    end_check::{EndCheck, Question},
    endpoints::{Endpoints, Namespace},
    error::Error,
    fault_script::Script,
    faults::Faults,
    file_lock::FileLock,
    keep::KeepOnFailure,
    keys::{Keys, secured},
    mode::Mode,
    observer::{Entrance, Recording},
    report::ReportOnFailure,
    running::{Running, Started},
};

pub use builder::Builder;
use servicebus_assertions::Timeline;

/// A Service Bus for one test.
pub struct ServiceBus {
    mode: Mode,
    endpoints: Endpoints,
    namespace: Namespace,
    /// Of the same namespace for clients that come over TLS.
    secured: Namespace,
    tls: bool,
    ca_file: Option<PathBuf>,
    keys: Keys,
    pub(crate) connections: Arc<Connections>,
    /// Dropped before the emulator ends, which they ask.
    end_checks: [EndCheck; 3],
    /// Dropped behind the checks, whose failures it tells too.
    report_on_failure: Option<ReportOnFailure>,
    /// Dropped behind the report, which is to be read while the namespace is kept and the end of the test waits.
    keep_on_failure: Option<KeepOnFailure>,
    /// Dropped while the namespace is there, which clients reach by it.
    recording: Option<Recording>,
    /// Dropped last, so that connections close before the emulator does.
    running: Box<dyn Running>,
    /// Released when the emulator has been told to end.
    _file_lock: Option<FileLock>,
    /// Behind the emulator, which writes there.
    data: Option<Data>,
}

impl ServiceBus {
    /// Starts a namespace with one queue, `queue.1`, as the official emulator has it.
    ///
    /// # Panics
    ///
    /// When it does not start; the text says why.
    #[track_caller]
    pub fn start() -> Action<'static, Self> {
        Builder::default().start()
    }

    /// Starts a namespace that is described first.
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
            true => &self.secured.connection_string,
            false => &self.namespace.connection_string,
        }
    }

    /// Returns the connection string with a key that gives these rights and no others.
    ///
    /// ```no_run
    /// # use servicebus_harness::prelude::*;
    /// # fn test(servicebus: &ServiceBus) {
    /// let reader = servicebus.connection_string_with(Claims::LISTEN);
    /// let worker = servicebus.connection_string_with(Claims::SEND | Claims::LISTEN);
    /// # }
    /// ```
    ///
    /// The right to manage comes with all others, as in the service.
    ///
    /// # Panics
    ///
    /// When there is no such key: for no right at all, or for fewer than all in mode [`Mode::Namespace`], whose keys are
    /// its owner's.
    #[track_caller]
    pub fn connection_string_with(&self, claims: Claims) -> String {
        let limited = self.keys.limited(self.connection_string(), claims);
        limited.unwrap_or_else(|| {
            panic!(
                "this namespace has no key with the rights \"{claims}\"; a namespace in mode in-process, process or container has one for Send, Listen, both, and all, one in mode namespace the key that it was given"
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
            true => &self.secured.admin_connection_string,
            false => &self.namespace.admin_connection_string,
        }
    }

    /// Returns the connection string for clients that come over TLS, as they do to the service.
    pub fn tls_connection_string(&self) -> &str {
        &self.secured.connection_string
    }

    /// Returns the connection string for administration clients that come over TLS.
    pub fn tls_admin_connection_string(&self) -> &str {
        &self.secured.admin_connection_string
    }

    /// Returns the certificate that clients over TLS must trust, in PEM; it is the same for every namespace of this user, and in
    /// [`Mode::Container`] the same for every namespace of the test run.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn ca_certificate_pem(&self) -> Action<'_, String> {
        Action::new(self.connections.ask(|backend| backend.ca_certificate()))
    }

    /// Returns the file with the certificate that clients over TLS must trust; none where the emulator keeps none on this
    /// machine. In mode [`Mode::Namespace`] it is the one that `SSL_CERT_FILE` names; without it clients trust the
    /// namespace by their system.
    pub fn ca_certificate_file(&self) -> Option<&Path> {
        self.ca_file.as_deref()
    }

    /// Returns what clients of this namespace are set to that insist on `*.servicebus.windows.net`: they take the name of a
    /// namespace and know no ports but 5671 and 443. As text it says so for people.
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
    /// Nothing in mode [`Mode::Namespace`]: a namespace that was not started here has a name and ports of its own.
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
            // Every port takes TLS.
            https.unwrap_or(http),
            self.ca_file.clone(),
        ))
    }

    /// Returns where a client must connect while a comparison records a namespace whose host is a
    /// name. Tokens are signed for that host, so that the connection strings keep it.
    pub(crate) fn custom_endpoint(&self) -> Option<String> {
        let recording = self.recording.as_ref();
        recording.and_then(Recording::custom_endpoint)
    }

    /// Returns what clients show where they ask for a token: the control token where there is one, else any text.
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

    /// Returns where the namespace listens.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// Returns the address of the emulator's control API; in mode [`Mode::Namespace`] nothing answers there.
    pub fn control_url(&self) -> String {
        let url = self.connections.backend.control_url();
        url.unwrap_or_else(|| control_url(self.endpoints.http))
    }

    /// Returns a client of a queue. Nothing is checked before it is used.
    pub fn queue(&self, name: impl Into<String>) -> QueueClient {
        let name = self.connections.backend.entity_name(&name.into());
        QueueClient::new(Arc::clone(&self.connections), name)
    }

    /// Returns a client of a topic. Nothing is checked before it is used.
    pub fn topic(&self, name: impl Into<String>) -> TopicClient {
        let name = self.connections.backend.entity_name(&name.into());
        TopicClient::new(Arc::clone(&self.connections), name)
    }

    /// Returns a client of a subscription of a topic. Nothing is checked before it is used.
    pub fn subscription(
        &self,
        topic: impl AsRef<str>,
        name: impl AsRef<str>,
    ) -> SubscriptionClient {
        let topic = self.connections.backend.entity_name(topic.as_ref());
        let path = subscription_path(&topic, name.as_ref());
        SubscriptionClient::new(Arc::clone(&self.connections), path)
    }

    /// Returns a client of the durable subscription that a client of JMS 2.0 calls `name`: in the namespace it is the
    /// subscription `name$client$D` of the topic. `client` is the client identifier, empty for a shared subscription of
    /// clients without one. One that is not durable is `subscription(topic, "name$client$ND")` for as long as it is consumed.
    pub fn jms_subscription(
        &self,
        topic: impl AsRef<str>,
        name: impl AsRef<str>,
        client: impl AsRef<str>,
    ) -> SubscriptionClient {
        let name = format!("{}${}$D", name.as_ref(), client.as_ref());
        self.subscription(topic, name)
    }

    /// Returns the clock of the namespace.
    pub fn clock(&self) -> Clock {
        Clock::new(Arc::clone(&self.connections))
    }

    /// Returns the faults of the namespace, to script what goes wrong. One that has not fired when the namespace ends, by
    /// [`Self::stop`] or by a drop, fails the test.
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.connections))
    }

    /// Waits until the namespace is idle: nothing is due, no receiver has asked for a message that is ready, no message is
    /// locked, and what is to be forwarded has arrived. A message that no receiver has asked for does not keep it from that,
    /// unless a client is connecting: that one is waited for, up to two seconds from its first frame. A client that has
    /// not begun to connect is not known here; [`wait_for_receiver`](crate::SubQueueClient::wait_for_receiver) waits for that.
    ///
    /// # Panics
    ///
    /// When it does not become idle within 5 s, or what [`Builder::within`] says; the text says what is busy.
    #[track_caller]
    pub fn wait_idle(&self) -> Action<'_, ()> {
        Action::new(self.try_wait_idle(self.connections.within))
    }

    /// Waits until the namespace is idle, up to a deadline in real time.
    ///
    /// # Panics
    ///
    /// When it does not become idle in time; the text says what is busy.
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

    /// Removes every message, session and history; the entities stay as they were declared.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn reset(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.reset()))
    }

    /// Returns what happened to a queue, topic or subscription so far.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or does not know it.
    #[track_caller]
    pub fn timeline(&self, client: &impl EntityClient) -> Action<'_, Timeline> {
        let client = client.as_ref().clone();
        Action::new(async move { client.try_timeline().await })
    }

    /// Ends the namespace and waits until it has ended; a drop ends it too and waits for nothing but word of the faults, where
    /// some were scripted.
    ///
    /// # Panics
    ///
    /// When a fault was scripted that has not fired, the leak check finds messages, or the emulator has failed inside.
    pub async fn stop(self) {
        let Self {
            connections,
            running,
            end_checks,
            recording,
            data: _data,
            // Bound last, so dropped first where a check fails.
            report_on_failure: _report_on_failure,
            ..
        } = self;
        for check in end_checks {
            check.check().await;
        }
        drop(recording);
        connections.run(|_| running.stop()).await;
    }

    /// Returns the first namespace of the emulator in this process, as an exploration conducts it.
    #[cfg(feature = "explore")]
    pub(crate) fn conducted(&self) -> Option<servicebus_emulator::ConductedNamespace> {
        self.running.conducted()
    }

    /// Returns the name of the key of a party, counted from 0, and its connection string.
    #[cfg(feature = "explore")]
    pub(crate) fn of_party(&self, party: usize) -> Option<(String, String)> {
        self.keys.of_party(&self.namespace.connection_string, party)
    }

    fn new(
        mode: Mode,
        background: Arc<Background>,
        started: Started,
        entrance: Entrance,
        declared: Vec<Declared>,
        options: Options,
    ) -> Result<Self, Error> {
        let namespace = started.first_namespace()?.clone();
        let remote = started.running.remote();
        let (http, name) = (started.endpoints.http, &namespace.name);
        let liveness = started.running.liveness();
        let is_remote = remote.is_some();
        let (backend, secure): (Arc<dyn Backend>, _) = match remote {
            Some((backend, secure)) => (backend, Some(secure)),
            None => {
                let control = Control::new(http, name, liveness.clone());
                let control = control.showing(started.running.control_token());
                (Arc::new(control), None)
            }
        };
        let declared = declared.into_iter().map(|declared| Declared {
            name: backend.entity_name(&declared.name),
            forwards_to: declared
                .forwards_to
                .map(|target| backend.entity_name(&target)),
            ..declared
        });
        let declared = declared.collect();
        let (address, string) = (started.endpoints.amqp, &namespace.connection_string);
        let login = Login::new(address, string, liveness, secure);
        let connections = Connections {
            background,
            amqp: Amqp::new(login),
            backend,
            declared,
            cancelled: Cancelled::default(),
            script: Script::default(),
            within: options.within,
            leak_check: options.leak_check,
            unchecked: Unchecked::default(),
            evidence: Mutex::default(),
        };
        let connections = Arc::new(connections);
        let process = started.running.process();
        let own = started.running.own();
        Ok(Self {
            keep_on_failure: KeepOnFailure::new(&namespace, &connections, process),
            report_on_failure: ReportOnFailure::new(&namespace.name, &connections),
            mode,
            secured: match is_remote {
                true => entrance.namespace.clone(),
                false => secured(&entrance.namespace, entrance.endpoints),
            },
            endpoints: entrance.endpoints,
            // In a namespace that runs elsewhere every client uses TLS.
            tls: options.tls || is_remote,
            ca_file: started.ca_file,
            keys: options.keys,
            namespace: entrance.namespace,
            recording: entrance.recording,
            end_checks: [Question::Faults, Question::Leaks, Question::Health]
                .map(|question| EndCheck::new(question, &connections, own.clone())),
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

/// What a test wants of its namespace, in any mode.
#[derive(Debug, Clone)]
struct Options {
    keys: Keys,
    tls: bool,
    leak_check: bool,
    within: Duration,
    data: Option<Data>,
}

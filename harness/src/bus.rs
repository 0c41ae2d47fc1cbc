//! The bus a test holds.
//!
//! A [`ServiceBus`] is one namespace of an emulator, which it has to itself unless that is shared. It ends when it is dropped:
//! without blocking, without a panic during a panic, and whatever handles are still around.

mod builder;

use std::{
    fmt,
    panic::Location,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use servicebus_emulator::{ClientSettings, auth::Key};

use crate::{
    Claims,
    amqp::{Amqp, Login},
    background::Background,
    catalog::Catalog,
    clock::Clock,
    connection_string::ConnectionString,
    control::{Control, ControlError},
    doors::{Cancelled, Doors},
    error::StartError,
    faults::{Faults, Script, Verdict},
    health::HealthCheck,
    keep::Keeper,
    keys::Keys,
    kind::subscription_path,
    leaks::LeakCheck,
    mailbox::{Mailbox, QueueHandle, SubscriptionHandle, TopicHandle},
    mode::Mode,
    recorder::{Entrance, Recorder},
    remote::RemoteRun,
    running::{Endpoints, Namespace, Running, Started},
    secured::Secured,
    settled::{self, SettledError},
    timeline::Timeline,
};

pub use builder::Builder;

/// How long [`ServiceBus::settled`] waits, in real time.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// A Service Bus for one test.
pub struct ServiceBus {
    /// Dropped first, because it waits where somebody wants to look into the bus.
    keeper: Option<Keeper>,
    mode: Mode,
    endpoints: Endpoints,
    namespace: Namespace,
    /// Of the same namespace for clients that come over TLS.
    secured: Secured,
    use_tls: bool,
    ca_file: Option<PathBuf>,
    keys: Keys,
    pub(crate) doors: Arc<Doors>,
    /// Dropped before the emulator ends, because it asks that.
    verdict: Verdict,
    /// The same, because it looks into the queues.
    leaks: LeakCheck,
    /// The same, because it asks whether it is well.
    health: HealthCheck,
    /// Dropped while the bus is there, which clients reach by it.
    recorder: Option<Recorder>,
    /// Dropped last, so that connections close before the emulator does.
    running: Running,
}

impl ServiceBus {
    /// Starts a bus with one queue, `queue.1`, as the official emulator has it.
    ///
    /// # Panics
    ///
    /// When it does not start; the text says why. [`Builder::start`] returns it instead.
    #[track_caller]
    pub fn start() -> impl Future<Output = Self> + Send {
        Builder::default().start_or_panic(Location::caller())
    }

    /// Starts a bus that is described first.
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
        match self.use_tls {
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
                "this bus has no key with the rights \"{claims}\"; a bus in mode in-process, process or container has one for Send, Listen, both, and all, one in mode namespace the key that it was given"
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
        match self.use_tls {
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

    /// Returns the certificate that clients over TLS must trust, in PEM; it is the same for every bus of this user, and in
    /// [`Mode::Container`] the same for every bus of the test run.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn ca_certificate_pem(&self) -> impl Future<Output = String> + Send {
        or_panic(Location::caller(), self.try_ca_certificate_pem())
    }

    /// Returns the certificate that clients over TLS must trust, or says why not.
    pub async fn try_ca_certificate_pem(&self) -> Result<String, ControlError> {
        let fetch = |doors: Arc<Doors>| async move { doors.control.ca_certificate().await };
        self.doors.run(fetch).await
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
        let entry = ConnectionString::parse(&self.namespace.connection_string);
        let key = Key {
            name: entry.key_name.to_owned(),
            key: entry.key.to_owned(),
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

    /// Returns where a client must connect while a [`comparison`](crate::comparison) records what is said in a namespace
    /// whose host is a name: SDKs call it the custom endpoint. Tokens are signed for that host, so that the connection
    /// strings keep it. Nothing in every other case, where the connection strings are all that a client needs.
    pub fn custom_endpoint(&self) -> Option<String> {
        let recorder = self.recorder.as_ref();
        recorder.and_then(Recorder::custom_endpoint)
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.use_tls
    }

    /// Returns where the bus listens.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// Returns the address of the emulator's control API; in mode [`Mode::Namespace`] nobody answers there.
    pub fn control_url(&self) -> String {
        self.doors.control.url()
    }

    /// Returns a handle to a queue. Nothing is checked before it is used.
    pub fn queue(&self, name: impl Into<String>) -> QueueHandle {
        QueueHandle::new(Arc::clone(&self.doors), name.into())
    }

    /// Returns a handle to a topic. Nothing is checked before it is used.
    pub fn topic(&self, name: impl Into<String>) -> TopicHandle {
        TopicHandle::new(Arc::clone(&self.doors), name.into())
    }

    /// Returns a handle to a subscription of a topic. Nothing is checked before it is used.
    pub fn subscription(
        &self,
        topic: impl AsRef<str>,
        name: impl AsRef<str>,
    ) -> SubscriptionHandle {
        let path = subscription_path(topic.as_ref(), name.as_ref());
        SubscriptionHandle::new(Arc::clone(&self.doors), path)
    }

    /// Returns the clock of the namespace.
    pub fn clock(&self) -> Clock {
        Clock::new(Arc::clone(&self.doors))
    }

    /// Returns the faults of the bus, to script what goes wrong. One that has not fired when the bus ends, by
    /// [`Self::stop`] or by a drop, fails the test.
    pub fn faults(&self) -> Faults {
        Faults::new(Arc::clone(&self.doors))
    }

    /// Waits until the bus is at rest: nothing due, nothing to deliver, no message locked.
    ///
    /// # Panics
    ///
    /// When it does not come to rest within 5 s; the text says what is not at rest.
    #[track_caller]
    pub fn settled(&self) -> impl Future<Output = ()> + Send {
        let settled = self.try_settled(SETTLED_WITHIN);
        or_panic(Location::caller(), settled)
    }

    /// Waits for rest up to a deadline in real time.
    pub async fn try_settled(&self, within: Duration) -> Result<(), SettledError> {
        let settle = |doors: Arc<Doors>| async move { settled::wait(&doors, within).await };
        self.doors.run(settle).await
    }

    /// Removes every message, session and history; the entities stay as they were declared.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn reset(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_reset())
    }

    /// Removes every message, session and history, or says why not.
    pub async fn try_reset(&self) -> Result<(), ControlError> {
        let reset = |doors: Arc<Doors>| async move {
            let nothing = serde_json::json!({});
            doors.control.order("reset", &nothing, Duration::ZERO).await
        };
        self.doors.run(reset).await
    }

    /// Returns what happened to a queue, topic or subscription so far.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or does not know it.
    #[track_caller]
    pub fn timeline(&self, mailbox: &impl AsRef<Mailbox>) -> impl Future<Output = Timeline> + Send {
        let mailbox = mailbox.as_ref().clone();
        or_panic(
            Location::caller(),
            async move { mailbox.try_timeline().await },
        )
    }

    /// Ends the bus and waits until it has ended; a drop ends it too and waits for nothing but word of the faults, where
    /// some were scripted.
    ///
    /// # Panics
    ///
    /// When a fault was scripted that has not fired, the leak check finds messages, or the emulator has failed inside.
    pub async fn stop(self) {
        let Self {
            doors,
            running,
            verdict,
            leaks,
            health,
            recorder,
            ..
        } = self;
        verdict.pronounce().await;
        leaks.pronounce().await;
        health.pronounce().await;
        drop(recorder);
        doors.run(|_| running.stop()).await;
    }

    fn new(
        mode: Mode,
        background: Arc<Background>,
        started: Started,
        entrance: Entrance,
        declared: Catalog,
        wishes: Wishes,
    ) -> Result<Self, StartError> {
        let namespaces = started.namespaces.into_iter().next();
        let namespace = namespaces.ok_or(StartError::NoNamespace)?;
        let remote = started.running.remote();
        let (http, name) = (started.endpoints.http, &namespace.name);
        let liveness = started.running.liveness();
        let control = match remote {
            Some(remote) => Control::of_site(http, name, remote.site()),
            None => {
                Control::new(http, name, liveness.clone()).showing(started.running.control_token())
            }
        };
        let entry = ConnectionString::parse(&namespace.connection_string);
        let login = Login {
            address: started.endpoints.amqp,
            hostname: entry.host.to_owned(),
            key_name: entry.key_name.to_owned(),
            key: entry.key.to_owned().into(),
            liveness,
            secure: remote.map(RemoteRun::secure),
        };
        let doors = Doors {
            background,
            amqp: Amqp::new(login),
            control,
            declared,
            cancelled: Cancelled::default(),
            script: Script::default(),
        };
        let doors = Arc::new(doors);
        let emulator = Some(&doors.control).filter(|control| control.is_emulator());
        let control_url = emulator.map(Control::url);
        Ok(Self {
            keeper: Keeper::new(&namespace, control_url, started.running.process()),
            mode,
            secured: match remote {
                Some(_) => Secured::already(&entrance.namespace),
                None => Secured::new(&entrance.namespace, entrance.endpoints),
            },
            endpoints: entrance.endpoints,
            // In a namespace that runs elsewhere nobody comes without TLS.
            use_tls: wishes.use_tls || remote.is_some(),
            ca_file: started.ca_file,
            keys: wishes.keys,
            namespace: entrance.namespace,
            recorder: entrance.recorder,
            verdict: Verdict::new(Arc::clone(&doors)),
            leaks: LeakCheck::new(&doors, wishes.leak_check),
            health: HealthCheck::new(&doors),
            doors,
            running: started.running,
        })
    }
}

impl fmt::Debug for ServiceBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBus")
            .field("mode", &self.mode)
            .field("is_kept", &self.keeper.is_some())
            .field("namespace", &self.namespace.name)
            .finish_non_exhaustive()
    }
}

/// What a test wants of its bus, whatever mode it runs in.
#[derive(Debug, Clone)]
struct Wishes {
    keys: Keys,
    use_tls: bool,
    leak_check: bool,
}

/// Turns an error into the panic of a test, which names the line of the test.
pub(crate) async fn or_panic<T, E: fmt::Display>(
    at: &Location<'_>,
    operation: impl Future<Output = Result<T, E>>,
) -> T {
    match operation.await {
        Ok(value) => value,
        Err(error) => panic!("{error}\n  at {at}"),
    }
}

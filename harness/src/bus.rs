//! The bus a test holds.
//!
//! A [`ServiceBus`] is one emulator with one namespace and an address of its own. It ends when it is dropped:
//! without blocking, without a panic during a panic, and whatever handles are still around.

mod builder;

use std::{fmt, panic::Location, sync::Arc, time::Duration};

use crate::{
    amqp::{Amqp, Login},
    background::Background,
    catalog::Catalog,
    clock::Clock,
    connection_string::ConnectionString,
    control::{Control, ControlError},
    doors::{Cancelled, Doors},
    error::StartError,
    mailbox::{Mailbox, QueueHandle},
    mode::Mode,
    process::Liveness,
    running::{Endpoints, Namespace, Running, Started},
    settled::{self, SettledError},
    timeline::Timeline,
};

pub use builder::Builder;

/// How long [`ServiceBus::settled`] waits, in real time.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

/// A Service Bus for one test.
pub struct ServiceBus {
    mode: Mode,
    endpoints: Endpoints,
    namespace: Namespace,
    doors: Arc<Doors>,
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
        &self.namespace.connection_string
    }

    /// Returns the connection string for administration clients.
    pub fn admin_connection_string(&self) -> &str {
        &self.namespace.admin_connection_string
    }

    /// Returns where the bus listens.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints
    }

    /// Returns the address of the emulator's control API.
    pub fn control_url(&self) -> String {
        self.doors.control.url()
    }

    /// Returns a handle to a queue. Nothing is checked before it is used.
    pub fn queue(&self, name: impl Into<String>) -> QueueHandle {
        QueueHandle::new(Arc::clone(&self.doors), name.into())
    }

    /// Returns the clock of the namespace.
    pub fn clock(&self) -> Clock {
        Clock::new(Arc::clone(&self.doors))
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

    /// Removes every message, session and history; the queues stay as they were declared.
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

    /// Returns what happened to a queue so far.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer, or does not know the queue.
    #[track_caller]
    pub fn timeline(&self, mailbox: &impl AsRef<Mailbox>) -> impl Future<Output = Timeline> + Send {
        let mailbox = mailbox.as_ref().clone();
        or_panic(
            Location::caller(),
            async move { mailbox.try_timeline().await },
        )
    }

    /// Ends the bus and waits until it has ended; a drop ends it too and waits for nothing.
    pub async fn stop(self) {
        let Self { doors, running, .. } = self;
        doors.run(|_| running.stop()).await;
    }

    fn new(
        mode: Mode,
        background: Arc<Background>,
        started: Started,
        declared: Catalog,
    ) -> Result<Self, StartError> {
        let namespaces = started.namespaces.into_iter().next();
        let namespace = namespaces.ok_or(StartError::NoNamespace)?;
        let liveness = match &started.running {
            Running::InProcess(_) => Liveness::default(),
            Running::Process(child) => child.liveness(),
        };
        let entry = ConnectionString::parse(&namespace.connection_string);
        let login = Login {
            address: started.endpoints.amqp,
            hostname: entry.host.to_owned(),
            key_name: entry.key_name.to_owned(),
            key: entry.key.to_owned(),
            liveness: liveness.clone(),
        };
        let doors = Doors {
            background,
            amqp: Amqp::new(login),
            control: Control::new(started.endpoints.http, &namespace.name, liveness),
            declared,
            cancelled: Cancelled::default(),
        };
        Ok(Self {
            mode,
            endpoints: started.endpoints,
            namespace,
            doors: Arc::new(doors),
            running: started.running,
        })
    }
}

impl fmt::Debug for ServiceBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceBus")
            .field("mode", &self.mode)
            .field("connection_string", &self.connection_string())
            .finish_non_exhaustive()
    }
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

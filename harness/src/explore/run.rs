//! One run, as the test sees it.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    ops::Deref,
    rc::Rc,
    time::Duration,
};

use servicebus_control_api::Operation;
use servicebus_emulator::ConductedNamespace;
use servicebus_explore::Failure;
use tokio::{
    sync::Notify,
    task::{JoinHandle, spawn_local},
    time::{Instant, sleep},
};

use super::{
    Passes,
    hang::{LONGEST, Wakes},
};
use crate::ServiceBus;

/// Keys that a namespace has for parties.
pub(crate) const PARTIES: usize = 16;
/// A namespace rests when no client has done anything for so long.
const REST: Duration = Duration::from_secs(300);
/// Pauses before a party is started again.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// How often a party may end in a row, each time soon, before the run fails.
const ATTEMPTS: u32 = 20;
/// One that has worked for so long has not ended soon.
const LASTING: Duration = Duration::from_secs(120);

/// A run of an exploration: a namespace of its own, which it derefs to, and the parties to whose operations faults are applied.
pub struct Run {
    pub(crate) servicebus: ServiceBus,
    pub(crate) namespace: ConductedNamespace,
    pub(crate) parties: RefCell<BTreeMap<String, PartyKey>>,
    pub(crate) failures: Rc<RefCell<Vec<Failure>>>,
    /// The party that crashes next.
    pub(crate) crashed: Rc<Crash>,
    pub(crate) wakes: Wakes,
    /// How often parties were started.
    starts: Rc<Cell<u64>>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
}

/// How a party is known to the namespace.
#[derive(Debug, Clone)]
pub(crate) struct PartyKey {
    pub(crate) key_name: String,
    connection_string: String,
}

/// Ends the process of a party.
#[derive(Debug, Default)]
pub(crate) struct Crash {
    pub(crate) notify: Notify,
    pub(crate) party: RefCell<Option<String>>,
}

/// What code under test connects with: the namespace of the run by a key of its own.
#[derive(Clone)]
pub struct Party {
    name: String,
    connection_string: String,
}

impl Run {
    pub(crate) fn new(servicebus: ServiceBus, namespace: ConductedNamespace) -> Self {
        Self {
            servicebus,
            namespace,
            parties: RefCell::default(),
            failures: Rc::default(),
            crashed: Rc::default(),
            wakes: Wakes::default(),
            starts: Rc::default(),
            tasks: RefCell::default(),
        }
    }

    /// Starts code under test, as a process that is started again a second after it has ended, in whatever way; then after two
    /// seconds, and so on up to a minute. A panic in it fails the run.
    ///
    /// Faults are applied to its operations: those of clients that connect with [`Party::connection_string`].
    ///
    /// # Panics
    ///
    /// When the run has more than 16 parties.
    #[track_caller]
    pub fn party<F, R>(&self, name: &str, code: F)
    where
        F: AsyncFn(Party) -> R + 'static,
        R: Passes + 'static,
    {
        self.start(name, code, false);
    }

    /// Starts code under test that is started again until it succeeds.
    ///
    /// # Panics
    ///
    /// When the run has more than 16 parties.
    #[track_caller]
    pub fn job<F, R>(&self, name: &str, code: F)
    where
        F: AsyncFn(Party) -> R + 'static,
        R: Passes + 'static,
    {
        self.start(name, code, true);
    }

    /// Waits until nothing more will happen: nothing is locked or on its way, and no client has done anything for five minutes
    /// of virtual time. A message that no receiver asks for does not keep the namespace from that.
    ///
    /// # Panics
    ///
    /// When that is not so within two hours of virtual time.
    pub async fn wait_idle(&self) {
        let started = Instant::now();
        let (mut last, mut since) = ((0, 0), started);
        loop {
            let now = (self.last_operation(last.0), self.starts.get());
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let quiet = since.elapsed();
            if quiet >= REST && self.servicebus.try_wait_idle(Duration::ZERO).await.is_ok() {
                return;
            }
            assert!(
                started.elapsed() < LONGEST,
                "the run does not come to rest: within 2 h of virtual time there were never 5 min in which no client did anything and nothing was locked; end what polls or is attached anew all the time, or wait for something else than `wait_idle`"
            );
            sleep(REST.saturating_sub(quiet).max(Duration::from_secs(1))).await;
        }
    }

    /// Lets time stand while a future uses what is outside of the run: a database, a file, another service.
    pub async fn outside<T>(&self, future: impl Future<Output = T>) -> T {
        let (over, wait) = std::sync::mpsc::channel::<()>();
        // Tokio moves paused time never while a blocking task runs.
        let brake = tokio::task::spawn_blocking(move || wait.recv());
        let value = future.await;
        drop(over);
        // It returns an error, which is the news that the other end is dropped.
        let _ = brake.await;
        value
    }

    /// The number of the last operation of a client behind this one, tokens aside.
    pub(crate) fn last_operation(&self, after: u64) -> u64 {
        let news = self.namespace.operations(after, usize::MAX).operations;
        let mut news = news.iter().rev();
        let last = news.find(|operation| operation.operation != Operation::Token);
        last.map_or(after, |last| last.number)
    }

    fn start<F, R>(&self, name: &str, code: F, once: bool)
    where
        F: AsyncFn(Party) -> R + 'static,
        R: Passes + 'static,
    {
        let party = self.key(name);
        let supervisor = Supervisor {
            failures: Rc::clone(&self.failures),
            crashed: Rc::clone(&self.crashed),
            wakes: self.wakes.clone(),
            starts: Rc::clone(&self.starts),
        };
        let supervised = supervise(party, Rc::new(code), once, supervisor);
        self.tasks.borrow_mut().push(spawn_local(supervised));
    }

    fn key(&self, name: &str) -> Party {
        let mut parties = self.parties.borrow_mut();
        let next = parties.len();
        let key = parties.entry(name.to_owned()).or_insert_with(|| {
            let (key_name, connection_string) =
                self.servicebus.of_party(next).unwrap_or_else(|| {
                    panic!("the party \"{name}\" is one too many: a run has at most {PARTIES}")
                });
            PartyKey {
                key_name,
                connection_string,
            }
        });
        Party {
            name: name.to_owned(),
            connection_string: key.connection_string.clone(),
        }
    }

    /// Ends all parties.
    pub(crate) fn end_parties(&self) {
        for task in self.tasks.borrow_mut().drain(..) {
            task.abort();
        }
    }
}

/// What the supervision of a party shares with its run.
struct Supervisor {
    failures: Rc<RefCell<Vec<Failure>>>,
    crashed: Rc<Crash>,
    wakes: Wakes,
    starts: Rc<Cell<u64>>,
}

/// Runs the code of a party again and again.
async fn supervise<F, R>(party: Party, code: Rc<F>, once: bool, supervisor: Supervisor)
where
    F: AsyncFn(Party) -> R + 'static,
    R: Passes + 'static,
{
    let (mut pause, mut ended_soon) = (PAUSES[0], 0);
    loop {
        let started = Instant::now();
        supervisor.starts.set(supervisor.starts.get() + 1);
        let (attempt, of_attempt) = (Rc::clone(&code), party.clone());
        let wakes = supervisor.wakes.clone();
        let mut task = AbortOnDrop(spawn_local(async move {
            wakes.count(attempt(of_attempt)).await.check()
        }));
        let ended = tokio::select! {
            biased;
            () = crash_of(&party.name, &supervisor.crashed) => None,
            ended = &mut task.0 => Some(ended),
        };
        drop(task);
        let reason = match ended {
            None => "it crashed".to_owned(),
            Some(Ok(Ok(()))) if once => return,
            Some(Ok(Ok(()))) => "it returned".to_owned(),
            Some(Ok(Err(error))) => error,
            // What it said has been collected.
            Some(Err(_panic)) => return,
        };
        if started.elapsed() >= LASTING {
            (pause, ended_soon) = (PAUSES[0], 0);
        }
        ended_soon += 1;
        if ended_soon >= ATTEMPTS {
            let name = &party.name;
            let message = format!(
                "the party \"{name}\" ended {ATTEMPTS} times in a row; the last time: {reason}"
            );
            let failure = Failure {
                message,
                location: None,
            };
            return supervisor.failures.borrow_mut().push(failure);
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES[1]);
    }
}

async fn crash_of(name: &str, crashed: &Crash) {
    loop {
        crashed.notify.notified().await;
        let is_own = crashed.party.borrow().as_deref() == Some(name);
        if is_own {
            crashed.party.borrow_mut().take();
            return;
        }
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Party {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the connection string for its clients, in which its key is.
    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }

    /// Connects an `azservicebus` client (feature `azservicebus`).
    ///
    /// # Errors
    ///
    /// When it does not connect.
    #[cfg(feature = "azservicebus")]
    pub async fn client(
        &self,
    ) -> Result<azservicebus::ServiceBusClient<azservicebus::core::BasicRetryPolicy>, crate::Error>
    {
        crate::sdk_client::connect(&self.connection_string, Default::default()).await
    }
}

impl Deref for Run {
    type Target = ServiceBus;

    fn deref(&self) -> &ServiceBus {
        &self.servicebus
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("servicebus", &self.servicebus)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Party")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

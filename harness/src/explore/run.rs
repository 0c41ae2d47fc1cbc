//! One run, as the test uses it.

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
    hang::{MAX_DURATION, WakeCounter},
};
use crate::ServiceBus;

/// The number of keys that a namespace has for parties.
pub(crate) const PARTIES: usize = 16;
/// A namespace is idle when no client has done anything for this long.
const IDLE_TIME: Duration = Duration::from_secs(300);
/// The first and the longest pause before a party is restarted.
const RESTART_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// How often in a row a party may end soon before the run fails.
const ATTEMPTS: u32 = 20;
/// A party that ran for this long did not end soon.
const STABLE_AFTER: Duration = Duration::from_secs(120);

/// A run of an exploration: a namespace of its own, to which it derefs, and parties, whose operations have faults.
pub struct Run {
    pub(crate) servicebus: ServiceBus,
    pub(crate) namespace: ConductedNamespace,
    pub(crate) parties: RefCell<BTreeMap<String, PartyKey>>,
    pub(crate) supervision: Rc<Supervision>,
    tasks: RefCell<Vec<JoinHandle<()>>>,
}

/// What the supervision of a party needs from its run.
#[derive(Debug, Default)]
pub(crate) struct Supervision {
    pub(crate) failures: RefCell<Vec<Failure>>,
    pub(crate) crashed: CrashSignal,
    pub(crate) wakes: WakeCounter,
    /// How often parties were started.
    starts: Cell<u64>,
}

/// The key that identifies a party to the namespace.
#[derive(Debug, Clone)]
pub(crate) struct PartyKey {
    pub(crate) key_name: String,
    connection_string: String,
}

/// Ends parties as if their processes crashed.
#[derive(Debug, Default)]
pub(crate) struct CrashSignal {
    notify: Notify,
    /// How often each party crashed: several may crash before any of them is woken.
    crashes: RefCell<BTreeMap<String, u64>>,
}

/// The access of code under test to the run's namespace, with a key of its own.
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
            supervision: Rc::default(),
            tasks: RefCell::default(),
        }
    }

    /// Starts code under test, and restarts it whenever it ends, as a supervised process: after one second, then two, and so
    /// on up to a minute. A panic in it fails the run.
    ///
    /// Faults apply to the operations of clients that connect with [`Party::connection_string`].
    ///
    /// # Panics
    ///
    /// Panics if the run has more than 16 parties.
    #[track_caller]
    pub fn party<F, R>(&self, name: &str, code: F)
    where
        F: AsyncFn(Party) -> R + 'static,
        R: Passes + 'static,
    {
        self.start(name, code, false);
    }

    /// Starts code under test, and restarts it until it succeeds.
    ///
    /// # Panics
    ///
    /// Panics if the run has more than 16 parties.
    #[track_caller]
    pub fn job<F, R>(&self, name: &str, code: F)
    where
        F: AsyncFn(Party) -> R + 'static,
        R: Passes + 'static,
    {
        self.start(name, code, true);
    }

    /// Waits until nothing more will happen: nothing is locked or in flight, and no client has done anything for five
    /// minutes of virtual time. A message that no receiver requests may remain.
    ///
    /// # Panics
    ///
    /// Panics if that takes more than two hours of virtual time.
    pub async fn wait_idle(&self) {
        let started = Instant::now();
        let (mut last, mut since) = ((0, 0), started);
        loop {
            let now = (self.last_operation(last.0), self.supervision.starts.get());
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let quiet = since.elapsed();
            if quiet >= IDLE_TIME && self.servicebus.try_wait_idle(Duration::ZERO).await.is_ok() {
                return;
            }
            assert!(
                started.elapsed() < MAX_DURATION,
                "the run does not become idle: within 2 h of virtual time there were never 5 min in which no client was active and nothing was locked; end code that polls or attaches again all the time, or wait for something else than `wait_idle`"
            );
            sleep(IDLE_TIME.saturating_sub(quiet).max(Duration::from_secs(1))).await;
        }
    }

    /// Stops virtual time while a future uses a resource outside of the run: a database, a file, another service.
    pub async fn outside<T>(&self, future: impl Future<Output = T>) -> T {
        let (done, wait) = std::sync::mpsc::channel::<()>();
        // Tokio does not advance paused time while a blocking task runs.
        let blocking_task = tokio::task::spawn_blocking(move || wait.recv());
        let value = future.await;
        drop(done);
        // An error here, because the other end was dropped.
        let _ = blocking_task.await;
        value
    }

    /// Returns the number of the last client operation after this one, tokens aside.
    pub(crate) fn last_operation(&self, after: u64) -> u64 {
        let operations = self.namespace.operations(after, usize::MAX).operations;
        let mut operations = operations.iter().rev();
        let last = operations.find(|operation| operation.operation != Operation::Token);
        last.map_or(after, |last| last.number)
    }

    fn start<F, R>(&self, name: &str, code: F, once: bool)
    where
        F: AsyncFn(Party) -> R + 'static,
        R: Passes + 'static,
    {
        let party = self.key(name);
        let supervision = Rc::clone(&self.supervision);
        let supervised = supervise(party, Rc::new(code), once, supervision);
        self.tasks.borrow_mut().push(spawn_local(supervised));
    }

    fn key(&self, name: &str) -> Party {
        let mut parties = self.parties.borrow_mut();
        let next = parties.len();
        let key = parties.entry(name.to_owned()).or_insert_with(|| {
            let (key_name, connection_string) =
                self.servicebus.for_party(next).unwrap_or_else(|| {
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

    pub(crate) fn end_parties(&self) {
        for task in self.tasks.borrow_mut().drain(..) {
            task.abort();
        }
    }
}

/// Runs the code of a party repeatedly.
async fn supervise<F, R>(party: Party, code: Rc<F>, once: bool, run: Rc<Supervision>)
where
    F: AsyncFn(Party) -> R + 'static,
    R: Passes + 'static,
{
    let (mut pause, mut ended_soon) = (RESTART_DELAYS[0], 0);
    loop {
        let started = Instant::now();
        run.starts.set(run.starts.get() + 1);
        let crashes = run.crashed.count(&party.name);
        let (attempt, of_attempt) = (Rc::clone(&code), party.clone());
        let wakes = run.wakes.clone();
        let mut task = AbortOnDrop(spawn_local(async move {
            wakes.count(attempt(of_attempt)).await.check()
        }));
        let ended = tokio::select! {
            biased;
            () = run.crashed.crashed_after(crashes, &party.name) => None,
            ended = &mut task.0 => Some(ended),
        };
        drop(task);
        let reason = match ended {
            None => "it crashed".to_owned(),
            Some(Ok(Ok(()))) if once => return,
            Some(Ok(Ok(()))) => "it returned".to_owned(),
            Some(Ok(Err(error))) => error,
            // The panic's message has been collected.
            Some(Err(_panic)) => return,
        };
        if started.elapsed() >= STABLE_AFTER {
            (pause, ended_soon) = (RESTART_DELAYS[0], 0);
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
            return run.failures.borrow_mut().push(failure);
        }
        sleep(pause).await;
        pause = (pause * 2).min(RESTART_DELAYS[1]);
    }
}

impl CrashSignal {
    /// Ends a party.
    pub(crate) fn crash(&self, party: &str) {
        *self
            .crashes
            .borrow_mut()
            .entry(party.to_owned())
            .or_default() += 1;
        self.notify.notify_waiters();
    }

    fn count(&self, party: &str) -> u64 {
        self.crashes.borrow().get(party).copied().unwrap_or(0)
    }

    /// Waits until the party has crashed more often than this.
    async fn crashed_after(&self, crashes: u64, party: &str) {
        loop {
            let notified = self.notify.notified();
            if self.count(party) > crashes {
                return;
            }
            notified.await;
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

    /// Returns the connection string for its clients, with the party's key.
    pub fn connection_string(&self) -> &str {
        &self.connection_string
    }

    /// Connects an `azservicebus` client (feature `azservicebus`).
    ///
    /// # Errors
    ///
    /// Returns an error if the client cannot connect.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parties_that_crash_at_once_all_end() {
        let signal = CrashSignal::default();
        let ended =
            async { tokio::join!(signal.crashed_after(0, "a"), signal.crashed_after(0, "b")) };
        let crashed = async {
            signal.crash("a");
            signal.crash("b");
        };
        let (ended, ()) = tokio::join!(
            tokio::time::timeout(Duration::from_secs(60), ended),
            crashed
        );
        assert!(ended.is_ok());
        let other = signal.crashed_after(signal.count("a"), "a");
        let other = tokio::time::timeout(Duration::from_millis(10), other);
        assert!(other.await.is_err());
    }
}

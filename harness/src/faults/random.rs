//! Random faults, which fire at the same operations again with the same seed.

use std::sync::Arc;

use servicebus_assertions::misspelt;
use servicebus_control_api::{self as api, Filter, Pick, Random};

use super::{Effect, Operation, builder::add};
use crate::{
    action::Action,
    connections::Connections,
    error::{Error, ErrorKind},
};

/// The default probability of a fault at an operation.
const PROBABILITY: f64 = 0.1;

/// Random faults, as a client must expect them of a remote service.
#[derive(Debug, Clone)]
#[must_use = "random faults do nothing before they are started"]
pub struct RandomFaults {
    connections: Arc<Connections>,
    seed: u64,
    entity: Option<String>,
    client: Option<String>,
    rates: Vec<Rate>,
}

/// The faults at one kind of operation.
#[derive(Debug, Clone)]
struct Rate {
    operation: Operation,
    probability: f64,
    effects: Vec<Effect>,
    /// The method of [`RandomFaults`] that sets it.
    method: &'static str,
}

impl RandomFaults {
    pub(crate) fn new(connections: Arc<Connections>, seed: u64) -> Self {
        Self {
            connections,
            seed,
            entity: None,
            client: None,
            rates: Vec::new(),
        }
    }

    /// Selects operations that concern this queue, topic or subscription, which must exist at the start.
    pub fn entity(mut self, path: impl Into<String>) -> Self {
        self.entity = Some(path.into());
        self
    }

    /// Selects operations of the client with this container id.
    pub fn client(mut self, name: impl Into<String>) -> Self {
        self.client = Some(name.into());
        self
    }

    /// Fires at operations of this kind with a probability above 0 and up to 1, with effects that a correct client survives.
    /// Without any rate, faults fire at sends, deliveries and settlements with the probability 0.1 each.
    pub fn rate(mut self, operation: Operation, probability: f64) -> Self {
        self.rates.push(Rate::recoverable(operation, probability));
        self
    }

    /// Fires at operations of this kind with a probability, with one of these effects.
    pub fn rate_of(
        mut self,
        operation: Operation,
        probability: f64,
        effects: impl IntoIterator<Item = Effect>,
    ) -> Self {
        self.rates.push(Rate {
            operation,
            probability,
            effects: effects.into_iter().collect(),
            method: "rate_of",
        });
        self
    }

    /// Starts the random faults. Until the namespace ends, a panic of the test prints the seed.
    #[track_caller]
    pub fn start(self) -> Action<'static, ()> {
        Action::new(async move {
            let rates = match self.rates.is_empty() {
                true => default_rates(),
                false => self.rates.clone(),
            };
            self.check_entity().await?;
            for (started, rate) in rates.into_iter().enumerate() {
                let Rate {
                    operation,
                    probability,
                    method,
                    ..
                } = rate;
                self.start_rate(rate).await.map_err(|error| {
                    let call = format!("{method}(Operation::{operation:?}, {probability})");
                    Error::during(format!("start the random faults {call}"), error)
                })?;
                // Once, and not before any fault may fire.
                if started == 0 {
                    self.connections.scripted_faults.record_seed(self.seed);
                }
            }
            Ok(())
        })
    }

    /// Refuses an entity that does not exist: its faults would never fire, and no random fault has to.
    async fn check_entity(&self) -> Result<(), Error> {
        let Some(entity) = &self.entity else {
            return Ok(());
        };
        let listing = |connections: Arc<Connections>| async move { connections.catalog().await };
        let catalog = self.connections.run(listing).await;
        let names = || catalog.names().map(|(_, name)| name);
        let (owner, _) = entity.split_once("/$").unwrap_or((entity, ""));
        if names().any(|name| name.eq_ignore_ascii_case(owner)) {
            return Ok(());
        }
        let suggested = misspelt(entity, names());
        let suggested =
            suggested.map_or_else(String::new, |name| format!("; did you mean {name:?}?"));
        let sentence = format!(
            "cannot start random faults: there is no queue, topic or subscription {owner:?}{suggested}"
        );
        Err(Error::new(
            ErrorKind::EntityNotFound,
            entity.clone(),
            sentence,
        ))
    }

    async fn start_rate(&self, rate: Rate) -> Result<(), Error> {
        let Rate {
            operation,
            probability,
            effects,
            ..
        } = rate;
        let check = |effect: &Effect| {
            effect.check_at(operation)?;
            effect.checked()
        };
        let effects: Result<_, _> = effects.iter().map(check).collect();
        let fault = api::Fault {
            operation,
            filter: Filter {
                entity: self.entity.clone(),
                client: self.client.clone(),
                ..Filter::default()
            },
            pick: Pick::Random {
                random: Random {
                    seed: self.seed,
                    probability,
                },
                effects: effects?,
            },
        };
        add(&self.connections, fault).await?;
        Ok(())
    }
}

impl Rate {
    fn recoverable(operation: Operation, probability: f64) -> Self {
        Self {
            operation,
            probability,
            effects: recoverable_effects(operation),
            method: "rate",
        }
    }
}

fn default_rates() -> Vec<Rate> {
    let operations = [Operation::Send, Operation::Deliver, Operation::Settle];
    let rate = |operation| Rate::recoverable(operation, PROBABILITY);
    operations.map(rate).into()
}

/// Returns effects that occur at the service too, and from which a client recovers without losing a message.
fn recoverable_effects(operation: Operation) -> Vec<Effect> {
    let detach = || Effect::detach("amqp:link:detach-forced");
    let close = || Effect::close("amqp:connection:forced");
    match operation {
        Operation::Connect => vec![close(), Effect::drop_connection()],
        Operation::Http => vec![Effect::answer(503), Effect::drop_connection()],
        Operation::Deliver
        | Operation::Settle
        | Operation::Complete
        | Operation::Abandon
        | Operation::DeadLetter
        | Operation::Defer
        | Operation::RenewLock => vec![
            detach(),
            close(),
            Effect::drop_connection(),
            Effect::lose_lock(),
        ],
        _ => {
            vec![
                Effect::server_busy(),
                detach(),
                close(),
                Effect::drop_connection(),
            ]
        }
    }
}

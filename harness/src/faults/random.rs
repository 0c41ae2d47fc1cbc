//! Random faults, which fire at the same operations again with the same seed.

use std::sync::Arc;

use servicebus_control_api::{self as api, Filter, Pick, Random};

use super::{Effect, Operation, builder::add};
use crate::{action::Action, connections::Connections};

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
    /// The operations, each with the probability and the effects of its faults.
    rates: Vec<(Operation, f64, Vec<Effect>)>,
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

    /// Selects operations that concern this queue, topic or subscription.
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
    pub fn rate(self, operation: Operation, probability: f64) -> Self {
        let effects = recoverable_effects(operation);
        self.rate_of(operation, probability, effects)
    }

    /// Fires at operations of this kind with a probability, with one of these effects.
    pub fn rate_of(
        mut self,
        operation: Operation,
        probability: f64,
        effects: impl IntoIterator<Item = Effect>,
    ) -> Self {
        let effects = effects.into_iter().collect();
        self.rates.push((operation, probability, effects));
        self
    }

    /// Starts the random faults. Until the namespace ends, a panic of the test prints the seed.
    #[track_caller]
    pub fn start(self) -> Action<'static, ()> {
        Action::new(async move {
            let Self {
                connections,
                seed,
                entity,
                client,
                rates,
            } = self;
            let rates = match rates.is_empty() {
                true => default_rates(),
                false => rates,
            };
            connections.scripted_faults.record_seed(seed);
            for (operation, probability, effects) in rates {
                let effects: Result<_, _> = effects.iter().map(Effect::checked).collect();
                let fault = api::Fault {
                    operation,
                    filter: Filter {
                        entity: entity.clone(),
                        client: client.clone(),
                        ..Filter::default()
                    },
                    pick: Pick::Random {
                        random: Random { seed, probability },
                        effects: effects?,
                    },
                };
                add(&connections, fault).await?;
            }
            Ok(())
        })
    }
}

fn default_rates() -> Vec<(Operation, f64, Vec<Effect>)> {
    let operations = [Operation::Send, Operation::Deliver, Operation::Settle];
    let rate = |operation| (operation, PROBABILITY, recoverable_effects(operation));
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

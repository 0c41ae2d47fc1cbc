//! Clients that receive and settle in every way that there is, and some that do not.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::delivery::{Delivery, DeliveryInfo};
use fe2o3_amqp::types::definitions::{Error, ErrorCondition};
use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{Accepted, Body, Data, Message, Modified, Rejected, Released};
use fe2o3_amqp::types::primitives::{OrderedMap, SimpleValue, Symbol, Value};
use rand::RngExt;
use tokio::time::{sleep, timeout};

use crate::client::{Client, Exchange, ExchangeFailed, map, numbers, token, tokens, within};
use crate::entities::{
    ALL, DEAD_LETTERS, ENTITIES, EXPIRING, ORDERS, RED, SHORT_LOCK, TARGET, UNIQUE, WORK,
};
use crate::ledger::{Arrival, Outcome};
use crate::worker::Worker;
use crate::world::World;

pub(crate) type Received = Delivery<Body<Value>>;

/// A link that receives, as the judge knows it.
pub(crate) struct Receiving {
    world: Arc<World>,
    pub(crate) link: usize,
    pub(crate) place: usize,
    receiver: Receiver,
}

impl Receiving {
    pub(crate) async fn open(
        world: &Arc<World>,
        client: &mut Client,
        place: usize,
        is_dead_letters: bool,
    ) -> Exchange<Self> {
        let link = world
            .ledger
            .attaching(place, is_dead_letters, &client.observed);
        let mut address = ENTITIES[place].address.to_owned();
        if is_dead_letters {
            address += "/$DeadLetterQueue";
        }
        let receiver = client.receiver(&address, true).await?;
        Ok(Self::new(world, link, place, receiver))
    }

    pub(crate) fn new(world: &Arc<World>, link: usize, place: usize, receiver: Receiver) -> Self {
        Self {
            world: Arc::clone(world),
            link,
            place,
            receiver,
        }
    }

    pub(crate) fn receiver(&mut self) -> &mut Receiver {
        &mut self.receiver
    }

    pub(crate) async fn ask(&mut self, credit: u32) -> Exchange<()> {
        self.world.ledger.grant_credit(self.link, credit);
        within("flow", self.receiver.set_credit(credit)).await
    }

    /// The next message, if one comes in time.
    pub(crate) async fn next(&mut self, time: Duration) -> Exchange<Option<(Arrival, Received)>> {
        let ledger = &self.world.ledger;
        ledger.waits(self.link, true);
        let since = ledger.now();
        let received = timeout(time, self.receiver.recv::<Body<Value>>()).await;
        let Ok(received) = received else {
            ledger.nothing_came(self.link, since);
            ledger.waits(self.link, false);
            return Ok(None);
        };
        let delivery = received.map_err(|error| ExchangeFailed(format!("receive: {error:?}")))?;
        ledger.waits(self.link, false);
        let mut arrival = arrival(delivery.message())?;
        ledger.delivered(self.link, &mut arrival);
        Ok(Some((arrival, delivery)))
    }

    /// Settles over the link, of which the client hears nothing.
    pub(crate) async fn dispose(
        &self,
        arrival: &Arrival,
        delivery: &Received,
        outcome: &Outcome,
    ) -> Exchange<()> {
        self.world
            .ledger
            .settling(self.place, arrival, outcome.clone());
        let info = DeliveryInfo::from(delivery);
        let receiver = &self.receiver;
        let modified = |undeliverable_here| Modified {
            delivery_failed: Some(true),
            undeliverable_here: Some(undeliverable_here),
            message_annotations: None,
        };
        let disposing = async {
            match outcome {
                Outcome::Complete | Outcome::CompleteIn(_) => {
                    receiver.dispose(info, Accepted {}).await
                }
                Outcome::Release => receiver.dispose(info, Released {}).await,
                Outcome::Abandon => receiver.dispose(info, modified(false)).await,
                Outcome::Defer => receiver.dispose(info, modified(true)).await,
                Outcome::DeadLetter(reason) => receiver.dispose(info, dead_letter(reason)).await,
            }
        };
        within("settle", disposing).await
    }

    pub(crate) async fn close(self) -> Exchange<()> {
        self.world.ledger.closing(self.link);
        within("detach", self.receiver.close()).await
    }
}

impl Worker {
    pub(crate) async fn receive_something(&mut self) -> Exchange<()> {
        let entities = [
            ORDERS,
            ORDERS,
            UNIQUE,
            SHORT_LOCK,
            EXPIRING,
            TARGET,
            TARGET,
            WORK,
            WORK,
            DEAD_LETTERS,
            ALL,
            RED,
        ];
        let place = entities[self.random.random_range(0..entities.len())];
        let is_dead_letters = place != WORK && self.random.random_bool(0.1);
        let world = Arc::clone(&self.world);
        let mut receiving = Receiving::open(&world, self.client(), place, is_dead_letters).await?;
        let credit = self.random.random_range(1..6);
        receiving.ask(credit).await?;
        let mut settled = Vec::new();
        for _ in 0..credit {
            let wait = Duration::from_millis(self.random.random_range(500..9_000));
            let Some((arrival, delivery)) = receiving.next(wait).await? else {
                continue;
            };
            if let Some(done) = self
                .settle(&receiving, arrival, &delivery, is_dead_letters)
                .await?
            {
                settled.push(done);
            }
        }
        receiving.close().await?;
        // What was settled on the link has happened before the link was closed, if the lock lasted so long.
        let now = world.ledger.now();
        for (arrival, outcome) in settled {
            if arrival.locked_until.is_some_and(|until| now < until) {
                world.ledger.settled(place, &arrival, outcome.clone());
                if outcome == Outcome::Defer && self.random.random_bool(0.7) {
                    self.receive_deferred(place, &arrival).await?;
                }
            }
        }
        Ok(())
    }

    /// Does something to a message; returns it when that is sure only once the link is closed.
    async fn settle(
        &mut self,
        receiving: &Receiving,
        mut arrival: Arrival,
        delivery: &Received,
        is_dead_letters: bool,
    ) -> Exchange<Option<(Arrival, Outcome)>> {
        let place = receiving.place;
        let outcome = match self.random.random_range(0..100) {
            0..45 => Outcome::Complete,
            45..60 => Outcome::Abandon,
            60..66 => Outcome::Release,
            66..74 if !is_dead_letters => Outcome::DeadLetter("Broken".into()),
            74..82 if !is_dead_letters => Outcome::Defer,
            _ => {
                // Not settled: the lock runs out, sometimes while the link is open.
                sleep(Duration::from_millis(self.random.random_range(0..7_000))).await;
                return Ok(None);
            }
        };
        if !is_dead_letters && self.random.random_bool(0.2) {
            sleep(Duration::from_millis(self.random.random_range(0..4_000))).await;
            self.renew(place, &mut arrival, delivery).await?;
        }
        let by_request =
            outcome != Outcome::Release && !is_dead_letters && self.random.random_bool(0.35);
        if !by_request {
            receiving.dispose(&arrival, delivery, &outcome).await?;
            return Ok(Some((arrival, outcome)));
        }
        let lock = token(delivery.delivery_tag())
            .ok_or_else(|| ExchangeFailed("a tag is not a token".into()))?;
        self.settle_by_request(place, &arrival, lock, &outcome)
            .await?;
        Ok(None)
    }

    async fn renew(
        &mut self,
        place: usize,
        arrival: &mut Arrival,
        delivery: &Received,
    ) -> Exchange<()> {
        let until = arrival.locked_until.unwrap_or(0);
        let lock = token(delivery.delivery_tag())
            .ok_or_else(|| ExchangeFailed("a tag is not a token".into()))?;
        let body = map([("lock-tokens", tokens(lock))]);
        let client = self.client();
        let mut answer = client
            .ask(ENTITIES[place].address, "renew-lock", body)
            .await?;
        if answer.status == 410 {
            self.world.ledger.lock_lost(place, arrival.key, until);
            return Ok(());
        }
        let ends = match answer.take("expirations") {
            Some(Value::Array(ends)) => ends.0.into_iter().next(),
            Some(Value::List(ends)) => ends.into_iter().next(),
            _ => None,
        };
        if let Some(Value::Timestamp(end)) = ends {
            let end = end.milliseconds();
            arrival.locked_until = Some(end);
            self.world.ledger.renewed(place, arrival.key, end);
        }
        Ok(())
    }

    async fn settle_by_request(
        &mut self,
        place: usize,
        arrival: &Arrival,
        lock: [u8; 16],
        outcome: &Outcome,
    ) -> Exchange<()> {
        let status = match outcome {
            Outcome::Complete | Outcome::CompleteIn(_) => "completed",
            Outcome::Abandon | Outcome::Release => "abandoned",
            Outcome::Defer => "defered",
            Outcome::DeadLetter(_) => "suspended",
        };
        let mut body = map([
            ("lock-tokens", tokens(lock)),
            ("disposition-status", status.into()),
        ]);
        if let Outcome::DeadLetter(reason) = outcome {
            body.insert("deadletter-reason".into(), reason.clone().into());
        }
        self.world.ledger.settling(place, arrival, outcome.clone());
        let client = self.client();
        let answer = client
            .ask(ENTITIES[place].address, "update-disposition", body)
            .await?;
        match answer.status {
            200 => self.world.ledger.settled(place, arrival, outcome.clone()),
            410 => {
                self.world
                    .ledger
                    .lock_lost(place, arrival.key, arrival.locked_until.unwrap_or(0))
            }
            status => self.world.ledger.find(format!(
                "a settlement is answered {status} {}",
                answer.condition
            )),
        }
        Ok(())
    }

    /// Asks for a deferred message and completes it.
    async fn receive_deferred(&mut self, place: usize, arrival: &Arrival) -> Exchange<()> {
        let body = map([
            ("sequence-numbers", numbers(arrival.number)),
            ("receiver-settle-mode", Value::Uint(1)),
        ]);
        let client = self.client();
        let address = ENTITIES[place].address;
        let mut answer = client
            .ask(address, "receive-by-sequence-number", body)
            .await?;
        let Some(Value::List(entries)) = answer.take("messages") else {
            let (ttl, most) = (ENTITIES[place].ttl, ENTITIES[place].max_delivery);
            // To defer it was a delivery, too, and may have been the last.
            if ttl.is_none() && arrival.count + 1 < most {
                let (key, status) = (arrival.key, answer.status);
                self.world.ledger.find(format!(
                    "m{key} was deferred, and cannot be received: {status}"
                ));
            }
            return Ok(());
        };
        for entry in entries {
            if let Value::Map(mut entry) = entry
                && let Some(Value::Uuid(lock)) = entry.swap_remove(&Value::from("lock-token"))
            {
                let lock = lock.into_inner();
                let until = self.world.ledger.now() + ENTITIES[place].lock;
                // It is locked no earlier than it was asked for.
                let arrival = Arrival {
                    locked_until: Some(until - ENTITIES[place].lock),
                    ..arrival.clone()
                };
                self.settle_by_request(place, &arrival, lock, &Outcome::Complete)
                    .await?;
            }
        }
        Ok(())
    }
}

/// What the judge wants to know of a message.
pub(crate) fn arrival(message: &Message<Body<Value>>) -> Exchange<Arrival> {
    let annotation = |name: &str| {
        let annotations = message.message_annotations.as_ref()?;
        let mut annotations = annotations.0.iter();
        let is_it = |key: &OwnedKey| matches!(key, OwnedKey::Symbol(symbol) if symbol.0 == name);
        annotations.find_map(|(key, value)| is_it(key).then_some(value))
    };
    let Body::Data(sections) = &message.body else {
        return Err(ExchangeFailed("a message has another body".into()));
    };
    let text: Vec<u8> = sections
        .iter()
        .flat_map(|Data(bytes)| bytes.to_vec())
        .collect();
    let text = String::from_utf8_lossy(&text);
    let key = text.split(' ').next().and_then(|key| key.parse().ok());
    let properties = message.application_properties.as_ref();
    let reason = properties.and_then(|properties| properties.0.get("DeadLetterReason"));
    Ok(Arrival {
        delivery: 0,
        key: key.ok_or_else(|| ExchangeFailed("a message has lost its body".into()))?,
        count: message
            .header
            .as_ref()
            .map_or(0, |header| header.delivery_count),
        number: match annotation("x-opt-sequence-number") {
            Some(Value::Long(number)) => *number,
            other => {
                return Err(ExchangeFailed(format!(
                    "a message has the number {other:?}"
                )));
            }
        },
        locked_until: match annotation("x-opt-locked-until") {
            Some(Value::Timestamp(until)) => Some(until.milliseconds()),
            _ => None,
        },
        reason: match reason {
            Some(SimpleValue::String(reason)) => Some(reason.clone()),
            _ => None,
        },
    })
}

fn dead_letter(reason: &str) -> Rejected {
    let mut info = OrderedMap::new();
    info.insert(Symbol::from("DeadLetterReason"), Value::from(reason));
    let condition = ErrorCondition::Custom(Symbol::from("com.microsoft:dead-letter"));
    Rejected {
        error: Some(Error::new(condition, None, Some(info))),
    }
}

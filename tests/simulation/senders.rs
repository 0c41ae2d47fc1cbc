//! Clients that send: one by one and in batches, again, scheduled, and in transactions.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Sender;
use fe2o3_amqp::transaction::{
    OwnedTransaction, TransactionDischarge as _, TransactionPosting as _,
    TransactionRetirement as _,
};
use fe2o3_amqp::types::messaging::message::__private::Serializable;
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Data, Message, MessageAnnotations, Outcome, Properties,
};
use fe2o3_amqp::types::primitives::{Binary, Timestamp, Value};
use rand::RngExt;
use tokio::time::sleep;

use crate::client::{Exchange, ExchangeFailed, map, numbers, within};
use crate::entities::{ADDRESSES, Colour, ENTITIES, ORDERS, TARGET};
use crate::ledger::{Outgoing, TransactionState};
use crate::receivers::Receiving;
use crate::worker::Worker;

/// Names of sessions.
pub(crate) const SESSIONS: [&str; 3] = ["a", "b", "c"];

impl Worker {
    pub(crate) async fn send_something(&mut self) -> Exchange<()> {
        match self.random.random_range(0..10) {
            0..6 => self.send().await,
            6 => self.schedule().await,
            7 => self.send_again().await,
            _ => self.transact().await,
        }
    }

    fn outgoing(&mut self, address: &'static str) -> Outgoing {
        let session = (address == "sessions").then(|| {
            let which = self.random.random_range(0..SESSIONS.len());
            SESSIONS[which].to_owned()
        });
        Outgoing {
            address,
            order: None,
            session,
            colour: match self.random.random_bool(0.5) {
                true => Colour::Red,
                false => Colour::Blue,
            },
            due: None,
            group: None,
        }
    }

    /// Several messages over one link, each awaited or all under way at once.
    async fn send(&mut self) -> Exchange<()> {
        let address = ADDRESSES[self.random.random_range(0..ADDRESSES.len())];
        let at_once = self.random.random_bool(0.5);
        self.runs += 1;
        let run = self.runs;
        let mut sender = self.client().sender(address).await?;
        let mut under_way = Vec::new();
        for ordinal in 0..self.random.random_range(1..6) {
            let mut outgoing = self.outgoing(address);
            outgoing.order = Some((run, ordinal));
            if self.random.random_bool(0.1) {
                outgoing.order = None;
                outgoing.due =
                    Some(self.world.ledger.now() + self.random.random_range(500..20_000));
            }
            let key = self.world.ledger.send(outgoing.clone());
            let message = message(key, &outgoing);
            if at_once {
                let outcome = within("send", sender.send_batchable(message)).await?;
                under_way.push((key, outcome));
            } else {
                let outcome = within("send", sender.send(message)).await?;
                self.outcome(key, &outcome);
            }
        }
        for (key, outcome) in under_way {
            let outcome = within("outcome", outcome).await?;
            self.outcome(key, &outcome);
        }
        within("detach", sender.close()).await
    }

    fn outcome(&self, key: usize, outcome: &Outcome) {
        let ledger = &self.world.ledger;
        match matches!(outcome, Outcome::Accepted(_)) {
            true => ledger.accepted(key),
            false => ledger.refused(key, &format!("{outcome:?}")),
        }
    }

    /// The same message twice and more, as a client does that has not heard of its fate.
    async fn send_again(&mut self) -> Exchange<()> {
        let outgoing = self.outgoing("unique");
        let key = self.world.ledger.send(outgoing.clone());
        for _ in 0..self.random.random_range(2..4) {
            let sent = self.send_one(key, &outgoing).await;
            if let Err(ExchangeFailed(why)) = sent {
                self.world
                    .ledger
                    .say(|| format!("m{key} is sent again: {why}"));
                self.client = None;
                self.connect().await?;
            }
            sleep(Duration::from_millis(self.random.random_range(0..4_000))).await;
        }
        Ok(())
    }

    async fn send_one(&mut self, key: usize, outgoing: &Outgoing) -> Exchange<()> {
        let mut sender = self.client().sender(outgoing.address).await?;
        let outcome = within("send", sender.send(message(key, outgoing))).await?;
        self.outcome(key, &outcome);
        within("detach", sender.close()).await
    }

    /// Schedules by a request, and takes some of it back.
    async fn schedule(&mut self) -> Exchange<()> {
        let address = ["orders", "target", "brief"][self.random.random_range(0..3)];
        let mut outgoing = self.outgoing(address);
        outgoing.due = Some(self.world.ledger.now() + self.random.random_range(1_000..30_000));
        let key = self.world.ledger.send(outgoing.clone());
        let bytes = serde_amqp::to_vec(&Serializable(message(key, &outgoing)))
            .map_err(|error| ExchangeFailed(error.to_string()))?;
        let entry = Value::Map(map([
            ("message-id", format!("m{key}").into()),
            ("message", Value::Binary(Binary::from(bytes))),
        ]));
        let body = map([("messages", Value::List(vec![entry]))]);
        let mut answer = self.client().ask(address, "schedule-message", body).await?;
        if answer.status != 200 {
            self.world.ledger.refused(key, &answer.condition);
            return Ok(());
        }
        self.world.ledger.accepted(key);
        let number = match answer.take("sequence-numbers") {
            Some(Value::Array(numbers)) => numbers.0.into_iter().next(),
            Some(Value::List(numbers)) => numbers.into_iter().next(),
            _ => None,
        };
        let Some(Value::Long(number)) = number else {
            return Err(ExchangeFailed(format!(
                "a scheduled message has the number {number:?}"
            )));
        };
        if self.random.random_bool(0.5) {
            sleep(Duration::from_millis(self.random.random_range(0..15_000))).await;
            let body = map([("sequence-numbers", numbers(number))]);
            self.world.ledger.cancelling(key);
            let answer = self
                .client()
                .ask(address, "cancel-scheduled-message", body)
                .await;
            let outcome = answer.as_ref().ok().map(|answer| answer.status == 200);
            self.world.ledger.cancelled(key, outcome);
            answer?;
        }
        Ok(())
    }

    /// Sends to an entity and completes what it has received from there, all of it or nothing.
    async fn transact(&mut self) -> Exchange<()> {
        let group = self.world.ledger.begin_group();
        let transacted = self.transact_in(group).await;
        if transacted.is_err() {
            self.world
                .ledger
                .end_group(group, TransactionState::Unknown);
        }
        transacted
    }

    async fn transact_in(&mut self, group: usize) -> Exchange<()> {
        let world = Arc::clone(&self.world);
        let place = [ORDERS, TARGET][self.random.random_range(0..2)];
        let mut transaction = self.client().declare().await?;
        let mut senders = Vec::new();
        for _ in 0..self.random.random_range(0..4) {
            let sender = self
                .post(&transaction, group, ENTITIES[place].address)
                .await?;
            senders.push(sender);
        }
        let mut received = None;
        let credit = self.random.random_range(0..3);
        if credit > 0 {
            let client = self.client();
            let mut receiving = Receiving::open(&world, client, place, false).await?;
            receiving.ask(credit).await?;
            for _ in 0..credit {
                if let Some((arrival, delivery)) = receiving.next(Duration::from_secs(2)).await? {
                    let outcome = crate::ledger::Outcome::CompleteIn(group);
                    world.ledger.settling(place, &arrival, outcome);
                    let receiver = receiving.receiver();
                    within("settle", transaction.accept(receiver, &delivery)).await?;
                }
            }
            received = Some(receiving);
        }
        sleep(Duration::from_millis(self.random.random_range(0..6_000))).await;
        match self.random.random_range(0..4) {
            0 => {
                world.ledger.end_group(group, TransactionState::Unknown);
                self.client = None;
                return Ok(());
            }
            1 => {
                within("rollback", transaction.rollback()).await?;
                world.ledger.end_group(group, TransactionState::RolledBack);
            }
            _ => self.commit(group, &mut transaction).await?,
        }
        for sender in senders {
            within("detach", sender.close()).await?;
        }
        if let Some(receiving) = received {
            receiving.close().await?;
        }
        Ok(())
    }

    async fn post(
        &mut self,
        transaction: &OwnedTransaction,
        group: usize,
        address: &'static str,
    ) -> Exchange<Sender> {
        let mut sender = self.client().sender(address).await?;
        let mut outgoing = self.outgoing(address);
        outgoing.group = Some(group);
        let key = self.world.ledger.send(outgoing.clone());
        let posting = transaction.post(&mut sender, message(key, &outgoing));
        let outcome = within("post", posting).await?;
        if !matches!(outcome, Outcome::Accepted(_)) {
            return Err(ExchangeFailed(format!("in a transaction: {outcome:?}")));
        }
        Ok(sender)
    }

    /// A commit that is refused, as when a lock has ended, has done nothing.
    async fn commit(&mut self, group: usize, transaction: &mut OwnedTransaction) -> Exchange<()> {
        let committed = within("commit", transaction.discharge(false)).await;
        match committed {
            Ok(()) => self
                .world
                .ledger
                .end_group(group, TransactionState::Committed),
            Err(ExchangeFailed(why)) if why.contains("Rejected") => {
                self.world
                    .ledger
                    .end_group(group, TransactionState::RolledBack);
            }
            Err(broken) => return Err(broken),
        }
        Ok(())
    }
}

/// The message of a key.
fn message(key: usize, outgoing: &Outgoing) -> Message<Data> {
    let mut properties = Properties::builder().message_id(format!("m{key}"));
    if let Some(session) = &outgoing.session {
        properties = properties.group_id(session.clone());
    }
    let colour = match outgoing.colour {
        Colour::Red => "red",
        Colour::Blue => "blue",
    };
    let mut annotations = MessageAnnotations::default();
    if let Some(due) = outgoing.due {
        annotations.insert(
            "x-opt-scheduled-enqueue-time".into(),
            Value::Timestamp(Timestamp::from(due)),
        );
    }
    // Some are longer than what a connection takes at once.
    let padding = if key.is_multiple_of(7) {
        3_000
    } else {
        key % 50
    };
    let body = format!("{key} {}", "x".repeat(padding));
    Message {
        header: None,
        delivery_annotations: None,
        message_annotations: Some(annotations),
        properties: Some(properties.build()),
        application_properties: Some(
            ApplicationProperties::builder()
                .insert("colour", colour)
                .build(),
        ),
        body: Data(Binary::from(body.into_bytes())),
        footer: None,
    }
}

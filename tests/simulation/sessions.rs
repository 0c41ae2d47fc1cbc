//! Clients that accept sessions, hold them, lose them and give them back.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::types::primitives::{Binary, Value};
use rand::RngExt;
use tokio::time::sleep;

use crate::client::{Exchange, map};
use crate::entities::{ENTITIES, SESSIONS};
use crate::ledger::Outcome;
use crate::receivers::Receiving;
use crate::senders;
use crate::worker::Worker;

impl Worker {
    pub(crate) async fn hold_a_session(&mut self) -> Exchange<()> {
        let world = Arc::clone(&self.world);
        let wanted = self
            .random
            .random_bool(0.4)
            .then(|| senders::SESSIONS[self.random.random_range(0..senders::SESSIONS.len())]);
        let max_wait = Duration::from_millis(self.random.random_range(500..6_000));
        let client = self.client();
        let link = world.ledger.attaching(SESSIONS, false, &client.observed);
        let address = ENTITIES[SESSIONS].address;
        let accepted = client
            .session_receiver(address, wanted, max_wait, true)
            .await;
        let (receiver, session, until) = match accepted {
            Ok(Some(accepted)) => accepted,
            nothing => {
                world.ledger.closing(link);
                return nothing.map(drop);
            }
        };
        world.ledger.holds(link, &session, until);
        let mut receiving = Receiving::new(&world, link, SESSIONS, receiver);
        self.hold(&mut receiving, &session).await?;
        receiving.close().await
    }

    async fn hold(&mut self, receiving: &mut Receiving, session: &str) -> Exchange<()> {
        for _ in 0..self.random.random_range(1..6) {
            receiving.ask(1).await?;
            let wait = Duration::from_millis(self.random.random_range(200..4_000));
            let Some((arrival, delivery)) = receiving.next(wait).await? else {
                continue;
            };
            let outcome = match self.random.random_range(0..20) {
                0..11 => Outcome::Complete,
                11..15 => Outcome::Abandon,
                15 => Outcome::Release,
                16 => Outcome::DeadLetter("Broken".into()),
                17 => Outcome::Defer,
                _ => {
                    sleep(Duration::from_millis(self.random.random_range(0..14_000))).await;
                    return Ok(());
                }
            };
            receiving.dispose(&arrival, &delivery, &outcome).await?;
            // Requests of the same AMQP session are dealt with in order.
            let renews = self.random.random_bool(0.3);
            let ledger = self.world.ledger.clone();
            let held = self.ask(receiving, session, renews).await?;
            if held && ledger.now() < ledger.session_until(receiving.link) {
                ledger.settled(SESSIONS, &arrival, outcome);
            }
        }
        Ok(())
    }

    /// Renews the lock of the session or sets its state; says whether it is held.
    async fn ask(&mut self, receiving: &Receiving, session: &str, renews: bool) -> Exchange<bool> {
        let ledger = self.world.ledger.clone();
        let until = ledger.session_until(receiving.link);
        let (operation, body) = match renews {
            true => ("renew-session-lock", map([("session-id", session.into())])),
            false => {
                let state = Value::Binary(Binary::from(self.random.random::<[u8; 4]>().to_vec()));
                (
                    "set-session-state",
                    map([("session-id", session.into()), ("session-state", state)]),
                )
            }
        };
        let mut answer = self
            .client()
            .ask(ENTITIES[SESSIONS].address, operation, body)
            .await?;
        if answer.status != 200 {
            if ledger.now() < until {
                ledger.find(format!(
                    "{operation} of session {session}, which is held: {}",
                    answer.condition
                ));
            }
            return Ok(false);
        }
        if let Some(Value::Timestamp(end)) = answer.take("expiration") {
            ledger.session_renewed(receiving.link, end.milliseconds());
        }
        Ok(true)
    }
}

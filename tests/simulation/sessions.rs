//! Clients that accept sessions, hold them, lose them and give them back.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::types::primitives::{Binary, Value};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::client::{Broken, Client, Exchange, map};
use crate::ledger::Outcome;
use crate::places::{PLACES, SESSIONS};
use crate::receivers::Receiving;
use crate::senders;
use crate::world::World;

/// Turns of one client.
const TURNS: usize = 8;

struct Holding {
    world: Arc<World>,
    random: SmallRng,
    name: String,
    client: Option<Client>,
}

/// Works as a client, which connects anew when its connection ends.
pub(crate) async fn work(world: Arc<World>, number: usize, seed: u64) {
    let mut own = Holding {
        world,
        random: SmallRng::seed_from_u64(seed),
        name: format!("session-{number}"),
        client: None,
    };
    for _ in 0..TURNS {
        if let Err(Broken(why)) = own.turn().await {
            let name = &own.name;
            own.world
                .ledger
                .say(|| format!("{name} gives up its connection: {why}"));
            own.client = None;
        }
        sleep(Duration::from_millis(own.random.random_range(0..1_000))).await;
    }
    if let Some(client) = own.client.take() {
        client.close().await;
    }
}

impl Holding {
    async fn turn(&mut self) -> Exchange<()> {
        if self.client.is_none() {
            self.client = Some(Client::connect(&self.world, &self.name).await?);
        }
        let world = Arc::clone(&self.world);
        let client = self.client.as_mut().expect("it is connected");
        let wanted = self
            .random
            .random_bool(0.4)
            .then(|| senders::SESSIONS[self.random.random_range(0..senders::SESSIONS.len())]);
        let link = world.ledger.attaching(SESSIONS, false, &client.observed);
        let patience = Duration::from_millis(self.random.random_range(500..6_000));
        let address = PLACES[SESSIONS].address;
        let accepted = client
            .session_receiver(address, wanted, patience, true)
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
        let client = self.client.as_mut().expect("it is connected");
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
        let mut answer = client
            .ask(PLACES[SESSIONS].address, operation, body)
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

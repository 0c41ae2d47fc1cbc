//! A client that works in turns, and connects anew when its connection has ended.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::time::sleep;

use crate::client::{Client, Exchange, ExchangeFailed};
use crate::world::World;

/// What a client does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Work {
    Send,
    Receive,
    HoldSessions,
    UseJms,
}

pub(crate) struct Worker {
    pub(crate) world: Arc<World>,
    pub(crate) random: SmallRng,
    pub(crate) name: String,
    pub(crate) client: Option<Client>,
    /// How many links it has sent over, beside its number.
    pub(crate) runs: usize,
}

impl Work {
    /// What clients that do it are called, how many turns they have, and milliseconds between two at most.
    fn parameters(self) -> (&'static str, usize, u64) {
        match self {
            Self::Send => ("sender", 12, 2_000),
            Self::Receive => ("receiver", 9, 1_000),
            Self::HoldSessions => ("session", 8, 1_000),
            Self::UseJms => ("jms", 8, 1_000),
        }
    }
}

/// Works as one client from beginning to end.
pub(crate) async fn work(world: Arc<World>, work: Work, number: usize, seed: u64) {
    let (name, turns, pause) = work.parameters();
    let mut own = Worker {
        world,
        random: SmallRng::seed_from_u64(seed),
        name: format!("{name}-{number}"),
        client: None,
        runs: number << 32,
    };
    for _ in 0..turns {
        if let Err(ExchangeFailed(why)) = own.turn(work).await {
            let name = &own.name;
            own.world
                .ledger
                .say(|| format!("{name} gives up its connection: {why}"));
            own.client = None;
        }
        sleep(Duration::from_millis(own.random.random_range(0..pause))).await;
    }
    if let Some(client) = own.client.take() {
        client.close().await;
    }
}

impl Worker {
    async fn turn(&mut self, work: Work) -> Exchange<()> {
        if self.client.is_none() {
            match work {
                Work::UseJms => self.connect_as_jms().await?,
                Work::Send | Work::Receive | Work::HoldSessions => self.connect().await?,
            }
        }
        match work {
            Work::Send => self.send_something().await,
            Work::Receive => self.receive_something().await,
            Work::HoldSessions => self.hold_a_session().await,
            Work::UseJms => self.use_jms().await,
        }
    }

    pub(crate) async fn connect(&mut self) -> Exchange<()> {
        self.client = Some(Client::connect(&self.world, &self.name).await?);
        Ok(())
    }

    /// Its connection, which lasts for the whole turn.
    pub(crate) fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("it is connected")
    }
}

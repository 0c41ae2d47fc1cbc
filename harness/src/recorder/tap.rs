//! What one connection says, whichever protocol it is.
//!
//! The first bytes of the client tell: AMQP, or HTTP that may become AMQP over WebSocket. What is not understood is not
//! decoded any more; who copies the bytes does not learn of it.

use std::sync::Arc;

use super::{
    Side, budget::Budget, exchange::Exchange, frames::Frames, http::Http, websocket::Unframed,
};

/// A connection as the recorder hears it.
#[derive(Debug)]
pub(super) struct Tap {
    budget: Arc<Budget>,
    /// What the client said while it was too little to tell the protocol.
    first: Vec<u8>,
    http: Option<Http>,
    /// The two directions of a WebSocket, the client's first.
    sockets: Option<[Unframed; 2]>,
    amqp: Option<Amqp>,
    is_lost: bool,
}

#[derive(Debug)]
struct Amqp {
    client: Frames,
    service: Frames,
    exchange: Exchange,
}

impl Tap {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            first: Vec::new(),
            http: None,
            sockets: None,
            amqp: None,
            is_lost: false,
        }
    }

    /// Takes what a side said next.
    pub(super) fn heard(&mut self, side: Side, bytes: &[u8]) {
        if self.is_lost {
            return;
        }
        if let Err(why) = self.decode(side, bytes) {
            self.is_lost = true;
            match (&mut self.amqp, &mut self.http) {
                (Some(amqp), _) => amqp.exchange.lost(&why),
                (None, Some(http)) => http.lost(&why),
                (None, None) => {}
            }
        }
    }

    /// Tells what happened: each part by its name, with what happened there in order.
    pub(super) fn told(&self) -> Vec<(String, Vec<String>)> {
        let http = self.http.iter().map(Http::told);
        let amqp = self.amqp.iter().flat_map(|amqp| amqp.exchange.told());
        http.chain(amqp).collect()
    }

    fn decode(&mut self, side: Side, bytes: &[u8]) -> Result<(), String> {
        if let Some([client, service]) = &mut self.sockets {
            let socket = match side {
                Side::Client => client,
                Side::Service => service,
            };
            let bytes = socket.heard(bytes);
            return self.amqp(side, &bytes);
        }
        if let Some(http) = &mut self.http {
            http.heard(side, bytes)?;
            let Some(left) = http.switched() else {
                return Ok(());
            };
            self.sockets = Some(Default::default());
            return left
                .into_iter()
                .try_for_each(|(side, left)| self.decode(side, &left));
        }
        if self.amqp.is_some() {
            return self.amqp(side, bytes);
        }
        match side {
            Side::Client => self.begun(bytes),
            Side::Service => Err("the service spoke first".to_owned()),
        }
    }

    /// Tells the protocol by the beginning.
    fn begun(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.first.extend_from_slice(bytes);
        if self.first.len() < b"AMQP".len() {
            return Ok(());
        }
        let first = std::mem::take(&mut self.first);
        if !first.starts_with(b"AMQP") {
            self.http = Some(Http::new(Arc::clone(&self.budget)));
            return self.decode(Side::Client, &first);
        }
        self.amqp(Side::Client, &first)
    }

    fn amqp(&mut self, side: Side, bytes: &[u8]) -> Result<(), String> {
        let budget = &self.budget;
        let amqp = self.amqp.get_or_insert_with(|| Amqp {
            client: Frames::default(),
            service: Frames::default(),
            exchange: Exchange::new(Arc::clone(budget)),
        });
        let frames = match side {
            Side::Client => &mut amqp.client,
            Side::Service => &mut amqp.service,
        };
        frames.push(bytes);
        while let Some(frame) = frames.next()? {
            let taken = amqp.exchange.frame(side, &frame);
            taken.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

//! What one connection says, whichever protocol it is.
//!
//! The first bytes of the client show the protocol: AMQP, or HTTP that may become AMQP over WebSocket. What is not understood is not
//! decoded any more; the copying of the bytes does not notice.

use std::sync::Arc;

use super::{
    Side, exchange::Exchange, frames::Frames, http::Http, trace::Budget, websocket::Unframed,
};

/// A connection as the recorder hears it.
#[derive(Debug)]
pub(super) struct Decoder {
    budget: Arc<Budget>,
    /// What the client said while it was too little to know the protocol.
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

impl Decoder {
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

    /// Takes the next bytes of one side.
    pub(super) fn push(&mut self, side: Side, bytes: &[u8]) {
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

    /// Renders what happened: each part by its name, with what happened there in order.
    pub(super) fn render(&self) -> Vec<(String, Vec<String>)> {
        let http = self.http.iter().map(Http::render);
        let amqp = self.amqp.iter().flat_map(|amqp| amqp.exchange.render());
        http.chain(amqp).collect()
    }

    fn decode(&mut self, side: Side, bytes: &[u8]) -> Result<(), String> {
        if let Some([client, service]) = &mut self.sockets {
            let socket = match side {
                Side::Client => client,
                Side::Service => service,
            };
            let bytes = socket.push(bytes);
            return self.amqp(side, &bytes);
        }
        if let Some(http) = &mut self.http {
            http.push(side, bytes)?;
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
            Side::Client => self.detect_protocol(bytes),
            Side::Service => Err("the service spoke first".to_owned()),
        }
    }

    /// Finds the protocol by the first bytes.
    fn detect_protocol(&mut self, bytes: &[u8]) -> Result<(), String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client and a service say before the first link: the protocol, the mechanisms, and that all is well.
    const CLIENT: &[u8] = b"AMQP\x03\x01\x00\x00";
    const SERVICE: &[u8] = b"AMQP\x03\x01\x00\x00\
        \x00\x00\x00\x19\x02\x01\x00\x00\x00\x53\x40\xc0\x0c\x01\xe0\x09\x01\xb3\x00\x00\x00\x03TLS\
        \x00\x00\x00\x10\x02\x01\x00\x00\x00\x53\x44\xc0\x03\x01\x50\x00";

    fn rendered(service: &[u8]) -> Vec<(String, Vec<String>)> {
        let mut decoder = Decoder::new(Arc::default());
        decoder.push(Side::Client, CLIENT);
        decoder.push(Side::Service, service);
        decoder.render()
    }

    #[test]
    fn amqp_is_decoded() {
        let [(what, own)] = rendered(SERVICE).try_into().unwrap();
        assert_eq!(what, "connection");
        assert_eq!(
            own,
            ["SASL mechanisms array [symbol TLS]", "SASL outcome ubyte 0"]
        );
    }

    #[test]
    fn invalid_bytes_are_not_decoded() {
        for at in 0..SERVICE.len() {
            for wrong in [0x00, 0x40, 0x7f, 0xc0, 0xff] {
                let mut bytes = SERVICE.to_vec();
                bytes[at] = wrong;
                rendered(&bytes);
            }
        }
        let [(_, own)] = rendered(b"AMQP\x03\x01\x00\x00HTTP/1.1 400")
            .try_into()
            .unwrap();
        assert!(
            own[0].starts_with("not decoded further: a frame of "),
            "{own:?}"
        );
    }

    #[test]
    fn amqp_is_decoded_from_a_websocket() {
        let mut decoder = Decoder::new(Arc::default());
        let request = b"GET /$servicebus/websocket HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";
        decoder.push(Side::Client, request);
        decoder.push(Side::Service, b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
        let framed = |bytes: &[u8], mask: &[u8]| {
            let mut frame = vec![0x82, bytes.len() as u8 | (mask.len() as u8) << 5];
            frame.extend(mask);
            frame.extend(bytes);
            frame
        };
        decoder.push(Side::Client, &framed(CLIENT, &[0; 4]));
        decoder.push(Side::Service, &framed(SERVICE, &[]));
        let rendered = decoder.render();
        assert_eq!(rendered[0].1, ["GET /$servicebus/websocket: 101"]);
        assert_eq!(rendered[1].1.len(), 2);
    }
}

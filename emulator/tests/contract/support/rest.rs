//! A client of the REST data plane: one request per connection, sent exactly as written.

use std::io::{ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use servicebus_emulator::auth::{Key, sas};

use super::http::{Http, read_response, request};
use super::{Bus, Response, in_an_hour};

/// Where the data plane is, and the token that is shown there.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    address: SocketAddr,
    token: Option<String>,
}

/// A request whose answer has not been read yet.
#[derive(Debug)]
pub(crate) struct Pending(TcpStream);

impl Bus {
    /// A client with a token for the whole namespace.
    pub(crate) fn rest(&self) -> Rest {
        self.rest_with(Some(&root_token("http://localhost")))
    }

    /// The emulator, and a client of its REST API that may do everything.
    pub(crate) fn with_rest(self) -> (Self, Rest) {
        let rest = self.rest();
        (self, rest)
    }

    /// A client that shows this in its `Authorization`, or nothing.
    pub(crate) fn rest_with(&self, token: Option<&str>) -> Rest {
        Rest {
            address: self.http.0,
            token: token.map(str::to_owned),
        }
    }
}

impl Rest {
    /// A client of this listener without a token.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            address,
            token: None,
        }
    }

    /// Sends a message with these headers.
    pub(crate) fn send(&self, entity: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let path = format!("/{entity}/messages");
        self.request("POST", &path, headers, body.as_bytes())
    }

    /// Sends a batch.
    pub(crate) fn send_batch(&self, entity: &str, batch: &Value) -> Response {
        let content_type = ("Content-Type", "application/vnd.microsoft.servicebus.json");
        self.send(entity, &[content_type], &batch.to_string())
    }

    /// Locks the next message, or returns at once that there is none.
    pub(crate) fn peek_lock(&self, entity: &str) -> Response {
        self.ask("POST", &format!("/{entity}/messages/head?timeout=0"))
    }

    /// Receives and deletes the next message, or returns at once that there is none.
    pub(crate) fn take(&self, entity: &str) -> Response {
        self.ask("DELETE", &format!("/{entity}/messages/head?timeout=0"))
    }

    /// A request without headers and body of its own.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Response {
        self.request(method, path, &[], b"")
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        self.begin(method, path, headers, body).answer()
    }

    /// Sends a request and does not wait for its answer.
    pub(crate) fn begin(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Pending {
        let mut all = Vec::from_iter(self.token.as_deref().map(|token| ("Authorization", token)));
        if !headers.iter().any(|(name, _)| *name == "Host") {
            all.push(("Host", "localhost"));
        }
        all.extend(headers);
        self.begin_raw(&request(method, path, &all, body))
    }

    /// The same with the bytes of a whole request, or of a part of it.
    pub(crate) fn begin_raw(&self, bytes: &[u8]) -> Pending {
        Pending(Http(self.address).begin(bytes))
    }
}

impl Pending {
    /// Whether the stream ends without an answer.
    pub(crate) fn ends_unanswered(mut self) -> bool {
        match self.0.read(&mut [0; 1024]) {
            Ok(read) => read == 0,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => true,
            Err(error) => panic!("{error}"),
        }
    }

    /// Reads all answers.
    pub(crate) fn until_closed(&mut self) -> String {
        let mut answers = String::new();
        self.0.read_to_string(&mut answers).expect("answers");
        answers
    }

    /// Waits for the answer.
    pub(crate) fn answer(mut self) -> Response {
        Response::parse(&read_response(&mut self.0))
    }
}

impl Response {
    /// `BrokerProperties`, or one of them.
    pub(crate) fn properties(&self) -> Value {
        let written = self.header("BrokerProperties");
        let written = written.unwrap_or_else(|| panic!("no properties: {self:?}"));
        serde_json::from_str(written).unwrap_or_else(|error| panic!("{error}: {written}"))
    }

    pub(crate) fn property(&self, name: &str) -> Value {
        self.properties()[name].clone()
    }

    /// The path of the locked message.
    pub(crate) fn lock(&self) -> String {
        assert_eq!(self.status, 201, "{self:?}");
        let location = self.header("Location").expect("a lock has a location");
        let path = location.strip_prefix("http://localhost");
        path.unwrap_or_else(|| panic!("{location}")).to_owned()
    }

    /// The detail of a refusal with this status, without its tail.
    pub(crate) fn refusal(&self, status: u16) -> &str {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("Content-Type"),
            Some("application/xml; charset=utf-8")
        );
        let text = self.text();
        let begin = format!("<Error><Code>{status}</Code><Detail>");
        let detail = text.strip_prefix(&begin);
        let detail = detail.and_then(|rest| rest.strip_suffix("</Detail></Error>"));
        let (words, tail) = detail
            .and_then(|detail| detail.split_once(" TrackingId:"))
            .unwrap_or_else(|| panic!("no refusal: {text}"));
        assert!(
            tail.contains("_B0, SystemTracker:") && tail.contains(", Timestamp:"),
            "{tail}"
        );
        words
    }
}

/// Seconds since the Unix epoch as HTTP writes them.
pub(crate) fn http_date(seconds: i64) -> String {
    let instant = jiff::Timestamp::from_second(seconds).expect("an instant of our time");
    instant.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A token of the key with all rights.
pub(crate) fn root_token(resource: &str) -> String {
    sas::sign(resource, &Key::well_known(), in_an_hour())
}

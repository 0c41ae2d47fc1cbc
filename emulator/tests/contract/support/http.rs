//! A client of the control API: HTTP/1.1 by hand, one connection per request.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than the emulator's timeout for clients that do not read, and than an unoptimised build takes to write a whole
/// timeline on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(180);

/// The path of the default namespace.
const NAMESPACE: &str = "/$emulator/v1/namespaces/sbemulatorns";

/// Where the control API is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Http(pub(crate) SocketAddr);

/// Status and body of a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    /// Null when there was none.
    pub(crate) body: Value,
}

impl Http {
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path, Some(&body.to_string()))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Answer {
        self.request("PUT", path, Some(&body.to_string()))
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, None)
    }

    pub(crate) fn request(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        let json = [("Content-Type", "application/json")];
        let headers: &[_] = if body.is_some() { &json } else { &[] };
        self.send(method, path, headers, body.unwrap_or_default().as_bytes())
    }

    /// A tilde at the beginning of a path stands for the default namespace.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let path = match path.strip_prefix('~') {
            Some(path) => format!("{NAMESPACE}{path}"),
            None => path.to_owned(),
        };
        let headers = [&[("Host", "localhost")], headers].concat();
        self.raw(&request(method, &path, &headers, body))
    }

    /// Sends these bytes and reads the response.
    pub(crate) fn raw(&self, request: &[u8]) -> Answer {
        Answer::parse(&self.exchange(request))
    }

    /// The same for a response whose body is not JSON: all of it as text.
    pub(crate) fn text(&self, request: &[u8]) -> String {
        String::from_utf8_lossy(&self.exchange(request)).into_owned()
    }

    /// Sends a request as it stands; returns the bytes of the response.
    pub(crate) fn exchange(&self, request: &[u8]) -> Vec<u8> {
        read_response(&mut self.begin(request))
    }

    /// Sends a request as it stands, or a part of it.
    pub(crate) fn begin(&self, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.0).expect("HTTP accepts");
        let timeout = Some(TIMEOUT);
        stream.set_read_timeout(timeout).expect("it can be set");
        // A response may come before all of it is read, and the reader be gone: the response shows the result.
        let _ = stream.write_all(request);
        stream
    }

    /// Moves the first namespace's clock.
    pub(crate) fn advance(&self, seconds: f64) {
        let body = serde_json::json!({ "seconds": seconds });
        self.post("/$emulator/v1/clock/advance", &body).ok();
    }

    /// Stops the first namespace's clock, for a test that comes close to a deadline: from now on only [`Self::advance`]
    /// moves it, however long the machine takes.
    pub(crate) fn freeze(&self) {
        self.post("/$emulator/v1/clock/freeze", &Value::Null).ok();
    }

    /// The counts of an entity of the default namespace.
    pub(crate) fn counts(&self, entity: &str) -> Value {
        self.get(&format!("~/counts?entity={entity}")).ok()
    }

    /// Two of the counts of an entity of the default namespace.
    pub(crate) fn numbers(&self, entity: &str, names: [&str; 2]) -> [u64; 2] {
        let counts = self.counts(entity);
        names.map(|name| counts[name].as_u64().expect("counts are numbers"))
    }

    /// How many messages an entity holds, and how many are dead.
    pub(crate) fn held(&self, entity: &str) -> (u64, u64) {
        self.numbers(entity, ["active", "dead_letter"]).into()
    }

    /// Empties the default namespace.
    pub(crate) fn reset(&self) {
        self.post("~/reset", &Value::Null).ok();
    }

    /// Gets a queue of the default namespace, or sends an operation on it.
    pub(crate) fn queue(&self, method: &str, path: &str, body: Option<&str>) -> Answer {
        self.request(method, &format!("~/queues/{path}"), body)
    }

    /// Makes or changes a queue, which must be possible.
    pub(crate) fn put_queue(&self, path: &str, properties: &Value) -> Value {
        self.queue("PUT", path, Some(&properties.to_string())).ok()
    }

    pub(crate) fn set_status(&self, path: &str, status: &str) {
        self.put_queue(path, &serde_json::json!({ "Status": status }));
    }

    /// The timeline of the default namespace; `query` is empty or begins with a question mark.
    pub(crate) fn timeline(&self, query: &str) -> Value {
        self.get(&format!("~/timeline{query}")).ok()
    }

    /// The events of that timeline.
    pub(crate) fn events(&self, query: &str) -> Vec<Value> {
        let timeline = self.timeline(query);
        timeline["events"]
            .as_array()
            .expect("events are an array")
            .clone()
    }
}

/// A request that ends its connection, with these headers.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// These members of an object, as an array.
pub(crate) fn members<const N: usize>(object: &Value, names: [&str; N]) -> Value {
    Value::Array(names.map(|name| object[name].clone()).into())
}

/// A response, with the chunks of its body joined.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn parse(response: &[u8]) -> Self {
        let end = head_length(response);
        let end = end.unwrap_or_else(|| panic!("no head: {:?}", String::from_utf8_lossy(response)));
        let head = String::from_utf8_lossy(&response[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = &response[end + 4..];
        Self {
            status: status.unwrap_or_else(|| panic!("no status: {head}")),
            body: match is_chunked(&head) {
                true => joined(body),
                false => body.to_vec(),
            },
            head,
        }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name).map(|(_, value)| value)
    }

    /// The name of a header as it was sent.
    pub(crate) fn spelling(&self, name: &str) -> &str {
        header(&self.head, name).map_or("", |(own, _)| own)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }
}

impl Answer {
    fn parse(response: &[u8]) -> Self {
        let response = Response::parse(response);
        let body = match response.text() {
            "" => Value::Null,
            body => serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}")),
        };
        Self {
            status: response.status,
            head: response.head,
            body,
        }
    }

    /// The body of a success.
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.body
    }

    /// Code and message of an error with this status; problems must be an array.
    pub(crate) fn error(&self, status: u16) -> (&str, &str) {
        assert_eq!(self.status, status, "{self:?}");
        let error = &self.body["error"];
        assert!(error["problems"].is_array(), "{self:?}");
        let text = |name: &str| {
            error[name]
                .as_str()
                .unwrap_or_else(|| panic!("no {name}: {self:?}"))
        };
        (text("code"), text("message"))
    }

    /// The message of an error with this status and code.
    #[track_caller]
    pub(crate) fn error_with(&self, status: u16, code: &str) -> &str {
        let (found, message) = self.error(status);
        assert_eq!(found, code, "{message}");
        message
    }
}

/// Reads a response.
pub(crate) fn read_response(stream: &mut TcpStream) -> Vec<u8> {
    let mut response = Vec::new();
    let mut block = [0; 16 * 1024];
    let mut whole = None;
    // Not to the end of the stream: a stream whose input was not read completely is reset.
    while whole.is_none_or(|whole| response.len() < whole) {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(read) => response.extend_from_slice(&block[..read]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&response)),
        }
        whole = whole.or_else(|| length_of(&response));
    }
    response
}

fn head_length(response: &[u8]) -> Option<usize> {
    response.windows(4).position(|window| window == b"\r\n\r\n")
}

/// The length of a response whose head is there.
fn length_of(response: &[u8]) -> Option<usize> {
    let end = head_length(response)?;
    let head = String::from_utf8_lossy(&response[..end]);
    if is_chunked(&head) {
        // Its end is that of the connection.
        return Some(usize::MAX);
    }
    let length = header(&head, "content-length").and_then(|(_, length)| length.parse().ok());
    Some(end + 4 + length.unwrap_or(0))
}

/// Name and value of a header, as they were sent.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut headers = head.lines().filter_map(|line| line.split_once(": "));
    headers.find(|(own, _)| own.eq_ignore_ascii_case(name))
}

fn is_chunked(head: &str) -> bool {
    header(head, "transfer-encoding").is_some_and(|(_, encoding)| encoding == "chunked")
}

/// The chunks of a body together.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = chunks.windows(2).position(|pair| pair == b"\r\n") {
        let length = std::str::from_utf8(&chunks[..end]).expect("a length is text");
        let length = usize::from_str_radix(length, 16).expect("a length is hexadecimal");
        if length == 0 {
            break;
        }
        whole.extend_from_slice(&chunks[end + 2..][..length]);
        chunks = &chunks[end + 2 + length + 2..];
    }
    whole
}

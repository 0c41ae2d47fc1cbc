//! What clients of each SDK send, and what they are answered, byte for byte but for times and ids: sessions in
//! `fixtures/admin`, written by us in the shapes of recorded traffic (admin-http.md). One emulator plays a session from
//! its beginning to its end.

use crate::support::*;

/// One request and the answer that it must have.
struct Exchange {
    request: String,
    body: String,
    status: u16,
    headers: Vec<(String, String)>,
    answer: String,
}

#[test]
fn python() {
    play(include_str!("../../../../fixtures/admin/python.txt"));
}

#[test]
fn javascript() {
    play(include_str!("../../../../fixtures/admin/javascript.txt"));
}

#[test]
fn go() {
    play(include_str!("../../../../fixtures/admin/go.txt"));
}

#[test]
fn java() {
    play(include_str!("../../../../fixtures/admin/java.txt"));
}

#[test]
fn dotnet() {
    play(include_str!("../../../../fixtures/admin/dotnet.txt"));
}

#[test]
fn service_bus_explorer() {
    play(include_str!("../../../../fixtures/admin/explorer.txt"));
}

fn play(session: &str) {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    for exchange in exchanges(session) {
        let reply = admin.raw(&exchange.bytes(&admin));
        let about = &exchange.request;
        assert_eq!(reply.status, exchange.status, "{about}: {reply:?}");
        for (name, value) in &exchange.headers {
            assert_eq!(reply.header(name), Some(value.as_str()), "{about}: {name}");
        }
        let shown = general(&reply.body.replace("&#13;\n", "&#13;"));
        assert_eq!(shown, exchange.answer, "{about}");
    }
}

impl Exchange {
    /// The request with a token; chunked where its head says so.
    fn bytes(&self, admin: &Admin) -> Vec<u8> {
        let (line, headers) = self.request.split_once('\n').unwrap_or((&self.request, ""));
        let (method, path) = line.split_once(' ').expect("method and path");
        let headers: Vec<_> = headers
            .lines()
            .filter_map(|line| line.split_once(": "))
            .collect();
        let head = admin.head(method, path, &headers);
        let is_chunked = headers.iter().any(|(name, _)| *name == "Transfer-Encoding");
        let (length, body) = (self.body.len(), &self.body);
        let whole = match (is_chunked, body.is_empty()) {
            (true, _) => format!("{head}\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
            (false, true) => format!("{head}\r\n"),
            (false, false) => format!("{head}Content-Length: {length}\r\n\r\n{body}"),
        };
        whole.into_bytes()
    }
}

/// Requests begin with `>>> `, answers with `<<< `; an empty line stands before a body. Lines before the first request
/// say what the session is.
fn exchanges(session: &str) -> Vec<Exchange> {
    let parts = session.split("\n>>> ").skip(1);
    parts
        .map(|part| {
            let (request, answer) = part.split_once("\n<<< ").expect("an answer");
            let (request, body) = request.split_once("\n\n").unwrap_or((request, ""));
            let (head, answer) = answer.split_once("\n\n").unwrap_or((answer, ""));
            let mut lines = head.lines();
            let status = lines.next().and_then(|status| status.trim().parse().ok());
            let headers = lines.filter_map(|line| line.split_once(": "));
            Exchange {
                request: request.trim_end().to_owned(),
                body: body.trim_end().to_owned(),
                status: status.expect("a status"),
                headers: headers
                    .map(|(name, value)| (name.into(), value.into()))
                    .collect(),
                answer: answer.trim_end().to_owned(),
            }
        })
        .collect()
}

/// The text with `{time}` for every instant and `{id}` for every UUID.
fn general(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match instant(rest) {
            Some(length) => {
                out.push_str("{time}");
                length
            }
            None if is_uuid(rest) => {
                out.push_str("{id}");
                36
            }
            None => {
                out.push(first);
                first.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out
}

/// The length of an instant that a text begins with.
fn instant(text: &str) -> Option<usize> {
    const FORM: &str = "dddd-dd-ddTdd:dd:dd";
    let mut bytes = text.bytes();
    let fits = FORM.bytes().all(|wanted| {
        let found = bytes.next().unwrap_or_default();
        if wanted == b'd' {
            found.is_ascii_digit()
        } else {
            found == wanted
        }
    });
    let behind = text.get(FORM.len()..).filter(|_| fits)?;
    let digits = behind
        .find(|c: char| c != '.' && !c.is_ascii_digit())
        .unwrap_or(behind.len());
    let zone = usize::from(behind[digits..].starts_with('Z'));
    Some(FORM.len() + digits + zone)
}

fn is_uuid(text: &str) -> bool {
    let Some(text) = text.get(..36) else {
        return false;
    };
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    text.bytes().enumerate().all(|(at, byte)| {
        if is_dash(at) {
            byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    })
}

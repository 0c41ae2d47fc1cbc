//! Invalid descriptions: refused with the reason, and limited in size and time.
//!
//! Also the requests of each SDK and their responses, byte for byte except times and ids: sessions in `fixtures/admin`,
//! written by us in the shapes of recorded traffic (admin-http.md). One emulator plays a session from its beginning to its
//! end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::*;

const MORE: &str = "To know more visit https://aka.ms/sbResourceMgrExceptions.";

const ATOM: &str = "xmlns=\"http://www.w3.org/2005/Atom\"";

/// The text of the refusal of a queue with this body.
fn refused(admin: &Admin, body: &str) -> String {
    let reply = admin.put("/new", body);
    let found = reply.refusal(400);
    assert_starts_with(found, "SubCode=40000. ");
    assert_ends_with(found, &format!("{MORE} ."));
    found.to_owned()
}

#[test]
fn malformed_xml_is_reported_with_its_position() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let deep = "<a>".repeat(40) + &"</a>".repeat(40);
    let many = format!("<entry {ATOM}>{}</entry>", "<a/>".repeat(20_000));
    let bomb = format!(
        "<!DOCTYPE entry [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;\">]><entry {ATOM}>&b;</entry>"
    );
    for (body, text) in [
        ("", "it has no element"),
        ("no xml", "it has no element"),
        ("{\"a\":1}", "it has no element"),
        ("<entry>", "it has no element"),
        ("<entry></feed>", "it is malformed at offset"),
        ("<a/><b/>", "more than one outside"),
        (&deep, "it nests deeper than 32 elements"),
        (&many, "it has more than 10000 elements"),
        (&bomb, "it has a document type, which is not allowed"),
        ("<entry>&other;</entry>", "it refers to the entity 'other'"),
        ("<entry>&#0;</entry>", "it refers to the entity '#0'"),
    ] {
        let found = refused(&admin, body);
        assert_contains(&found, text);
    }
    let mut binary = admin.head("PUT", "/new", &[("Content-Length", "2")]);
    binary += "\r\n";
    let binary = [binary.as_bytes(), b"\xff\xfe"].concat();
    let reply = admin.raw(&binary);
    assert_contains(reply.refusal(400), "it is not UTF-8");
}

#[test]
fn a_body_must_be_an_entry_with_a_description() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    admin.create("/t", &topic_entry(""));
    let foreign = "<content><QueueDescription xmlns=\"urn:other\"/></content>";
    let (no_entry, no_description) = (
        "The body must be an Atom entry with a content in it.",
        "allowed: QueueDescription or TopicDescription.",
    );
    for (body, text) in [
        ("<entry/>", no_entry),
        (&format!("<entry {ATOM}/>"), no_entry),
        (&format!("<feed {ATOM}><content/></feed>"), no_entry),
        (&format!("<entry {ATOM}><content/></entry>"), no_description),
        (&format!("<entry {ATOM}>{foreign}</entry>"), no_description),
        (&rule(&sql_filter("a = 1")), no_description),
    ] {
        let found = refused(&admin, body);
        assert_contains(&found, text);
    }
    let reply = admin.put("/t/Subscriptions/s", &queue(""));
    let text = "allowed: SubscriptionDescription.";
    assert_contains(reply.refusal(400), text);
    assert_starts_with(&admin.get("/new").expect(200).body, "<feed");
}

#[test]
fn an_empty_description_creates_a_queue_with_defaults() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let body = "<?xml version='1.0' encoding='utf-8'?>\n<ns0:entry xmlns:ns0=\"http://www.w3.org/2005/Atom\">\
                <ns0:content type=\"application/xml\"><QueueDescription \
                xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" /></ns0:content></ns0:entry>";
    admin.create("/new", body);
    admin.create("/bom", &format!("\u{feff}{body}"));
}

#[test]
fn an_administration_body_may_be_chunked() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let body = queue("<MaxDeliveryCount>3</MaxDeliveryCount>");
    let mut request = admin.head("PUT", "/new", &[("Transfer-Encoding", "chunked")]) + "\r\n";
    for chunk in body.as_bytes().chunks(50) {
        let text = String::from_utf8_lossy(chunk);
        request += &format!("{:x}\r\n{text}\r\n", chunk.len());
    }
    request += "0\r\n\r\n";
    let made = admin.raw(request.as_bytes()).expect(201);
    assert_eq!(made.value("MaxDeliveryCount"), "3");
}

#[test]
fn a_text_is_as_long_as_dotnet_counts() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let metadata = |count: usize| {
        let text = "😀".repeat(count);
        queue(&format!("<UserMetadata>{text}</UserMetadata>"))
    };
    admin.create("/fits", &metadata(512));
    let reply = admin.put("/new", &metadata(513));
    let found = reply.refusal(400);
    assert_contains(found, "allowed: at most 1024 characters.");
    assert_contains(found, "Actual value was 1026 characters.");
}

#[test]
fn an_administration_body_is_limited_in_size() {
    let (bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let long = queue(&format!(
        "<UserMetadata>{}</UserMetadata>",
        "x".repeat(2 << 20)
    ));
    let reply = admin.put("/new", &long);
    assert_contains(reply.refusal(413), "larger than 1048576 bytes");
    // One that never ends is answered while it arrives.
    let mut stream = TcpStream::connect(bus.http.0).expect("HTTP accepts");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("a time-out can be set");
    let head = admin.head("PUT", "/new", &[("Transfer-Encoding", "chunked")]) + "\r\n";
    stream
        .write_all(head.as_bytes())
        .expect("a request can be written");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x1_0000));
    for _ in 0..64 {
        if stream.write_all(chunk.as_bytes()).is_err() {
            break;
        }
    }
    let mut answer = [0; 12];
    let read = stream.read_exact(&mut answer);
    assert!(read.is_err() || &answer == b"HTTP/1.1 413", "{answer:?}");
    admin.create("/new", &queue(""));
}

#[test]
fn an_unauthorized_request_is_refused_before_its_body() {
    let bus = Bus::with_queues(&["q"]);
    let unauthorized = bus.admin_as(None);
    let head = unauthorized.head("PUT", "/new", &[("Content-Length", "1000000")]) + "\r\n";
    unauthorized.raw(head.as_bytes()).refusal(401);
}

#[test]
fn a_truncated_administration_body_changes_nothing() {
    let (_bus, admin) = Bus::with_queues(&["q"]).with_admin();
    let reply = admin.cut_short("PUT", "/new", &queue("")).expect(400);
    assert_contains(
        &reply.body,
        "The body ended before all of its bytes had come.",
    );
    assert_starts_with(&admin.get("/new").expect(200).body, "<feed");
}

/// One request and the answer that it must have.
struct Exchange {
    request: String,
    body: String,
    status: u16,
    headers: Vec<(String, String)>,
    answer: String,
}

#[test]
fn requests_of_the_python_sdk_get_the_expected_responses() {
    play(include_str!("../../../../fixtures/admin/python.txt"));
}

#[test]
fn requests_of_the_javascript_sdk_get_the_expected_responses() {
    play(include_str!("../../../../fixtures/admin/javascript.txt"));
}

#[test]
fn requests_of_the_go_sdk_get_the_expected_responses() {
    play(include_str!("../../../../fixtures/admin/go.txt"));
}

#[test]
fn requests_of_the_java_sdk_get_the_expected_responses() {
    play(include_str!("../../../../fixtures/admin/java.txt"));
}

#[test]
fn requests_of_the_dotnet_sdk_get_the_expected_responses() {
    play(include_str!("../../../../fixtures/admin/dotnet.txt"));
}

#[test]
fn requests_of_service_bus_explorer_get_the_expected_responses() {
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

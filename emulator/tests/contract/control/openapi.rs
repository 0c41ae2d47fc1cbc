//! The description of the control API has the schemas of its types, and the emulator gives every described response as
//! described.

use std::collections::BTreeSet;
use std::io::Read as _;

use boon::{Compiler, Draft, Schemas};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use servicebus_control_api::{AssertionKind, openapi};
use servicebus_emulator::{Options, TlsOptions, UserCertificate};

use crate::support::*;

/// Renews the schemas of types in the file: `UPDATE_OPENAPI=1 cargo test -p servicebus-emulator --test contract openapi`.
const UPDATE: &str = "UPDATE_OPENAPI";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

/// Schemas that are written by hand: of configurations and assertions, which separate parsers read.
const WITHOUT_TYPE: [&str; 10] = [
    "AssertedText",
    "Assertion",
    "Bytes",
    "DeclaredNamespace",
    "Expression",
    "NamedRule",
    "Rule",
    "Selector",
    "ShortTopology",
    "Topology",
];

/// Requests in order, one per line: the status of the response, method, path and body. In a path `~` is the existing
/// namespace, and `!` a missing one; the body `large` exceeds the usual limit, `larger` any limit.
const REQUESTS: &str = include_str!("openapi/requests.txt");

/// Requests for each kind of entity: `kind` is its name, `new` the path of a missing one, `bad` an invalid path.
const REQUESTS_OF_A_KIND: &str = r#"
201 PUT ~/kinds/new
200 PUT ~/kinds/new {"Status":"Disabled"}
200 GET ~/kinds/new
400 PUT ~/kinds/bad
404 PUT !/kinds/new
413 PUT ~/kinds/new large
200 GET ~/kinds
404 GET !/kinds
404 GET !/kinds/new
400 GET ~/kinds/bad
400 DELETE ~/kinds/bad
204 DELETE ~/kinds/new
404 DELETE ~/kinds/new
"#;

/// Described responses that other tests get, in the same form; here `~` is any namespace.
const SEEN_ELSEWHERE: &str = "\
# Only a bug in the emulator causes it: `tests/harness/health.rs`.
503 GET /health
503 GET /$emulator/v1/health
# Needs 1,000 namespaces and a body of 16 MiB: `virtual_namespaces/refusals.rs`.
403 PUT ~
413 PUT ~
403 POST /$emulator/v1/namespaces
413 POST /$emulator/v1/namespaces
# Needs 256 waiting assertions: `assertions.rs`.
409 POST ~/assertions
# Not JSON: `messages.rs`.
200 GET ~/messages/{number}/body
# Does not end, and needs seventeen clients: `changes.rs`.
200 GET ~/changes
503 GET ~/changes
# Not JSON: `metrics.rs`.
200 GET /$emulator/v1/metrics
# Does not end: `tests/contract/process`.
200 GET /$emulator/v1/hold";

const NAMESPACE: &str = "/$emulator/v1/namespaces/sbemulatorns";
/// The default limit of a body, in bytes.
const LARGEST_BODY: usize = 1024 * 1024;
const MAX_FAULTS: usize = 1_000;
const MAX_HOLDS: usize = 1_000;
const MAX_EXPLORATIONS: usize = 16;
const MAX_ENTITIES: usize = 10_000;
const MAX_SUBSCRIPTIONS: usize = 2_000;

/// Method, path and status of an answer.
type Answered = (String, String, u16);

fn description() -> Value {
    let kept = std::fs::read(FILE).expect("the file can be read");
    serde_json::from_slice(&kept).expect("the file is JSON")
}

#[test]
fn the_schemas_of_the_description_are_those_of_the_types() {
    let mut document = description();
    let schemas = document["components"]["schemas"].as_object_mut();
    let schemas = schemas.expect("schemas are an object");
    schemas.retain(|name, _| WITHOUT_TYPE.contains(&name.as_str()));
    schemas.extend(openapi::schemas());
    let made = format!("{document:#}\n");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(FILE, &made).expect("the file can be written");
        // The served description was built in before.
        return;
    }
    let kept = std::fs::read_to_string(FILE).expect("the file can be read");
    assert!(
        kept == made,
        "emulator/openapi.json is not what the types say; renew it with {UPDATE}=1"
    );
    let served = Bus::with_queues(&["q"])
        .http
        .get("/$emulator/v1/openapi.json");
    let head = served.head.to_lowercase();
    assert_contains(&head, "content-type: application/json");
    assert!(served.ok() == document, "another one is served");
}

#[test]
fn assertions_are_described_with_their_kinds_and_the_fields_of_each() {
    let document = description();
    let described = &document["components"]["schemas"]["Assertion"];
    let kinds = AssertionKind::ALL.map(AssertionKind::name);
    assert_eq!(described["properties"]["kind"]["enum"], json!(kinds));
    for kind in AssertionKind::ALL {
        let fields = Vec::from_iter(kind.takes()).join(", ");
        let text = described["description"].as_str().unwrap_or_default();
        assert_contains(text, &format!(" {}: {fields}.", kind.name()));
        for field in kind.takes() {
            assert!(described["properties"][field].is_object(), "{field}");
        }
    }
}

#[test]
fn every_described_response_occurs_and_matches_its_schema() {
    let mut tour = RecordingClient::begin();
    REQUESTS.lines().for_each(|line| tour.ask(line));
    for (kind, new, bad) in [
        ("queue", "made/here", "a%20b"),
        ("topic", "made", "a%20b"),
        ("subscription", "t/Subscriptions/made", "t"),
    ] {
        let requests = REQUESTS_OF_A_KIND.replace("kind", kind);
        let requests = requests.replace("/new", &format!("/{new}"));
        let requests = requests.replace("/bad", &format!("/{bad}"));
        requests.lines().for_each(|line| tour.ask(line));
    }
    tour.ask("409 PUT ~/queues/t");
    tour.ask("409 PUT ~/topics/q");
    tour.locks();
    tour.limits();
    tour.certificates();
    let mut described = answers(&tour.document);
    for line in SEEN_ELSEWHERE.lines().filter(|line| !line.starts_with('#')) {
        let (status, method, path) = parts(line).expect("a response");
        let path = path.replace('~', "/$emulator/v1/namespaces/{namespace}");
        assert!(
            described.remove(&(method.to_owned(), path, status)),
            "{line}"
        );
    }
    let missing = Vec::from_iter(described.difference(&tour.seen));
    assert!(missing.is_empty(), "described, and not seen: {missing:#?}");
}

#[test]
fn responses_common_to_all_operations_are_described() {
    let document = description();
    let responses = &document["components"]["responses"];
    let bus = Bus::with_queues(&["q"]);
    let post =
        "POST /$emulator/v1/clock/freeze HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n";
    for (response, headers, status) in [
        ("Malformed", "", 400),
        ("Misdirected", "Host: evil.example\r\n", 421),
        (
            "Forbidden",
            "Host: x\r\nOrigin: http://evil.example\r\n",
            403,
        ),
    ] {
        let answer = bus.http.raw(format!("{post}{headers}\r\n").as_bytes());
        assert_eq!(answer.status, status, "{answer:?}");
        judge(&document, content(&responses[response]), &answer.body);
    }
    // No client on the loopback gets 401 (`src/http/guard/tests.rs`); 408 needs a body that does not arrive (`errors.rs`).
    let names = responses.as_object().expect("responses").keys();
    let expected = [
        "Forbidden",
        "Malformed",
        "Misdirected",
        "RequestTimeout",
        "Unauthorized",
    ];
    assert!(names.eq(expected), "{responses:#}");
    assert_eq!(bus.http.get("/$emulator/v1/clock").ok()["frozen"], false);
}

/// Status, method and path of a request.
fn parts(line: &str) -> Option<(u16, &str, &str)> {
    let mut parts = line.splitn(4, ' ');
    let (status, method, path) = (parts.next()?, parts.next()?, parts.next()?);
    Some((status.parse().expect("a status"), method, path))
}

/// Sends a request, and records the response.
struct RecordingClient {
    document: Value,
    bus: Bus,
    seen: BTreeSet<Answered>,
}

impl RecordingClient {
    fn begin() -> Self {
        let mut tour = Self {
            document: description(),
            bus: Bus::with_queues(&["q"]),
            seen: BTreeSet::new(),
        };
        tour.ask(r#"201 PUT ~/queues/s {"RequiresSession":true}"#);
        tour.ask("201 PUT ~/topics/t");
        tour.ask("201 PUT ~/subscriptions/t/Subscriptions/all");
        tour
    }

    /// Sends a request in the form of `REQUESTS`, and checks it and its response.
    fn ask(&mut self, line: &str) {
        let Some((status, method, path)) = parts(line) else {
            assert_eq!(line, "");
            return;
        };
        let large = " ".repeat(8 * LARGEST_BODY + 1);
        let body = line.splitn(4, ' ').nth(3).map(|body| match body {
            "large" => &large[..=LARGEST_BODY],
            "larger" => &large,
            body => body,
        });
        let path = path.replace('~', NAMESPACE);
        let path = path.replace('!', "/$emulator/v1/namespaces/nobody");
        let answer = self.bus.http.request(method, &path, body);
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        let template = self.template(&path);
        if let (Some(body), 200..300) = (body, status) {
            let operation = &self.document["paths"][&template][method.to_lowercase()];
            let body = serde_json::from_str(body).expect("what is granted is JSON");
            judge(&self.document, content(&operation["requestBody"]), &body);
        }
        self.note(method, template, status, &answer.body);
    }

    /// Records a response, which must be as described.
    fn note(&mut self, method: &str, template: String, status: u16, body: &Value) {
        let operation = &self.document["paths"][&template][method.to_lowercase()];
        let answer = &operation["responses"][status.to_string()];
        assert!(
            answer.is_object(),
            "{method} {template} {status} is not described: {body}"
        );
        judge(&self.document, content(answer), body);
        self.seen.insert((method.to_owned(), template, status));
    }

    /// Returns the path under which it is described. The name of an entity contains slashes.
    fn template(&self, path: &str) -> String {
        let path = path.split('?').next().unwrap_or_default();
        let fits = |template: &str| {
            let mut rest = path;
            for segment in template.split('/') {
                let (first, others) = rest.split_once('/').unwrap_or((rest, ""));
                match segment {
                    "{queue}" | "{topic}" | "{subscription}" => return !rest.is_empty(),
                    segment if segment == first || segment.starts_with('{') => rest = others,
                    _ => return false,
                }
            }
            rest.is_empty()
        };
        let templates = self.document["paths"].as_object().expect("paths").keys();
        let found = { templates }.find(|template| fits(template));
        found
            .unwrap_or_else(|| panic!("{path} is not described"))
            .clone()
    }

    /// Responses while a client holds locks, and the explanation of an encoded message.
    fn locks(&mut self) {
        let mut peer = self.bus.client();
        let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
        peer.send(&sender, &Message::new("held"));
        peer.receive_one(&receiver);
        self.ask(r#"408 POST ~/settled {"within":0}"#);
        self.ask(r#"200 POST ~/settled {"within":0,"refuse":false}"#);
        // The lock is due meanwhile.
        self.ask(r#"408 POST ~/clock/advance {"seconds":3600,"steps":0}"#);
        self.ask(r#"408 POST /$emulator/v1/clock/advance {"seconds":3600,"steps":0}"#);
        self.ask("200 GET ~/timeline?entity=q&message_id=held");
        send_all(&mut peer, "s", &[("m", "cart-7")]);
        peer.accept("s", "cart-7");
        self.ask("200 GET ~/sessions?entity=s");
        self.ask(r#"204 POST ~/sessions/lose {"entity":"s","session":"cart-7"}"#);
        let target = format!("{NAMESPACE}/explain?subscription=t/Subscriptions/all");
        // Its body is a null value.
        let message = b"\x00\x53\x77\x40";
        let answer = self.bus.http.send("POST", &target, &[], message);
        self.note("POST", self.template(&target), answer.status, &answer.body);
    }

    /// Refusals because a limit is reached.
    fn limits(&mut self) {
        let fault = r#"{"operation":"send","effect":"lose-reply"}"#;
        for _ in 1..MAX_FAULTS {
            self.bus
                .http
                .request("POST", &format!("{NAMESPACE}/faults"), Some(fault))
                .ok();
        }
        self.ask(&format!("409 POST ~/faults {fault}"));
        let hold = Some(r#"{"seconds":600}"#);
        for _ in 0..MAX_HOLDS {
            let path = format!("{NAMESPACE}/clock/hold");
            self.bus.http.request("POST", &path, hold).ok();
        }
        self.ask(r#"409 POST ~/clock/hold {"seconds":600}"#);
        self.ask(r#"409 POST /$emulator/v1/clock/hold {"seconds":600}"#);
        let exploration = r#"{"parties":["worker"]}"#;
        for _ in 0..MAX_EXPLORATIONS {
            let path = "/$emulator/v1/explorations";
            self.bus.http.request("POST", path, Some(exploration)).ok();
        }
        self.ask(&format!(
            "409 POST /$emulator/v1/explorations {exploration}"
        ));
        self.ask("204 DELETE ~/faults");
        let full = full_namespace();
        self.ask(&format!("201 PUT /$emulator/v1/namespaces/full {full}"));
        self.ask("403 PUT /$emulator/v1/namespaces/full/queues/more");
        self.ask("403 PUT /$emulator/v1/namespaces/full/topics/more");
        self.ask("403 PUT /$emulator/v1/namespaces/full/subscriptions/t/Subscriptions/more");
    }

    /// The authority's certificates, with none and where they cannot be stored.
    fn certificates(&mut self) {
        let path = "/$emulator/v1/ca.pem";
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = self.bus.http.text(request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert_starts_with(head, "HTTP/1.1 200");
        self.note("GET", path.to_owned(), 200, &body.into());
        let given = UserCertificate {
            chain: "chain.pem".into(),
            key: "key.pem".into(),
        };
        let bus = Bus::started(Options {
            tls: TlsOptions {
                certificate: Some(given),
                ..TlsOptions::default()
            },
            ..Options::default()
        });
        let file = TemporaryFile::new("");
        let process = Process::start(&["--amqps-port", "off", "--tls-directory", file.path()]);
        for (http, status) in [(bus.http, 404), (process.http(), 500)] {
            let answer = http.get(path);
            assert_eq!(answer.status, status, "{answer:?}");
            self.note("GET", path.to_owned(), status, &answer.body);
        }
    }
}

/// The maximum number of queues and topics, and of subscriptions of a topic.
fn full_namespace() -> Value {
    let list = |count: usize| {
        let entities = (0..count).map(|number| json!({"Name": format!("n{number}")}));
        Value::from_iter(entities)
    };
    let topic = json!({"Name": "t", "Subscriptions": list(MAX_SUBSCRIPTIONS)});
    let namespace = json!({"Name": "full", "Queues": list(MAX_ENTITIES - 1), "Topics": [topic]});
    json!({"UserConfig": {"Namespaces": [namespace]}})
}

/// Every answer that is described.
fn answers(document: &Value) -> BTreeSet<Answered> {
    let members = |value: &Value| value.as_object().expect("an object").clone().into_iter();
    let mut answers = BTreeSet::new();
    for (path, methods) in members(&document["paths"]) {
        for (method, operation) in members(&methods) {
            for (status, _) in members(&operation["responses"]) {
                let status = status.parse().expect("a status");
                answers.insert((method.to_uppercase(), path.clone(), status));
            }
        }
    }
    answers
}

/// The schema of a body, whatever its media type.
fn content(described: &Value) -> Option<&Value> {
    let (_, media) = described["content"].as_object()?.iter().next()?;
    media.get("schema")
}

/// Panics unless a value matches a schema; without one it must be empty.
fn judge(document: &Value, schema: Option<&Value>, value: &Value) {
    let Some(schema) = schema else {
        assert_eq!(*value, Value::Null);
        return;
    };
    // By which schemas refer to each other; nothing is fetched.
    let url = "http://localhost/openapi.json";
    let mut resolved = schema.clone();
    // References are to the components of the document.
    resolved["components"] = document["components"].clone();
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.enable_format_assertions();
    compiler
        .add_resource(url, resolved)
        .expect("a schema is JSON");
    let mut schemas = Schemas::new();
    let compiled = compiler.compile(url, &mut schemas);
    let index = compiled.unwrap_or_else(|error| panic!("{schema}: {error:#}"));
    if let Err(error) = schemas.validate(value, index) {
        panic!("{error:#}\nin {value:#}");
    }
}

#[test]
fn the_openapi_description_is_compressed_for_clients_accepting_gzip() {
    let bus = Bus::with_queues(&["q"]);
    let path = "/$emulator/v1/openapi.json";
    for (accepted, is_packed) in [
        ("gzip", true),
        ("deflate, GZIP;q=0.5, br", true),
        ("identity", false),
        ("gzip;q=0", false),
        ("gzip; q=0.000", false),
    ] {
        let headers = format!("Accept-Encoding: {accepted}\r\nConnection: close\r\n");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        let answer = bus.http.exchange(request.as_bytes());
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = answer.split_at(end.expect("an answer has a head") + 4);
        let head = String::from_utf8_lossy(head).to_lowercase();
        assert_contains(&head, "vary: accept-encoding");
        let packed = head.contains("content-encoding: gzip");
        assert_eq!(packed, is_packed, "{accepted}: {head}");
        let mut text = String::new();
        match packed {
            true => GzDecoder::new(body).read_to_string(&mut text),
            false => { body }.read_to_string(&mut text),
        }
        .expect("the description is text");
        let served: Value = serde_json::from_str(&text).expect("the description is JSON");
        assert!(served == description(), "{accepted}: another one is served");
    }
}

//! A tour of the control API: one request for each answer that it can give.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use description::Answered;

const ROOT: &str = "/$emulator/v1";
const NAMESPACE: &str = "/$emulator/v1/namespaces/{namespace}";
/// Faults that a namespace may have.
const MOST_FAULTS: usize = 1_000;
/// Of a body where nothing else is said, in bytes.
const MOST: usize = 1024 * 1024;
const MOST_ENTITIES: usize = 10_000;
const MOST_SUBSCRIPTIONS: usize = 2_000;
const MOST_NAMESPACES: usize = 1_000;

/// Asks, and keeps what was seen.
pub(super) struct Tour<'a> {
    description: &'a Description,
    bus: Bus,
    pub(super) seen: BTreeSet<Answered>,
}

/// A request: the path as it is described, the names in it, the query, and the body.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
    names: &'a [(&'a str, &'a str)],
    query: &'a str,
    body: Option<String>,
}

impl<'a> Request<'a> {
    /// `METHOD /path/{name}`; the namespace is the default one unless it is said.
    fn new(line: &'a str) -> Self {
        let (method, path) = line.split_once(' ').expect("a method and a path");
        Self {
            method,
            path,
            names: &[],
            query: "",
            body: None,
        }
    }

    fn names(self, names: &'a [(&'a str, &'a str)]) -> Self {
        Self { names, ..self }
    }

    fn query(self, query: &'a str) -> Self {
        Self { query, ..self }
    }

    fn body(self, body: &Value) -> Self {
        Self {
            body: Some(body.to_string()),
            ..self
        }
    }

    fn text(self, body: impl Into<String>) -> Self {
        Self {
            body: Some(body.into()),
            ..self
        }
    }

    /// Where it goes.
    fn target(&self) -> String {
        let mut target = self.path.to_owned();
        for (name, value) in self.names {
            target = target.replace(&format!("{{{name}}}"), value);
        }
        target = target.replace("{namespace}", "sbemulatorns");
        assert!(!target.contains('{'), "{target}: a name is missing");
        target + self.query
    }
}

impl<'a> Tour<'a> {
    pub(super) fn begin(description: &'a Description) -> Self {
        let bus = Bus::with_queues(&["q"]);
        let path = format!("{ROOT}/namespaces/sbemulatorns");
        for (kind, name, body) in [
            ("queues", "s", json!({"RequiresSession": true})),
            ("topics", "t", json!({})),
            ("subscriptions", "t/Subscriptions/all", json!({})),
        ] {
            let path = format!("{path}/{kind}/{name}");
            bus.http.request("PUT", &path, Some(&body.to_string())).ok();
        }
        Self {
            description,
            bus,
            seen: BTreeSet::new(),
        }
    }

    /// Asks, and judges the answer, which must have this status.
    fn ask(&mut self, request: &Request<'_>, status: u16) -> Value {
        let (method, body) = (request.method, request.body.as_deref());
        let answer = self.bus.http.request(method, &request.target(), body);
        assert_eq!(
            answer.status,
            status,
            "{method} {}: {answer:?}",
            request.target()
        );
        if let (Some(body), 200..300) = (body.filter(|body| !body.is_empty()), status) {
            let body = serde_json::from_str(body).expect("what is granted is JSON");
            self.description.check_request(method, request.path, &body);
        }
        self.note(method, request.path, status, answer.body)
    }

    /// The same without names and body, at another emulator.
    pub(super) fn at(&mut self, http: Http, line: &str, status: u16) {
        let request = Request::new(line);
        let answer = http.request(request.method, request.path, None);
        assert_eq!(answer.status, status, "{line}: {answer:?}");
        self.note(request.method, request.path, status, answer.body);
    }

    /// Holds an emulator until it stops: an answer that does not end before.
    pub(super) fn hold(&mut self) {
        let process = Process::start(&[]);
        let path = "/$emulator/v1/hold";
        let mut held = Peer::connect(process.http().0);
        held.write(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        assert_eq!(held.read_header(), *b"HTTP/1.1");
        assert_eq!(held.read_header(), *b" 200 OK\r");
        process.signal("TERM");
        assert_eq!(process.ended().code, Some(0));
        self.note("GET", path, 200, Value::Null);
    }

    fn note(&mut self, method: &str, path: &str, status: u16, body: Value) -> Value {
        let answered = (method.to_owned(), path.to_owned(), status);
        self.description.check_answer(&answered, &body);
        self.seen.insert(answered);
        body
    }

    /// A body that is no JSON, too large, and of another form: 400, 413 and 422.
    fn refuse_bodies(&mut self, line: &str) {
        self.ask(&Request::new(line).text("{"), 400);
        self.ask(&Request::new(line).text(" ".repeat(MOST + 1)), 413);
        self.ask(&Request::new(line).body(&json!({"unknown": 1})), 422);
    }

    pub(super) fn process(&mut self) {
        for path in [
            "/health",
            "/$emulator/v1/health",
            "/$emulator/v1/openapi.json",
        ] {
            self.ask(&Request::new(&format!("GET {path}")), 200);
        }
        let line = format!("GET {ROOT}/ca.pem");
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = self.bus.http.text(request.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        self.note("GET", &format!("{ROOT}/ca.pem"), 200, body.into());
    }

    pub(super) fn namespaces(&mut self) {
        self.ask(&Request::new(&format!("GET {ROOT}/namespaces")), 200);
        let put = format!("PUT {NAMESPACE}");
        let second = [("namespace", "second")];
        let nobody = [("namespace", "nobody")];
        let topology = self.ask(&Request::new(&format!("GET {NAMESPACE}/topology")), 200);
        self.ask(&Request::new(&put).names(&second).text("{"), 400);
        self.ask(&Request::new(&put).names(&second).body(&topology), 409);
        let mut own = topology.clone();
        own["UserConfig"]["Namespaces"][0]["Emulator"]["Keys"] = json!([{"Name": "k", "Key": "s"}]);
        self.ask(&Request::new(&put).names(&second).body(&own), 201);
        self.ask(&Request::new(&put).names(&second), 409);
        self.ask(
            &Request::new(&format!("POST {NAMESPACE}/reset")).names(&second),
            204,
        );
        let delete = format!("DELETE {NAMESPACE}");
        self.ask(&Request::new(&delete).names(&second), 204);
        self.ask(&Request::new(&delete).names(&nobody), 404);
        self.ask(&Request::new(&delete), 409);
        self.ask(
            &Request::new(&format!("GET {NAMESPACE}/topology")).names(&nobody),
            404,
        );
        self.ask(
            &Request::new(&format!("POST {NAMESPACE}/reset")).names(&nobody),
            404,
        );
    }

    pub(super) fn clocks(&mut self) {
        let nobody = [("namespace", "nobody")];
        for (root, is_first) in [(ROOT, true), (NAMESPACE, false)] {
            for (line, body) in [
                (format!("GET {root}/clock"), None),
                (
                    format!("POST {root}/clock/advance"),
                    Some(json!({"seconds": 1.5})),
                ),
                (format!("POST {root}/clock/freeze"), None),
                (format!("POST {root}/clock/resume"), None),
            ] {
                let request = || match &body {
                    Some(body) => Request::new(&line).body(body),
                    None => Request::new(&line),
                };
                self.ask(&request(), 200);
                if !is_first {
                    self.ask(&request().names(&nobody), 404);
                }
            }
            let advance = format!("POST {root}/clock/advance");
            self.ask(&Request::new(&advance).body(&json!({"seconds": -1})), 400);
            self.refuse_bodies(&advance);
        }
        let settled = format!("POST {NAMESPACE}/settled");
        let ask = |body: Value| Request::new(&settled).body(&body);
        self.ask(&ask(json!({"within": 5, "entity": null})), 200);
        self.ask(&ask(json!({"entity": "nobody"})), 404);
        self.refuse_bodies(&settled);
        let mut peer = self.bus.client();
        let (sender, receiver) = (peer.sender("q"), peer.receiver("q"));
        peer.send(&sender, &Message::new("held"));
        peer.receive_one(&receiver);
        self.ask(&ask(json!({"within": 0})), 408);
        for root in [ROOT, NAMESPACE] {
            let advance = format!("POST {root}/clock/advance");
            // The lock is due on the way.
            let advance = Request::new(&advance);
            self.ask(&advance.body(&json!({"seconds": 3600, "steps": 0})), 408);
        }
    }

    pub(super) fn messages(&mut self) {
        let get = |line: &str| format!("GET {NAMESPACE}/{line}");
        let nobody = [("namespace", "nobody")];
        let (counts, timeline) = (get("counts"), get("timeline"));
        self.ask(&Request::new(&counts).query("?entity=q"), 200);
        self.ask(&Request::new(&get("receivers")).query("?entity=q"), 200);
        self.ask(&Request::new(&get("receivers")), 400);
        self.ask(
            &Request::new(&get("receivers"))
                .query("?entity=q")
                .names(&nobody),
            404,
        );
        self.ask(&Request::new(&counts), 400);
        self.ask(
            &Request::new(&counts).query("?entity=q").names(&nobody),
            404,
        );
        let told = self.ask(
            &Request::new(&timeline).query("?entity=q&message_id=held"),
            200,
        );
        assert!(
            told["events"]
                .as_array()
                .is_some_and(|events| events.len() > 1),
            "{told}"
        );
        self.ask(&Request::new(&timeline).query("?entity=q&entity=q"), 400);
        self.ask(
            &Request::new(&timeline).query("?entity=q&sequence_number=first"),
            400,
        );
        self.ask(&Request::new(&timeline).query("?entity=nobody"), 404);

        let explain = format!("POST {NAMESPACE}/explain");
        let all = "?subscription=t/Subscriptions/all";
        // A message whose body is a null value.
        let message = b"\x00\x53\x77\x40";
        let target = Request::new(&explain).query(all).target();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            message.len()
        );
        let answer = self.bus.http.raw(&[head.as_bytes(), message].concat());
        self.note(
            "POST",
            &format!("{NAMESPACE}/explain"),
            answer.status,
            answer.body,
        );
        self.ask(&Request::new(&explain).query(all).text("no message"), 400);
        self.ask(
            &Request::new(&explain)
                .query("?subscription=nobody")
                .text(""),
            404,
        );
        self.ask(
            &Request::new(&explain).query(all).text(" ".repeat(MOST + 1)),
            413,
        );
    }

    pub(super) fn faults(&mut self) {
        let all = |method: &str| format!("{method} {NAMESPACE}/faults");
        let one = |method: &str| format!("{method} {NAMESPACE}/faults/{{id}}");
        let nobody = [("namespace", "nobody")];
        let fault =
            json!({"operation": "discharge", "entity": "q", "nth": 2, "effect": "lose-reply"});
        let set = self.ask(&Request::new(&all("POST")).body(&fault), 201);
        let chance = json!({
            "operation": "send",
            "property": {"name": "kind", "value": 1},
            "random": {"seed": 7, "probability": 0.5},
            "effects": [{"reject": {"condition": "com.microsoft:server-busy"}}, {"delay": {"seconds": 1}}, {"drop": {}}],
        });
        let by_chance = self.ask(&Request::new(&all("POST")).body(&chance), 201);
        let id = set["id"].to_string();
        self.ask(&Request::new(&all("POST")).body(&fault).names(&nobody), 404);
        self.refuse_bodies(&all("POST"));
        let listed = self.ask(&Request::new(&all("GET")), 200);
        assert_eq!(listed["faults"], json!([set, by_chance]));
        for _ in 2..MOST_FAULTS {
            self.ask(&Request::new(&all("POST")).body(&fault), 201);
        }
        self.ask(&Request::new(&all("POST")).body(&fault), 409);
        for method in ["GET", "DELETE"] {
            self.ask(&Request::new(&all(method)).names(&nobody), 404);
            self.ask(&Request::new(&one(method)).names(&[("id", "9999")]), 404);
        }
        self.ask(&Request::new(&one("GET")).names(&[("id", &id)]), 200);
        self.ask(&Request::new(&one("DELETE")).names(&[("id", &id)]), 204);
        self.ask(&Request::new(&all("DELETE")), 204);
        let update = format!("POST {NAMESPACE}/service-update");
        self.ask(&Request::new(&update), 204);
        self.ask(&Request::new(&update).names(&nobody), 404);
    }

    pub(super) fn sessions(&mut self) {
        let sessions = format!("GET {NAMESPACE}/sessions");
        let mut peer = self.bus.client();
        send_all(&mut peer, "s", &[("m", "cart-7")]);
        peer.accept("s", "cart-7");
        let listed = self.ask(&Request::new(&sessions).query("?entity=s"), 200);
        assert_eq!(listed["sessions"][0]["id"], "cart-7");
        self.ask(&Request::new(&sessions).query("?entity=q"), 400);
        self.ask(&Request::new(&sessions).query("?entity=nobody"), 404);
        let lose = format!("POST {NAMESPACE}/sessions/lose");
        let lock = json!({"entity": "s", "session": "cart-7"});
        self.ask(&Request::new(&lose).body(&lock), 204);
        self.ask(&Request::new(&lose).body(&lock), 404);
        self.refuse_bodies(&lose);
    }

    pub(super) fn entities(&mut self) {
        let nobody = [("namespace", "nobody")];
        for (kind, name, other, wrong) in [
            ("queue", "made/here", "t", "a%20b"),
            ("topic", "made", "q", "a%20b"),
            ("subscription", "t/Subscriptions/made", "", "t"),
        ] {
            let all = format!("GET {NAMESPACE}/{kind}s");
            let one = |method: &str| format!("{method} {NAMESPACE}/{kind}s/{{{kind}}}");
            let named = |name| [(kind, name)];
            self.ask(&Request::new(&one("PUT")).names(&named(name)), 201);
            let shown = self.ask(&Request::new(&one("GET")).names(&named(name)), 200);
            let changed = json!({"Status": "Disabled"});
            self.ask(
                &Request::new(&one("PUT")).names(&named(name)).body(&changed),
                200,
            );
            self.description.check_request(
                "PUT",
                Request::new(&one("PUT")).path,
                &shown["properties"],
            );
            self.ask(&Request::new(&all), 200);
            self.ask(&Request::new(&all).names(&nobody), 404);
            let unknown = if kind == "subscription" {
                "t/Subscriptions/x"
            } else {
                "x"
            };
            let ends = [("namespace", "nobody"), (kind, unknown)];
            for (method, missing) in [("GET", 404), ("PUT", 404), ("DELETE", 404)] {
                self.ask(&Request::new(&one(method)).names(&ends), missing);
                self.ask(&Request::new(&one(method)).names(&named(wrong)), 400);
            }
            let too_large = " ".repeat(MOST + 1);
            self.ask(
                &Request::new(&one("PUT"))
                    .names(&named(name))
                    .text(too_large),
                413,
            );
            if !other.is_empty() {
                self.ask(&Request::new(&one("PUT")).names(&named(other)), 409);
            }
            self.ask(&Request::new(&one("DELETE")).names(&named(name)), 204);
        }
    }

    /// What is refused because there is no room.
    pub(super) fn limits(&mut self) {
        let put = format!("PUT {NAMESPACE}");
        let full = [("namespace", "full")];
        self.ask(&Request::new(&put).names(&full).text(full_namespace()), 201);
        for (kind, name) in [
            ("queue", "more"),
            ("topic", "more"),
            ("subscription", "t/Subscriptions/more"),
        ] {
            let line = format!("{put}/{kind}s/{{{kind}}}");
            let names = [full[0], (kind, name)];
            self.ask(&Request::new(&line).names(&names), 403);
        }
        let larger = " ".repeat(16 * MOST + 1);
        self.ask(
            &Request::new(&put)
                .names(&[("namespace", "large")])
                .text(larger),
            413,
        );
        let names: Vec<String> = (2..MOST_NAMESPACES).map(|n| format!("n{n}")).collect();
        for name in &names {
            let path = format!("{ROOT}/namespaces/{name}");
            self.bus.http.request("PUT", &path, None).ok();
        }
        self.ask(&Request::new(&put).names(&[("namespace", "more")]), 403);
    }
}

/// As many queues and topics as there may be, and a topic with as many subscriptions.
fn full_namespace() -> String {
    let list = |count: usize| {
        (0..count).fold(String::new(), |mut list, number| {
            let comma = if number == 0 { "" } else { "," };
            let _ = write!(list, r#"{comma}{{"Name":"n{number}"}}"#);
            list
        })
    };
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"full","Queues":[{}],"Topics":[{{"Name":"t","Subscriptions":[{}]}}]}}]}}}}"#,
        list(MOST_ENTITIES - 1),
        list(MOST_SUBSCRIPTIONS)
    )
}

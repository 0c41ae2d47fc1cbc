//! A client of the administration API: requests by hand, responses as text.

use std::net::Shutdown;

use servicebus_emulator::auth::{Key, sas};

use super::bus::{Bus, in_an_hour};
use super::http::{Http, Response, header, read_response};

/// Host and port as clients of these tests write them.
pub(crate) const HOST: &str = "localhost:5300";
const CONNECT: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A client with a token, or without.
#[derive(Debug, Clone)]
pub(crate) struct Admin {
    pub(crate) http: Http,
    pub(crate) token: Option<String>,
}

/// Status, head and body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Bus {
    /// A client that may do everything.
    pub(crate) fn admin(&self) -> Admin {
        let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
        self.admin_as(Some(token))
    }

    /// The emulator, and a client of its administration API that may do everything.
    pub(crate) fn with_admin(self) -> (Self, Admin) {
        let admin = self.admin();
        (self, admin)
    }

    /// A queue `q` and a topic `t` with a subscription `s`, and a client that may do everything.
    pub(crate) fn administered() -> (Self, Admin) {
        let (bus, admin) = Self::with_queues(&["q"]).with_admin();
        admin.create("/t", &topic_entry(""));
        admin.create("/t/Subscriptions/s", &subscription(""));
        (bus, admin)
    }

    pub(crate) fn admin_as(&self, token: Option<String>) -> Admin {
        Admin {
            http: self.http,
            token,
        }
    }
}

impl Admin {
    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None)
    }

    /// Makes something.
    pub(crate) fn put(&self, path: &str, body: &str) -> Reply {
        self.send("PUT", path, &[], Some(body))
    }

    /// Makes something, which must be possible, and was not there.
    #[track_caller]
    pub(crate) fn create(&self, path: &str, body: &str) {
        self.put(path, body).expect(201);
    }

    /// Changes something.
    pub(crate) fn change(&self, path: &str, body: &str) -> Reply {
        self.send("PUT", path, &[("If-Match", "*")], Some(body))
    }

    /// Changes something, which must be possible.
    #[track_caller]
    pub(crate) fn update(&self, path: &str, body: &str) {
        self.change(path, body).expect(200);
    }

    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], None)
    }

    /// One request with these headers beside those that every request has.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let mut text = self.head(method, path, headers);
        if let Some(body) = body {
            text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        } else {
            text += "\r\n";
        }
        self.raw(text.as_bytes())
    }

    /// One request whose connection ends a byte before its body does.
    pub(crate) fn cut_short(&self, method: &str, path: &str, body: &str) -> Reply {
        let length = (body.len() + 1).to_string();
        let head = self.head(method, path, &[("Content-Length", &length)]);
        let mut stream = self.http.begin(format!("{head}\r\n{body}").as_bytes());
        stream
            .shutdown(Shutdown::Write)
            .expect("a half can be closed");
        Reply::parse(&read_response(&mut stream))
    }

    /// The head of a request, without the empty line at its end.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n");
        if let Some(token) = &self.token {
            text += &format!("Authorization: {token}\r\n");
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text
    }

    /// Sends these bytes and reads the answer.
    pub(crate) fn raw(&self, request: &[u8]) -> Reply {
        Reply::parse(&self.http.exchange(request))
    }
}

impl Reply {
    pub(crate) fn parse(response: &[u8]) -> Self {
        let Response { status, head, body } = Response::parse(response);
        Self {
            status,
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    /// The answer, which must have this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// The text of the first element of this name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.texts(name).into_iter().next()
    }

    /// The same of one that must be there.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.text(name)
            .unwrap_or_else(|| panic!("no {name}: {}", self.body))
    }

    /// The same of several.
    pub(crate) fn values<const N: usize>(&self, names: [&str; N]) -> [&str; N] {
        names.map(|name| self.value(name))
    }

    /// The texts of all elements of this name, whatever their prefix and attributes.
    pub(crate) fn texts(&self, name: &str) -> Vec<&str> {
        let mut texts = Vec::new();
        for (at, _) in self.body.match_indices('<') {
            let tag = &self.body[at + 1..];
            let end = tag.find(['>', ' ', '/']).unwrap_or(tag.len());
            let local = tag[..end].rsplit(':').next().unwrap_or_default();
            let (Some(open), true) = (tag.find('>'), local == name && end > 0) else {
                continue;
            };
            let inner = &tag[open + 1..];
            let end = inner.find("</").unwrap_or(inner.len());
            let is_empty = tag[..open].ends_with('/');
            texts.push(if is_empty { "" } else { &inner[..end] });
        }
        texts
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name).map(|(_, value)| value)
    }

    /// The text of a refusal with this status, up to its tail, which must be there.
    pub(crate) fn refusal(&self, status: u16) -> &str {
        assert_eq!(self.status, status, "{self:?}");
        let type_ = self.header("content-type");
        assert_eq!(type_, Some("application/xml; charset=utf-8"), "{self:?}");
        assert_eq!(self.value("Code"), status.to_string());
        let detail = self.value("Detail");
        let (text, tail) = detail
            .split_once("TrackingId:")
            .unwrap_or_else(|| panic!("no tail: {detail}"));
        assert!(
            tail.contains(", SystemTracker:") && tail.contains(", Timestamp:"),
            "{tail}"
        );
        text.trim_end()
    }
}

/// The body of a request: a description of this kind with these settings.
pub(crate) fn entry(root: &str, inner: &str) -> String {
    format!(
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\">\
         <{root} xmlns=\"{CONNECT}\" xmlns:i=\"{INSTANCE}\">{inner}</{root}></content></entry>"
    )
}

pub(crate) fn queue(inner: &str) -> String {
    entry("QueueDescription", inner)
}

pub(crate) fn topic_entry(inner: &str) -> String {
    entry("TopicDescription", inner)
}

pub(crate) fn subscription(inner: &str) -> String {
    entry("SubscriptionDescription", inner)
}

/// A rule with this filter and action, each as its element.
pub(crate) fn rule(inner: &str) -> String {
    entry("RuleDescription", inner)
}

/// A SQL filter.
pub(crate) fn sql_filter(expression: &str) -> String {
    format!("<Filter i:type=\"SqlFilter\"><SqlExpression>{expression}</SqlExpression></Filter>")
}

//! An emulator in the test process, with its own threads and ports, and configurations of topics in the format of files.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use servicebus_emulator::{Config, Emulator, Options, TlsOptions};
use servicebus_test_support::stream::Stream;
use tokio::runtime::{Builder, Runtime};

use super::http::Http;
use super::link::Link;
use super::node::Node;
use super::peer::{Open, Peer};

/// An emulator that serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Bus {
    runtime: Option<Runtime>,
    emulator: Option<Emulator>,
    pub(crate) amqp: SocketAddr,
    pub(crate) http: Http,
}

impl Bus {
    /// Serves these queues with the service's defaults.
    pub(crate) fn with_queues(names: &[&str]) -> Self {
        let plain: Vec<_> = names.iter().map(|&name| (name, "")).collect();
        Self::configured(&queues("", &plain))
    }

    /// Serves the queue `q`, which requires sessions.
    pub(crate) fn with_sessions() -> Self {
        Self::with_queue(r#""RequiresSession":true"#)
    }

    /// Serves the queue `q` with these properties.
    pub(crate) fn with_queue(properties: &str) -> Self {
        Self::configured(&queues("", &[("q", properties)]))
    }

    /// Serves a configuration in the format of files.
    pub(crate) fn configured(config: &str) -> Self {
        Self::started(Options {
            config: parse(config),
            ..Options::default()
        })
    }

    /// Serves with these options, but on a free port of the loopback.
    pub(crate) fn started(options: Options) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime can be built");
        let options = Options {
            host: "127.0.0.1".into(),
            amqp_port: 0,
            amqps_port: None,
            http_port: 0,
            tls: TlsOptions {
                // Not the user's.
                directory: Some(env!("CARGO_TARGET_TMPDIR").into()),
                ..options.tls
            },
            ..options
        };
        let emulator = runtime
            .block_on(Emulator::start(options))
            .expect("the emulator starts");
        Self {
            amqp: emulator.endpoints().amqp,
            http: Http(emulator.endpoints().http),
            runtime: Some(runtime),
            emulator: Some(emulator),
        }
    }

    /// A client that may do everything.
    pub(crate) fn client(&self) -> Peer {
        self.client_as(&Open::default())
    }

    /// A client that may do everything, and its link to send to an address.
    pub(crate) fn sender(&self, address: &str) -> (Peer, Link) {
        let mut peer = self.client();
        let sender = peer.sender(address);
        (peer, sender)
    }

    /// The same with a link to receive from the address.
    pub(crate) fn receiver(&self, address: &str) -> (Peer, Link) {
        let mut peer = self.client();
        let receiver = peer.receiver(address);
        (peer, receiver)
    }

    /// The same with the links to a management node.
    pub(crate) fn node(&self, address: &str) -> (Peer, Node) {
        let mut peer = self.client();
        let node = peer.node(address);
        (peer, node)
    }

    /// The emulator, and a client that may do everything.
    pub(crate) fn with_client(self) -> (Self, Peer) {
        let peer = self.client();
        (self, peer)
    }

    /// The same, and its link to send to an address.
    pub(crate) fn with_sender(self, address: &str) -> (Self, Peer, Link) {
        let (bus, mut peer) = self.with_client();
        let sender = peer.sender(address);
        (bus, peer, sender)
    }

    /// The same, and its links to send to an address and to receive from it.
    pub(crate) fn with_links(self, address: &str) -> (Self, Peer, Link, Link) {
        let (bus, mut peer, sender) = self.with_sender(address);
        let receiver = peer.receiver(address);
        (bus, peer, sender, receiver)
    }

    /// A client that may do everything, under a name.
    pub(crate) fn client_as(&self, open: &Open) -> Peer {
        let mut peer = Peer::open(self.amqp, open);
        peer.let_in();
        peer
    }

    /// A client that may do everything and authenticates by this SASL mechanism.
    pub(crate) fn client_by(&self, mechanism: &str) -> Peer {
        let mut peer = Peer::over(Stream::plain(self.amqp));
        assert_eq!(peer.sasl(mechanism, b""), 0);
        peer.introduce(&Open::default());
        peer.let_in();
        peer.settle_down();
        peer
    }

    /// The certificate that clients of TLS trust.
    pub(crate) fn ca(&self) -> String {
        let emulator = self.emulator.as_ref().expect("it serves");
        let pem = emulator.ca_certificate_pem().expect("there is TLS");
        pem.expect("the certificate was made here").to_owned()
    }

    /// A client that has shown no token yet.
    pub(crate) fn unauthenticated_client(&self) -> Peer {
        Peer::open(self.amqp, &Open::default())
    }

    /// Closes all connections and stops.
    pub(crate) fn stop(mut self) {
        if let (Some(emulator), Some(runtime)) = (self.emulator.take(), &self.runtime) {
            runtime.block_on(emulator.stop());
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            drop(self.emulator.take());
            runtime.shutdown_background();
        }
    }
}

/// A configuration of one namespace: the contents of its `Emulator` block, and queues with their properties.
pub(crate) fn queues(emulator: &str, queues: &[(&str, &str)]) -> String {
    let queue = |(name, properties): &(&str, &str)| {
        format!(r#"{{"Name":"{name}","Properties":{{{properties}}}}}"#)
    };
    let queues = Vec::from_iter(queues.iter().map(queue)).join(",");
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"sbemulatorns","Emulator":{{{emulator}}},"Queues":[{queues}]}}]}}}}"#
    )
}

pub(crate) fn parse(config: &str) -> Config {
    Config::parse(config).unwrap_or_else(|error| panic!("{error}"))
}

/// Seconds since the Unix epoch.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs() as i64
}

/// The client's clock, in milliseconds since the Unix epoch.
pub(crate) fn client_now() -> i64 {
    now() * 1000
}

/// When tokens of tests end.
pub(crate) fn in_an_hour() -> i64 {
    now() + 3600
}

/// A namespace with the topic `t`, its subscriptions with their other members, and the queue `q`.
pub(crate) fn topic(properties: &Value, subscriptions: &[(&str, Value)]) -> String {
    let named = |(name, members): &(&str, Value)| {
        let mut subscription = members.clone();
        subscription["Name"] = (*name).into();
        subscription
    };
    let subscriptions: Vec<Value> = subscriptions.iter().map(named).collect();
    let topic = json!({"Name": "t", "Properties": properties, "Subscriptions": subscriptions});
    let namespace = json!({"Name": "sbemulatorns", "Queues": [{"Name": "q"}], "Topics": [topic]});
    json!({"UserConfig": {"Namespaces": [namespace]}}).to_string()
}

/// A subscription with these properties and the default rule.
pub(crate) fn properties(properties: &Value) -> Value {
    json!({ "Properties": properties })
}

/// A subscription with these rules.
pub(crate) fn rules(rules: &[Value]) -> Value {
    json!({ "Rules": rules })
}

/// A rule with an SQL filter and, unless it is empty, an action.
pub(crate) fn sql(name: &str, filter: &str, action: &str) -> Value {
    let mut properties = json!({"FilterType": "Sql", "SqlFilter": {"SqlExpression": filter}});
    if !action.is_empty() {
        properties["Action"] = json!({ "SqlExpression": action });
    }
    json!({"Name": name, "Properties": properties})
}

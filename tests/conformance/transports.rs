//! The same cases over every transport: TLS, and WebSocket with and without it.
//!
//! The SDK takes the authority that it trusts from the environment of its process, so the cases of a transport run in a
//! process of their own: this executable again, told by a variable how its clients connect.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use servicebus_harness::Builder;
use servicebus_harness::azservicebus::ServiceBusTransportType;
use tokio::process::Command;

/// Names the transport in a process that was started for one.
const VARIABLE: &str = "SERVICEBUS_CONFORMANCE_TRANSPORT";
/// Lets the transports be left out that need ports which the system keeps for privileged users.
const LEAVE_OUT: &str = "SERVICEBUS_SKIP_WEB_PORTS";
/// Cases that between them use every kind of link and message.
const CASES: [&str; 6] = [
    "conformance::send::",
    "conformance::receive::",
    "conformance::settle::",
    "conformance::peek::",
    "conformance::deferral::",
    "conformance::limits::",
];
/// Where the SDK looks for WebSockets: it drops ports.
const WEB_PORTS: (u16, u16) = (80, 443);

/// How clients come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
    WebSocket,
    SecuredWebSocket,
}

impl Transport {
    const ALL: [Self; 4] = [
        Self::Plain,
        Self::Tls,
        Self::WebSocket,
        Self::SecuredWebSocket,
    ];

    /// The one that this process was started for.
    pub(crate) fn of_this_process() -> Self {
        let named = std::env::var(VARIABLE).unwrap_or_default();
        let transport = Self::ALL
            .into_iter()
            .find(|transport| transport.name() == named);
        transport.unwrap_or(Self::Plain)
    }

    /// A bus that has this transport, and connection strings for it.
    pub(crate) fn open(self, bus: Builder) -> Builder {
        let bus = bus.tls(matches!(self, Self::Tls | Self::SecuredWebSocket));
        match self {
            Self::Plain | Self::Tls => bus,
            Self::WebSocket | Self::SecuredWebSocket => bus.ports(WEB_PORTS.0, WEB_PORTS.1),
        }
    }

    pub(crate) fn transport(self) -> ServiceBusTransportType {
        match self {
            Self::Plain | Self::Tls => ServiceBusTransportType::AmqpTcp,
            Self::WebSocket | Self::SecuredWebSocket => ServiceBusTransportType::AmqpWebSocket,
        }
    }

    fn name(self) -> String {
        format!("{self:?}")
    }
}

#[tokio::test]
async fn over_tls() {
    through(Transport::Tls).await;
}

#[tokio::test]
async fn over_websocket() {
    through(Transport::WebSocket).await;
}

#[tokio::test]
async fn over_websocket_and_tls() {
    through(Transport::SecuredWebSocket).await;
}

/// Runs the cases in a process whose clients use the transport.
async fn through(transport: Transport) {
    if transport != Transport::Tls && may_not_listen() {
        assert!(
            std::env::var_os(LEAVE_OUT).is_some(),
            "this user may not listen on port 80, where the SDK looks for WebSockets: allow it (on Linux \
             `sysctl net.ipv4.ip_unprivileged_port_start=80`), or set {LEAVE_OUT}=1 to leave the test out"
        );
        return;
    }
    // A cache of these tests' own: not every user has one. The first bus puts the authority there.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let ca = cache.join("servicebus-emulator").join("ca.pem");
    let mut command = Command::new(std::env::current_exe().expect("a test has an executable"));
    command
        .args(CASES)
        .env(VARIABLE, transport.name())
        .env("XDG_CACHE_HOME", cache)
        .env("SSL_CERT_FILE", ca)
        .env_remove("SSL_CERT_DIR")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await.expect("the executable starts again");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && !stdout.contains(" 0 passed"),
        "{transport:?}:\n{stdout}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Whether the system keeps the usual ports of HTTP for others.
fn may_not_listen() -> bool {
    let listening = TcpListener::bind(("127.88.0.1", WEB_PORTS.0));
    listening.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

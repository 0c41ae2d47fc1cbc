//! Requests as a page, another machine and a script send them.

use axum::body::{Body, to_bytes};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use super::*;
use crate::access::AccessOptions;
use crate::config::Config;
use crate::http::Control;
use crate::tls::TlsOptions;
use crate::{Emulator, Options};

const LIST: &str = "/$emulator/v1/namespaces";
const FREEZE: &str = "/$emulator/v1/clock/freeze";
const NEIGHBOUR: &str = "203.0.113.9";

/// An emulator that answers without a socket.
struct QueryParams {
    emulator: Emulator,
    router: TowerToHyperService<axum::Router>,
}

impl QueryParams {
    async fn start(access: AccessOptions) -> Self {
        let config = r#"{"UserConfig":{"Namespaces":[{"Name":"a.b","Emulator":{"Address":"bus.example.org"}}]}}"#;
        let options = Options {
            host: "127.0.0.1".into(),
            amqp_port: 0,
            amqps_port: None,
            http_port: 0,
            config: Config::parse(config).unwrap(),
            tls: TlsOptions {
                names: vec!["tls.example.org".into()],
                ..TlsOptions::default()
            },
            access,
            ..Options::default()
        };
        let emulator = Emulator::start(options).await.unwrap();
        Self {
            router: TowerToHyperService::new(
                Control::new(Arc::clone(&emulator.shared), crate::server::open).router(),
            ),
            emulator,
        }
    }

    async fn ask(&self, line: &str, from: &str, headers: &[(&str, &str)]) -> Response {
        let (method, target) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.extension(Peer(from.parse().unwrap()));
        let request = request.body(Body::empty()).unwrap();
        self.router.call(request).await.unwrap()
    }

    fn now(&self) -> i64 {
        self.emulator.shared.real.unix_seconds()
    }

    async fn status(&self, line: &str, from: &str, headers: &[(&str, &str)]) -> u16 {
        self.ask(line, from, headers).await.status().as_u16()
    }
}

async fn text_of(response: Response) -> String {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn the_control_api_accepts_only_hosts_of_the_emulator() {
    let server = QueryParams::start(AccessOptions {
        allowed_hosts: vec!["ci.example.com".parse().unwrap()],
        ..AccessOptions::default()
    })
    .await;
    let line = format!("GET {LIST}");
    for host in [
        "localhost:5300",
        "x.localhost",
        "servicebus:5300",
        "192.0.2.7:5300",
        "[::1]:5300",
        "CI.example.com:5300",
        "tls.example.org",
        "bus.example.org",
        "a.b.servicebus.windows.net",
    ] {
        let status = server.status(&line, "127.0.0.1", &[("Host", host)]).await;
        assert_eq!(status, 200, "{host}");
    }
    for host in [
        "evil.example:5300",
        "other.servicebus.windows.net",
        "a.b.servicebus.windows.net.evil.example",
        "localhost.evil.example",
        "u@localhost",
        "",
    ] {
        for line in [
            &line,
            "GET /",
            "GET /metrics",
            "GET /$emulator",
            "GET /$emulator/x",
        ] {
            let status = server.status(line, "127.0.0.1", &[("Host", host)]).await;
            assert_eq!(status, 421, "{line} {host}");
        }
        for line in [
            "GET /health",
            "GET /$emulator/v1/health",
            "GET /$emulator/v1/ca.pem",
        ] {
            let status = server.status(line, "127.0.0.1", &[("Host", host)]).await;
            assert_ne!(status, 421, "{line} {host}");
        }
    }
    let refusal = server
        .ask(&line, "127.0.0.1", &[("Host", "evil.example:1")])
        .await;
    assert_eq!(refusal.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff");
    let text = text_of(refusal).await;
    assert!(text.contains("--allow-host evil.example if"), "{text}");
    // The absolute target has the host, not the header.
    let line = "GET http://evil.example/$emulator/v1/namespaces";
    let status = server
        .status(line, "127.0.0.1", &[("Host", "localhost")])
        .await;
    assert_eq!(status, 421);
}

#[tokio::test]
async fn sdk_paths_check_tokens_and_not_hosts() {
    let server = QueryParams::start(AccessOptions::default()).await;
    let headers = [
        ("Host", "evil.example"),
        ("Origin", "http://evil.example"),
        ("Authorization", "SharedAccessSignature sr=x"),
    ];
    for line in ["GET /queue", "PUT /queue", "GET /metrics", "GET /"] {
        let status = server.status(line, NEIGHBOUR, &headers).await;
        assert_eq!(status, 401, "{line}");
    }
}

#[tokio::test]
async fn changing_requests_of_foreign_origins_are_refused() {
    let server = QueryParams::start(AccessOptions {
        allowed_origins: vec!["http://localhost:3000".parse().unwrap()],
        ..AccessOptions::default()
    })
    .await;
    let line = format!("POST {FREEZE}");
    let allowed: [&[(&str, &str)]; 6] = [
        &[],
        &[
            ("Sec-Fetch-Site", "same-origin"),
            ("Origin", "http://localhost:5300"),
        ],
        &[("Sec-Fetch-Site", "none")],
        &[("Origin", "http://localhost:5300")],
        &[("Origin", "http://localhost:3000")],
        &[
            ("Origin", "http://localhost:3000"),
            ("Sec-Fetch-Site", "same-site"),
        ],
    ];
    for headers in allowed {
        let headers = [&[("Host", "localhost:5300")], headers].concat();
        let status = server.status(&line, "127.0.0.1", &headers).await;
        assert_eq!(status, 200, "{headers:?}");
    }
    let refused: [&[(&str, &str)]; 7] = [
        &[("Sec-Fetch-Site", "cross-site")],
        &[
            ("Sec-Fetch-Site", "same-site"),
            ("Origin", "http://localhost:4000"),
        ],
        &[
            ("Sec-Fetch-Site", "cross-site"),
            ("Origin", "http://localhost:5300"),
        ],
        &[("Origin", "http://evil.example")],
        &[("Origin", "https://localhost")],
        &[("Origin", "null")],
        &[
            ("Origin", "http://localhost:5300"),
            ("Origin", "http://evil.example"),
        ],
    ];
    for headers in refused {
        let headers = [&[("Host", "localhost:5300")], headers].concat();
        let status = server.status(&line, "127.0.0.1", &headers).await;
        assert_eq!(status, 403, "{headers:?}");
        // Requests that change nothing and whose responses the page cannot read.
        let line = format!("GET {LIST}");
        assert_eq!(server.status(&line, "127.0.0.1", &headers).await, 200);
    }
    let headers = [("Host", "localhost"), ("Origin", "http://evil.example")];
    let text = text_of(server.ask(&line, "127.0.0.1", &headers).await).await;
    assert!(
        text.contains("--allow-origin http://evil.example to"),
        "{text}"
    );
}

#[tokio::test]
async fn remote_requests_need_the_control_token() {
    let server = QueryParams::start(AccessOptions {
        control_token: Some("S3cret".parse().unwrap()),
        ..AccessOptions::default()
    })
    .await;
    let host = ("Host", "localhost");
    let line = format!("GET {LIST}");
    let shown = [host, ("Authorization", "Bearer S3cret")];
    let wrong = [host, ("Authorization", "Bearer S3cre")];
    assert_eq!(server.status(&line, "::1", &[host]).await, 200);
    assert_eq!(server.status(&line, "::1", &wrong).await, 200);
    assert_eq!(server.status(&line, NEIGHBOUR, &shown).await, 200);
    for headers in [&[host][..], &wrong] {
        let refusal = server.ask(&line, NEIGHBOUR, headers).await;
        assert_eq!(refusal.status(), 401);
        assert_eq!(refusal.headers()[WWW_AUTHENTICATE], "Bearer");
        let text = text_of(refusal).await;
        assert!(
            text.contains(r#""code":"unauthorized""#) && !text.contains("S3cre"),
            "{text}"
        );
    }
    for line in ["GET /health", "GET /$emulator/v1/health"] {
        assert_eq!(server.status(line, NEIGHBOUR, &[host]).await, 200);
    }
}

#[tokio::test]
async fn remote_requests_are_refused_without_a_configured_control_token() {
    let server = QueryParams::start(AccessOptions::default()).await;
    let headers = [("Host", "localhost"), ("Authorization", "Bearer ")];
    for line in [
        &format!("GET {LIST}"),
        &format!("POST {FREEZE}"),
        "GET /$emulator/",
    ] {
        let refusal = server.ask(line, NEIGHBOUR, &headers).await;
        assert_eq!(refusal.status(), 403, "{line}");
        let text = text_of(refusal).await;
        assert!(text.contains("SERVICEBUS_EMULATOR_CONTROL_TOKEN"), "{text}");
    }
    assert_eq!(server.status("GET /health", NEIGHBOUR, &headers).await, 200);
}

#[test]
fn websockets_are_opened_for_local_and_allowed_origins() {
    let access = Access::new(
        AccessOptions {
            allowed_origins: vec!["https://app.example.com".parse().unwrap()],
            ..AccessOptions::default()
        },
        [],
        None,
    );
    let refused = |origin: Option<&str>| {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("bus.example.org:5300"));
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        refused_websocket(&access, &headers)
    };
    for origin in [
        "http://bus.example.org:5300",
        "https://bus.example.org:5300",
        "http://localhost:3000",
        "http://127.0.0.1",
        "https://app.example.com",
    ] {
        assert_eq!(refused(Some(origin)), None, "{origin}");
    }
    assert_eq!(refused(None), None);
    for origin in [
        "http://evil.example",
        "http://bus.example.org",
        "null",
        "",
        "http://app.example.com",
    ] {
        let reason = refused(Some(origin)).unwrap_or_else(|| panic!("{origin} is allowed"));
        assert!(reason.contains("may not open a WebSocket"), "{reason}");
    }
}

#[tokio::test]
async fn tokens_are_issued_on_loopback_and_with_the_control_token() {
    let managed =
        "GET /msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fservicebus.azure.net";
    let host = ("Host", "localhost:5300");
    let shown = |value| [host, ("X-IDENTITY-HEADER", value)];
    let closed = QueryParams::start(AccessOptions::default()).await;
    for (line, from, headers, status) in [
        (managed, "127.0.0.1", &shown("any")[..], 200),
        (managed, "127.0.0.1", &[host], 401),
        (
            managed,
            "127.0.0.1",
            &[("Host", "evil.example"), shown("any")[1]],
            421,
        ),
        ("GET /msi/token", "127.0.0.1", &shown("any"), 400),
        (managed, NEIGHBOUR, &shown("any"), 403),
        ("POST /adfs/oauth2/v2.0/token", "127.0.0.1", &[host], 200),
        (
            "POST /adfs/oauth2/v2.0/token",
            "127.0.0.1",
            &[host, ("Sec-Fetch-Site", "cross-site")],
            403,
        ),
        ("POST /adfs/a/oauth2/v2.0/token", NEIGHBOUR, &[host], 403),
        (
            "GET /adfs/any/v2.0/.well-known/openid-configuration",
            "127.0.0.1",
            &[host],
            200,
        ),
        (
            "GET /metadata/endpoints?api-version=2022-09-01",
            "127.0.0.1",
            &[host],
            200,
        ),
    ] {
        assert_eq!(
            closed.status(line, from, headers).await,
            status,
            "{line} {from}"
        );
    }
    let open = QueryParams::start(AccessOptions {
        control_token: Some("secret".parse().unwrap()),
        ..AccessOptions::default()
    })
    .await;
    assert_eq!(open.status(managed, NEIGHBOUR, &shown("secret")).await, 200);
    assert_eq!(open.status(managed, NEIGHBOUR, &shown("wrong")).await, 401);
    let answer = text_of(open.ask(managed, "127.0.0.1", &shown("any")).await).await;
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["resource"], "https://servicebus.azure.net");
    assert_eq!(answer["token_type"], "Bearer");
    let token = answer["access_token"].as_str().unwrap();
    let policy = crate::auth::Policy {
        keys: &[],
        entity_keys: &[],
        token_check: crate::auth::TokenCheck::Signature,
        jwt: &crate::auth::Jwt::Issued,
    };
    let accepted = policy.accept_token(token, "", open.now()).unwrap();
    assert_eq!(answer["expires_on"], accepted.expires_at.to_string());
}

#[tokio::test]
async fn resources_are_served_on_loopback_and_with_the_control_token() {
    let line = "GET /subscriptions?api-version=2022-12-01";
    let closed = QueryParams::start(AccessOptions::default()).await;
    let open = QueryParams::start(AccessOptions {
        control_token: Some("secret".parse().unwrap()),
        ..AccessOptions::default()
    })
    .await;
    for (emulator, from, authorization, status) in [
        (&closed, "127.0.0.1", "", 401),
        (&closed, "127.0.0.1", "Bearer any", 200),
        (&closed, NEIGHBOUR, "Bearer any", 403),
        (&open, "127.0.0.1", "Bearer any", 200),
        (&open, NEIGHBOUR, "Bearer any", 401),
        (&open, NEIGHBOUR, "Bearer secret", 200),
    ] {
        let headers = [("Host", "localhost:5300"), ("Authorization", authorization)];
        let seen = emulator.status(line, from, &headers).await;
        assert_eq!(seen, status, "{from} {authorization}");
    }
}

//! The connection strings of clients that come over TLS.
//!
//! They are those of the service: without `UseDevelopmentEmulator`, which would have a client do without TLS, and
//! without the ports that every client knows.

use std::net::SocketAddr;

use servicebus_emulator::{AMQPS_PORT, auth::ConnectionString};

use crate::{
    running::{Endpoints, Namespace},
    secret::Secret,
};

/// What HTTP clients assume.
const HTTPS_PORT: u16 = 443;

/// The connection strings of one namespace over TLS.
#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) connection_string: Secret,
    pub(crate) admin_connection_string: Secret,
}

impl Secured {
    /// Those of a namespace whose every client comes over TLS.
    pub(crate) fn already(namespace: &Namespace) -> Self {
        Self {
            connection_string: namespace.connection_string.clone(),
            admin_connection_string: namespace.admin_connection_string.clone(),
        }
    }

    pub(crate) fn new(namespace: &Namespace, endpoints: Endpoints) -> Self {
        let admin = endpoints.https.unwrap_or(endpoints.http);
        Self {
            connection_string: over_tls(&namespace.connection_string, endpoints.amqps, AMQPS_PORT)
                .into(),
            admin_connection_string: over_tls(
                &namespace.admin_connection_string,
                admin,
                HTTPS_PORT,
            )
            .into(),
        }
    }
}

/// The string with the port of an endpoint, unless clients know it; one that cannot be read stays as it is.
fn over_tls(plain: &str, endpoint: SocketAddr, usual: u16) -> String {
    let Ok(read) = plain.parse::<ConnectionString>() else {
        return plain.to_owned();
    };
    let secured = ConnectionString {
        port: Some(endpoint.port()).filter(|&port| port != usual),
        development_emulator: false,
        ..read
    };
    secured.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_ports_are_left_out() {
        let plain = "Endpoint=sb://127.64.0.1:5300;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true;";
        let endpoint = |port| SocketAddr::from(([127, 64, 0, 1], port));
        let rest = "SharedAccessKeyName=n;SharedAccessKey=k;";
        for (port, expected) in [(443, "127.64.0.1"), (5300, "127.64.0.1:5300")] {
            let expected = format!("Endpoint=sb://{expected};{rest}");
            assert_eq!(over_tls(plain, endpoint(port), HTTPS_PORT), expected);
        }
        assert_eq!(over_tls("nothing", endpoint(1), 2), "nothing");
    }
}

//! Forwards a loopback address to the ports that the engine chose.
//!
//! SDKs that ignore the port of an endpoint must find the emulator at the standard ports.

use std::{io, net::Ipv4Addr, sync::Arc};

use servicebus_config::{AMQP_PORT, AMQPS_PORT};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{
    network::Network,
    shared::{PortMapping, SharedPortMapping},
};
use crate::{
    address::no_free_address,
    background::{Background, Task},
    endpoints::{Endpoints, HttpPorts},
    error::Error,
};

/// Selects one of the container's ports.
type Port = fn(&PortMapping) -> u16;

/// Listeners that forward connections; dropping them closes the forwarded connections.
#[derive(Debug)]
pub(crate) struct Forwarder {
    _listeners: Vec<Task<()>>,
}

/// The listeners of one address.
struct Listeners {
    amqp: TcpListener,
    amqps: TcpListener,
    http: TcpListener,
    https: Option<TcpListener>,
}

/// Listens on a free address of the network. Must run on the background runtime.
pub(crate) async fn open(
    background: &Background,
    ports: HttpPorts,
    mapping: &Arc<SharedPortMapping>,
    network: Network,
) -> Result<(Endpoints, Forwarder), Error> {
    let mut attempts = 0;
    let mut last = String::new();
    for address in network.addresses_from_random() {
        attempts += 1;
        match Listeners::open(address, ports).await {
            Ok(listeners) => {
                let forwarding = listeners.forward(background, mapping);
                return forwarding.map_err(|error| cannot_listen(address, &error));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error.to_string(),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                return Err(Error::start(format!(
                    "this system has no loopback address {address}, and each namespace in a container needs one; the modes in-process and process need only 127.0.0.1"
                )));
            }
            Err(error) => return Err(cannot_listen(address, &error)),
        }
    }
    Err(no_free_address(attempts, &last))
}

fn cannot_listen(address: Ipv4Addr, error: &io::Error) -> Error {
    Error::start(format!("cannot listen on {address}: {error}"))
}

impl Listeners {
    async fn open(address: Ipv4Addr, ports: HttpPorts) -> io::Result<Self> {
        let listen = |port| TcpListener::bind((address, port));
        Ok(Self {
            amqp: listen(AMQP_PORT).await?,
            amqps: listen(AMQPS_PORT).await?,
            http: listen(ports.http).await?,
            https: match ports.https {
                Some(port) => Some(listen(port).await?),
                None => None,
            },
        })
    }

    fn forward(
        self,
        background: &Background,
        ports: &Arc<SharedPortMapping>,
    ) -> io::Result<(Endpoints, Forwarder)> {
        let https = self.https.as_ref().map(TcpListener::local_addr);
        let endpoints = Endpoints {
            amqp: self.amqp.local_addr()?,
            amqps: self.amqps.local_addr()?,
            http: self.http.local_addr()?,
            https: https.transpose()?,
        };
        // Every listener of the emulator accepts TLS.
        let http: Port = |ports| ports.http;
        let https = self.https.map(|listener| (listener, http));
        let fixed: [(TcpListener, Port); 3] = [
            (self.amqp, |ports| ports.amqp),
            (self.amqps, |ports| ports.amqps),
            (self.http, http),
        ];
        let listeners = fixed.into_iter().chain(https);
        let listeners = listeners.map(|(listener, port)| {
            background.spawn(forward_connections(listener, Arc::clone(ports), port))
        });
        let forwarder = Forwarder {
            _listeners: listeners.collect(),
        };
        Ok((endpoints, forwarder))
    }
}

async fn forward_connections(listener: TcpListener, ports: Arc<SharedPortMapping>, port: Port) {
    let mut listeners = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // An accept fails if the client has already disconnected; the listener stays usable.
                let Ok((client, _)) = accepted else { continue };
                listeners.spawn(connect(client, Arc::clone(&ports), port));
            }
            Some(_) = listeners.join_next() => {}
        }
    }
}

/// Forwards both directions of one connection. If the container has ended, the client's connection closes.
async fn connect(
    mut client: TcpStream,
    ports: Arc<SharedPortMapping>,
    port: Port,
) -> io::Result<()> {
    // Read per connection, because a restarted container has other ports.
    let ports = ports.lock().clone();
    let mut emulator = TcpStream::connect((ports.host.as_str(), port(&ports))).await?;
    client.set_nodelay(true)?;
    emulator.set_nodelay(true)?;
    copy_bidirectional(&mut client, &mut emulator).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn both_directions_are_forwarded() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let emulator = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = emulator.local_addr().unwrap().port();
        let ports = PortMapping {
            host: "127.0.0.1".to_owned(),
            amqp: port,
            amqps: port,
            http: port,
        };
        let background = Background::start().unwrap();
        let network = Network::of("a test");
        let opened = open(
            &background,
            HttpPorts::default(),
            &Arc::new(SharedPortMapping::new(ports)),
            network,
        )
        .await;
        let (endpoints, forwarder) = opened.unwrap();
        let all = [endpoints.amqp, endpoints.amqps, endpoints.http];
        assert_eq!(all.map(|endpoint| endpoint.port()), [5672, 5671, 5300]);
        for endpoint in all {
            let mut client = TcpStream::connect(endpoint).await.unwrap();
            client.write_all(b"ping").await.unwrap();
            let (mut served, _) = emulator.accept().await.unwrap();
            let mut heard = [0; 4];
            served.read_exact(&mut heard).await.unwrap();
            served.write_all(b"pong").await.unwrap();
            drop(served);
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!((&heard, answer.as_str()), (b"ping", "pong"));
        }
        drop((forwarder, background));
    }
}

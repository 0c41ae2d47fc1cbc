//! The sockets of an emulator: at the addresses of its host, and at the addresses of single namespaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::options::{Endpoints, Options, StartError};

/// Length of the queue of connections that wait for `accept`.
const BACKLOG: u32 = 1024;
/// How many ports are tried where any free one is accepted.
const ANY_PORT_TRIES: u32 = 16;

/// Listens on every port of the options.
pub(crate) async fn everywhere(
    options: &Options,
) -> Result<(Vec<TcpListener>, Endpoints), StartError> {
    let host = &options.host;
    let mut listeners = Vec::new();
    let mut open = async |port: u16, name: &'static str| {
        let opened = listen(host, port, name).await?;
        let address = local(&opened, host)?;
        listeners.extend(opened);
        Ok::<_, StartError>(address)
    };
    let amqp = open(options.amqp_port, "--amqp-port").await?;
    let http = open(options.http_port, "--http-port").await?;
    let amqps = match options.amqps_port {
        Some(port) => Some(open(port, "--amqps-port").await?),
        None => None,
    };
    let https = match options.https_port {
        Some(port) => Some(open(port, "--https-port").await?),
        None => None,
    };
    let endpoints = Endpoints {
        amqp,
        amqps,
        http,
        https,
    };
    Ok((listeners, endpoints))
}

/// Listens at another address on the same ports.
pub(crate) fn at(address: IpAddr, endpoints: Endpoints) -> Result<Vec<TcpListener>, StartError> {
    let Endpoints {
        amqp,
        amqps,
        http,
        https,
    } = endpoints;
    let listening = [Some(amqp), Some(http), amqps, https];
    let listening = listening.into_iter().flatten();
    listening
        .map(|at| bind(SocketAddr::new(address, at.port()), None))
        .collect()
}

/// Listens on every address of `host`, all on the port of this option.
async fn listen(
    host: &str,
    port: u16,
    option: &'static str,
) -> Result<Vec<TcpListener>, StartError> {
    if host.eq_ignore_ascii_case("localhost") {
        return listen_on_localhost(port, option);
    }
    let unknown = |source| StartError::Host {
        host: host.into(),
        source,
    };
    let mut addresses = lookup_host((host, port)).await.map_err(unknown)?;
    let first = addresses.next();
    let address = first.ok_or_else(|| unknown(io::Error::other("it has no address")))?;
    Ok(vec![bind(address, Some(option))?])
}

/// Listens on 127.0.0.1 and, where it exists, ::1. A port that is free on one may be used on the other: where any free port
/// is accepted, another one is tried.
fn listen_on_localhost(port: u16, option: &'static str) -> Result<Vec<TcpListener>, StartError> {
    let mut tries = if port == 0 { ANY_PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        let first = bind(
            SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            Some(option),
        )?;
        let port = local(std::slice::from_ref(&first), "localhost")?.port();
        match bind(
            SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port),
            Some(option),
        ) {
            Ok(second) => return Ok(vec![first, second]),
            Err(StartError::Listen { source, .. }) if has_no_ipv6(&source) => {
                return Ok(vec![first]);
            }
            Err(error) if tries == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

fn bind(address: SocketAddr, option: Option<&'static str>) -> Result<TcpListener, StartError> {
    let socket = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restart must not wait for connections of the last run in TIME_WAIT. Windows does not wait, and there the option
        // would let another process listen on the same port.
        #[cfg(not(windows))]
        socket.set_reuseaddr(true)?;
        bound_segments(&socket);
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    socket().map_err(|source| StartError::Listen {
        address,
        option,
        source,
    })
}

/// Announces segments of 4 KiB where the system supports it; must be called before `listen`. Microsoft's AMQP library for
/// .NET sets a receive buffer of 8 KiB after it has connected; over the loopback's segments of 64 KiB the kernel then sends
/// 16 KiB in 210 ms (spec/observed.md 45).
#[cfg(target_os = "linux")]
fn bound_segments(socket: &TcpSocket) {
    if let Err(error) = socket2::SockRef::from(socket).set_tcp_mss(4096) {
        tracing::debug!(%error, "cannot set the maximum segment size");
    }
}

#[cfg(not(target_os = "linux"))]
fn bound_segments(_socket: &TcpSocket) {}

fn has_no_ipv6(error: &io::Error) -> bool {
    let is_unknown = matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
    );
    // A kernel without IPv6 creates no such socket, and its error has no `ErrorKind` of its own.
    is_unknown || TcpSocket::new_v6().is_err()
}

fn local(listeners: &[TcpListener], host: &str) -> Result<SocketAddr, StartError> {
    let first = listeners.first().map(TcpListener::local_addr);
    let address = first.unwrap_or_else(|| Err(io::Error::other("nothing listens")));
    address.map_err(|source| StartError::Host {
        host: host.into(),
        source,
    })
}

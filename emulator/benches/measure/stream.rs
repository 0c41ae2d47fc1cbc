//! What carries the client's bytes: TCP, TLS, or WebSocket over TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::connection::connect;

type Secured = StreamOwned<ClientConnection, TcpStream>;

/// A blocking stream.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<Secured>),
    /// With what of the last message was not read yet.
    WebSocket(Box<WebSocket<Secured>>, bytes::Bytes),
}

impl Stream {
    /// TLS to a server on the loopback whose certificate `trusted` vouches for.
    pub(crate) fn secured(
        address: SocketAddr,
        trusted: &CertificateDer<'static>,
    ) -> io::Result<Self> {
        Ok(Self::Secured(Box::new(secured(address, trusted)?)))
    }

    /// WebSocket over the same.
    pub(crate) fn websocket(
        address: SocketAddr,
        trusted: &CertificateDer<'static>,
    ) -> io::Result<Self> {
        // Without a subprotocol, of which the echo knows nothing.
        let request = "ws://localhost/$servicebus/websocket";
        let (socket, _) = tungstenite::client(request, secured(address, trusted)?)
            .map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self::WebSocket(Box::new(socket), bytes::Bytes::new()))
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secured(stream) => &stream.sock,
            Self::WebSocket(socket, _) => &socket.get_ref().sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Secured(stream) => stream.read(buffer),
            Self::WebSocket(socket, rest) => {
                while rest.is_empty() {
                    if let Message::Binary(bytes) = socket.read().map_err(io_error)? {
                        *rest = bytes;
                    }
                }
                let read = rest.split_to(rest.len().min(buffer.len()));
                buffer[..read.len()].copy_from_slice(&read);
                Ok(read.len())
            }
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secured(stream) => stream.write(bytes),
            Self::WebSocket(socket, _) => {
                let message = Message::Binary(bytes::Bytes::copy_from_slice(bytes));
                socket.send(message).map_err(io_error)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secured(stream) => stream.flush(),
            Self::WebSocket(socket, _) => socket.flush().map_err(io_error),
        }
    }
}

fn secured(address: SocketAddr, trusted: &CertificateDer<'static>) -> io::Result<Secured> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).map_err(io::Error::other)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(client, connect(address)?))
}

fn io_error(error: tungstenite::Error) -> io::Error {
    if let tungstenite::Error::Io(error) = error {
        return error;
    }
    io::Error::other(error)
}

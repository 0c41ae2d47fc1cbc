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
    WebSocket(Box<Messages>),
}

/// A WebSocket.
#[derive(Debug)]
pub(crate) struct Messages {
    socket: WebSocket<Secured>,
    cut: Cut,
    /// What of the last message was not read yet.
    rest: bytes::Bytes,
}

/// What goes into one WebSocket message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// One AMQP frame, as the SDKs of Python (`_pyamqp/_transport.py`) and JavaScript (`rhea/lib/transport.js`) do it.
    Frames,
    /// Everything that is written at once.
    Blocks,
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
        cut: Cut,
    ) -> io::Result<Self> {
        // Without a subprotocol, of which the echo knows nothing.
        let request = "ws://localhost/$servicebus/websocket";
        let (socket, _) = tungstenite::client(request, secured(address, trusted)?)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let rest = bytes::Bytes::new();
        Ok(Self::WebSocket(Box::new(Messages { socket, cut, rest })))
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secured(stream) => &stream.sock,
            Self::WebSocket(messages) => &messages.socket.get_ref().sock,
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Secured(stream) => stream.read(buffer),
            Self::WebSocket(messages) => messages.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Secured(stream) => stream.write(bytes),
            Self::WebSocket(messages) => messages.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Secured(stream) => stream.flush(),
            Self::WebSocket(messages) => messages.socket.flush().map_err(io_error),
        }
    }
}

impl Messages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            if let Message::Binary(bytes) = self.socket.read().map_err(io_error)? {
                self.rest = bytes;
            }
        }
        let read = self.rest.split_to(self.rest.len().min(buffer.len()));
        buffer[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (message, behind) = rest.split_at(self.cut.first(rest));
            let message = Message::Binary(bytes::Bytes::copy_from_slice(message));
            self.socket.write(message).map_err(io_error)?;
            rest = behind;
        }
        self.socket.flush().map_err(io_error)?;
        Ok(bytes.len())
    }
}

impl Cut {
    /// Bytes of the first message.
    fn first(self, bytes: &[u8]) -> usize {
        match (self, bytes.first_chunk::<4>()) {
            (Self::Frames, Some(b"AMQP")) => 8,
            (Self::Frames, Some(size)) => u32::from_be_bytes(*size) as usize,
            (Self::Blocks, _) | (_, None) => bytes.len(),
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

//! The transport of a client: TCP, TLS, WebSocket, or WebSocket over TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

/// How long the other side may take to detect a failed handshake.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A blocking stream to the emulator.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Plain(TcpStream),
    /// TLS.
    Secured(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// WebSocket over any other stream.
    WebSocket(Box<Messages>),
}

/// A WebSocket.
#[derive(Debug)]
pub struct Messages {
    socket: WebSocket<Stream>,
    framing: WebSocketFraming,
    /// The unread rest of the last message.
    rest: Bytes,
}

/// What a WebSocket message contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebSocketFraming {
    /// One AMQP frame, as in the SDKs of Python (`_pyamqp/_transport.py`) and JavaScript (`rhea/lib/transport.js`).
    PerFrame,
    /// All bytes of a write.
    PerWrite,
}

impl Stream {
    /// Connects over TCP without Nagle's algorithm.
    pub fn plain(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the listener accepts");
        stream.set_nodelay(true).expect("Nagle can be switched off");
        Self::Plain(stream)
    }

    /// Connects over TLS to a server of this name, trusting only the CA certificates of `ca`, in PEM, and completes the
    /// handshake.
    pub fn secured(address: SocketAddr, name: &str, ca: &str) -> io::Result<Self> {
        let authorities = CertificateDer::pem_slice_iter(ca.as_bytes());
        let authorities = authorities.map(|ca| ca.expect("a certificate in PEM"));
        Self::secured_by(address, name, authorities)
    }

    /// As [`Self::secured`], trusting these certificates.
    pub fn secured_by(
        address: SocketAddr,
        name: &str,
        authorities: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut stream = StreamOwned::new(client(name, authorities), stream);
        while stream.conn.is_handshaking() {
            if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
                // Until the emulator has received the handshake.
                stream.sock.set_read_timeout(Some(TIMEOUT))?;
                let _ = stream.sock.read_to_end(&mut Vec::new());
                return Err(error);
            }
        }
        Ok(Self::Secured(Box::new(stream)))
    }

    /// Upgrades this stream to AMQP over WebSocket.
    pub fn websocket(self, path: &str, protocol: &str) -> Self {
        let (socket, answer) = self
            .upgraded(path, Some(protocol))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(answer.as_deref(), Some(protocol));
        Self::messages(socket, WebSocketFraming::PerWrite)
    }

    /// Returns the stream of a WebSocket's messages.
    pub fn messages(socket: WebSocket<Self>, framing: WebSocketFraming) -> Self {
        let rest = Bytes::new();
        Self::WebSocket(Box::new(Messages {
            socket,
            framing,
            rest,
        }))
    }

    /// Upgrades this stream to a WebSocket; returns it with the chosen subprotocol.
    pub fn upgraded(
        self,
        path: &str,
        protocol: Option<&str>,
    ) -> Result<(WebSocket<Self>, Option<String>), String> {
        let request = upgrade(path, protocol);
        let (socket, answer) =
            tungstenite::client(request, self).map_err(|error| error.to_string())?;
        let chosen = answer.headers().get("sec-websocket-protocol");
        let chosen = chosen.map(|chosen| chosen.to_str().expect("text").to_owned());
        Ok((socket, chosen))
    }

    /// Sets the timeout of reads.
    pub fn set_read_timeout(&self, timeout: Duration) {
        self.tcp()
            .set_read_timeout(Some(timeout))
            .expect("a time-out can be set");
    }

    /// Returns the underlying socket.
    pub fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secured(stream) => &stream.sock,
            Self::WebSocket(messages) => messages.socket.get_ref().tcp(),
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
            match self.socket.read() {
                Ok(Message::Binary(bytes)) => self.rest = bytes,
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => return Ok(0),
                Ok(_) => {}
                Err(error) => return Err(io_error(error)),
            }
        }
        let read = self.rest.split_to(self.rest.len().min(buffer.len()));
        buffer[..read.len()].copy_from_slice(&read);
        Ok(read.len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (message, behind) = rest.split_at(self.framing.first(rest));
            let message = Message::Binary(Bytes::copy_from_slice(message));
            self.socket.write(message).map_err(io_error)?;
            rest = behind;
        }
        self.socket.flush().map_err(io_error)?;
        Ok(bytes.len())
    }
}

impl WebSocketFraming {
    /// Returns the number of bytes of the first message.
    fn first(self, bytes: &[u8]) -> usize {
        match (self, bytes.first_chunk::<4>()) {
            (Self::PerFrame, Some(b"AMQP")) => 8,
            (Self::PerFrame, Some(size)) => u32::from_be_bytes(*size) as usize,
            (Self::PerWrite, _) | (_, None) => bytes.len(),
        }
    }
}

fn client(
    name: &str,
    authorities: impl IntoIterator<Item = CertificateDer<'static>>,
) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions that ring knows")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a legal name");
    ClientConnection::new(Arc::new(config), name).expect("a client can be made")
}

fn upgrade(path: &str, protocol: Option<&str>) -> Request {
    let request = format!("ws://localhost{path}").into_client_request();
    let mut request = request.expect("a legal request");
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_str(protocol).expect("a legal header");
        let headers = request.headers_mut();
        headers.insert("sec-websocket-protocol", protocol);
    }
    request
}

fn io_error(error: tungstenite::Error) -> io::Error {
    match error {
        tungstenite::Error::Io(error) => error,
        // The socket has ended.
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            io::ErrorKind::ConnectionReset.into()
        }
        other => io::Error::other(other),
    }
}

//! What carries a client's bytes: TCP, TLS, WebSocket, or WebSocket over TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use super::TIMEOUT;

/// A blocking stream to the emulator.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Secured(Box<StreamOwned<ClientConnection, TcpStream>>),
    WebSocket(Box<WebSocket<Self>>, Vec<u8>),
}

impl Stream {
    /// TCP without delays.
    pub(crate) fn plain(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the listener accepts");
        stream.set_nodelay(true).expect("Nagle can be switched off");
        Self::Plain(stream)
    }

    /// TLS to a server of this name, by a client that trusts `ca` and nobody else; the handshake is done.
    pub(crate) fn secured(address: SocketAddr, name: &str, ca: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let mut stream = StreamOwned::new(client(name, ca), stream);
        while stream.conn.is_handshaking() {
            if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
                // Until the emulator has heard of it.
                stream.sock.set_read_timeout(Some(TIMEOUT))?;
                let _ = stream.sock.read_to_end(&mut Vec::new());
                return Err(error);
            }
        }
        Ok(Self::Secured(Box::new(stream)))
    }

    /// AMQP over WebSocket over this stream.
    pub(crate) fn websocket(self, path: &str, protocol: &str) -> Self {
        let (socket, answer) = self
            .upgraded(path, Some(protocol))
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(answer.as_deref(), Some(protocol));
        Self::WebSocket(Box::new(socket), Vec::new())
    }

    /// A WebSocket over this stream, and the subprotocol that was chosen.
    pub(crate) fn upgraded(
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

    /// Reads give up after this time.
    pub(crate) fn set_read_timeout(&self, timeout: Duration) {
        self.tcp()
            .set_read_timeout(Some(timeout))
            .expect("a time-out can be set");
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secured(stream) => &stream.sock,
            Self::WebSocket(socket, _) => socket.get_ref().tcp(),
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
                    match socket.read() {
                        Ok(Message::Binary(bytes)) => rest.extend_from_slice(&bytes),
                        Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed) => {
                            return Ok(0);
                        }
                        Ok(_) => {}
                        Err(error) => return Err(io_error(error)),
                    }
                }
                let read = rest.len().min(buffer.len());
                buffer[..read].copy_from_slice(&rest[..read]);
                rest.drain(..read);
                Ok(read)
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
                let message = Message::Binary(bytes.to_vec().into());
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

fn client(name: &str, ca: &str) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots
            .add(ca.expect("a certificate in PEM"))
            .expect("an authority");
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
        // The socket ended under it.
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            io::ErrorKind::ConnectionReset.into()
        }
        other => io::Error::other(other),
    }
}

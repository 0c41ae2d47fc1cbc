//! The baseline for TLS and WebSocket: the same bytes through an echo server over the same rustls and WebSocket library as
//! the emulator's.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use servicebus_test_support::stream::Stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::tungstenite::Message;

use crate::Outcome;
use crate::connection::READ;
use crate::frames::Transfers;

/// Bytes that the emulator reads at once.
const BLOCK: usize = 64 * 1024;

/// The layers around the echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapping {
    Tls,
    WebSocket,
}

/// Prints its address and certificate, and echoes its input, until it is ended.
pub(crate) fn serve(wrapping: Wrapping) -> Outcome {
    let key = rcgen::KeyPair::generate()?;
    let own = rcgen::CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
    let certificate = own.der().clone();
    let shown = BASE64_STANDARD.encode(&certificate);
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        crate::report::say(&format!("{} {shown}", listener.local_addr()?))?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let accepting = acceptor.accept(stream);
            tokio::spawn(async move {
                let stream = Box::new(accepting.await?);
                match wrapping {
                    Wrapping::Tls => echo(stream).await,
                    Wrapping::WebSocket => echo_messages(stream).await,
                }
            });
        }
    })
}

type Secured = Box<TlsStream<tokio::net::TcpStream>>;

async fn echo(mut stream: Secured) -> io::Result<()> {
    let mut block = vec![0; BLOCK];
    loop {
        let read = stream.read(&mut block).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&block[..read]).await?;
        stream.flush().await?;
    }
}

/// Echoes messages, and flushes when no more are available.
async fn echo_messages(stream: Secured) -> io::Result<()> {
    let accepting = tokio_tungstenite::accept_async(stream).await;
    let mut socket = accepting.map_err(io::Error::other)?;
    loop {
        let message = match socket.next().now_or_never() {
            Some(message) => message,
            None => {
                socket.flush().await.map_err(io::Error::other)?;
                socket.next().await
            }
        };
        match message {
            Some(Ok(message @ Message::Binary(_))) => {
                socket.feed(message).await.map_err(io::Error::other)?;
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(io::Error::other(error)),
            None => return Ok(()),
        }
    }
}

/// The address and certificate of an echo server.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) certificate: CertificateDer<'static>,
}

impl Listener {
    /// Reads the line that an echo says.
    pub(crate) fn read(line: &str) -> io::Result<Self> {
        let unread = || io::Error::other(format!("no echo says {line:?}"));
        let (address, certificate) = line.trim().split_once(' ').ok_or_else(unread)?;
        let certificate = BASE64_STANDARD
            .decode(certificate)
            .map_err(io::Error::other)?;
        Ok(Self {
            address: address.parse().map_err(io::Error::other)?,
            certificate: certificate.into(),
        })
    }
}

/// Sends `count` frames with at most `in_flight` outstanding; returns when the last is back.
pub(crate) fn pour(
    stream: &mut Stream,
    transfers: &mut Transfers,
    count: u32,
    in_flight: u32,
) -> io::Result<()> {
    let size = transfers.frame();
    let mut block = vec![0; READ];
    let (mut sent, mut back) = (0, 0);
    while back < size * count as usize {
        let next = transfers.count().min((count - sent) as usize);
        let room = in_flight as usize - (sent as usize - back / size);
        if next > 0 && next <= room {
            stream.write_all(transfers.numbered(sent, next))?;
            stream.flush()?;
            sent += next as u32;
            continue;
        }
        match stream.read(&mut block)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => back += read,
        }
    }
    Ok(())
}

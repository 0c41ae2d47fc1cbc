//! WebSocket over TCP or TLS: AMQP in binary messages, cut anywhere (AMQP WebSocket binding 1.0 §2.4).

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt as _, StreamExt as _};
use servicebus_amqp::Output;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::messages::{CONTROL, Messages};
use super::{Unread, Wire};
use crate::connection::account::READ_TURN;

/// Bytes read at once: a full record of TLS. The library clears as many before each read.
const READ: usize = 16 * 1024;
/// Largest message that is sent.
const SENT: usize = 64 * 1024;
/// Largest message that is accepted. Clients may put all frames of an AMQP message of up to 100 MiB into one WebSocket
/// message, as fe2o3-amqp does.
const TAKEN: usize = 128 * 1024 * 1024;

/// An incomplete message is checked again after so many bytes.
const PROGRESS: usize = 64 * 1024;
/// Longest text in a close frame (RFC 6455 §5.5).
const REASON: usize = 123;

/// A WebSocket after its handshake.
pub(crate) struct WebSocket<S> {
    socket: WebSocketStream<Messages<S>>,
    /// The rest of a message for the next turns.
    left: Bytes,
    /// The close frame that reports the peer's error.
    refusal: Option<CloseFrame>,
    /// Whether the close frame was passed to the library.
    closing: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Creates the server side of a stream of which `read` was read already.
    pub(crate) async fn new(stream: S, read: Bytes) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .max_message_size(Some(TAKEN))
            .max_frame_size(Some(TAKEN));
        let stream = Messages::new(stream);
        let socket =
            WebSocketStream::from_partially_read(stream, read.into(), Role::Server, Some(config));
        Self {
            socket: socket.await,
            left: Bytes::new(),
            refusal: None,
            closing: false,
        }
    }

    /// Writes the library's output.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.socket.poll_flush_unpin(cx)).map_err(io_error)?;
        self.socket.get_mut().answered();
        Poll::Ready(Ok(()))
    }

    /// Ends the output after a close frame; ready when the peer has closed. Until then it may answer, and a socket that is
    /// closed with unread input discards its output and fails the peer's write.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stream = self.socket.get_mut();
        let _ = ready!(Pin::new(&mut *stream).poll_shutdown(cx));
        let mut block = [MaybeUninit::uninit(); 4096];
        loop {
            let mut unread = ReadBuf::uninit(&mut block);
            let read = ready!(Pin::new(&mut *stream).poll_read(cx, &mut unread));
            if read.is_err() || unread.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: Unread + AsyncRead + AsyncWrite + Unpin> Unread for WebSocket<S> {
    fn has_unread(&self) -> bool {
        !self.left.is_empty() || self.socket.get_ref().stream().has_unread()
    }
}

impl<S: Unread + AsyncRead + AsyncWrite + Unpin> Wire for WebSocket<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, input: &mut BytesMut) -> Poll<io::Result<usize>> {
        let mut read = 0;
        while read < READ_TURN {
            if !self.left.is_empty() {
                let now = self.left.len().min(READ_TURN - read);
                input.extend_from_slice(&self.left.split_to(now));
                read += now;
                continue;
            }
            let polled = self.socket.poll_next_unpin(cx);
            let beneath = self.socket.get_mut();
            if polled.is_pending() && read == 0 && beneath.bytes_read() >= PROGRESS {
                // An incomplete message counts while it grows.
                read = beneath.bytes_read();
            }
            if polled.is_pending() && read > 0 {
                break;
            }
            match ready!(polled) {
                Some(Ok(Message::Binary(bytes))) => {
                    beneath.end_message();
                    self.left = bytes;
                }
                // The library answers it when it is asked for the next message.
                Some(Ok(Message::Ping(bytes))) => {
                    beneath.take_out(bytes.len());
                    beneath.expect_answer(bytes.len());
                    read += bytes.len() + CONTROL;
                }
                Some(Ok(Message::Pong(bytes))) => {
                    beneath.take_out(bytes.len());
                    read += bytes.len() + CONTROL;
                }
                Some(Ok(Message::Frame(_))) => {}
                Some(Ok(Message::Close(status))) => {
                    if status.is_none() {
                        beneath.expect_empty_close();
                    }
                    break;
                }
                None => break,
                Some(Ok(Message::Text(_))) => {
                    let text = "AMQP over WebSocket goes in binary messages, not in text";
                    self.refusal = Some(close(CloseCode::Unsupported, text));
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
                }
                Some(Err(error)) => {
                    self.refusal = refusal(&error);
                    return Poll::Ready(Err(io_error(error)));
                }
            }
        }
        self.socket.get_mut().read_on();
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, output: &mut Output) -> Poll<io::Result<()>> {
        while !output.is_empty() {
            if !self.socket.get_ref().is_within() {
                // The library's answers to pings are sent between two messages.
                ready!(self.poll_flush(cx))?;
                self.socket.get_mut().begin(output.len().min(SENT))?;
            }
            ready!(self.socket.get_mut().poll_go_on(cx, output))?;
        }
        if self.socket.get_ref().is_within() {
            return Pin::new(self.socket.get_mut()).poll_flush(cx);
        }
        self.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            self.closing = true;
            // Microsoft's library for Java spins for ever on a close frame without a status (spec/observed.md 57). If the
            // peer has closed already, this fails, which is fine.
            let normal = Message::Close(Some(close(CloseCode::Normal, "")));
            let _ = self.socket.start_send_unpin(normal);
        }
        ready!(self.socket.poll_close_unpin(cx)).map_err(io_error)?;
        self.poll_end(cx).map(Ok)
    }

    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(refusal) = self.refusal.take() {
            let message = Message::Close(Some(refusal));
            if self.socket.start_send_unpin(message).is_err() {
                return Poll::Ready(());
            }
        }
        let _ = ready!(self.socket.poll_flush_unpin(cx));
        self.poll_end(cx)
    }

    fn held(&self) -> usize {
        self.socket.get_ref().held() + self.left.len()
    }

    fn set_close_reason(&mut self, reason: &str) -> bool {
        self.refusal = Some(close(CloseCode::Size, reason));
        true
    }

    /// Clients of this protocol do not hold small segments back.
    fn acknowledge(&self) {}
}

/// Returns the close frame for a peer's error; `None` if it did nothing wrong.
fn refusal(error: &Error) -> Option<CloseFrame> {
    let code = code(error)?;
    let text = if code == CloseCode::Size {
        format!("a message has more than {TAKEN} bytes, which is the most")
    } else {
        error.to_string()
    };
    Some(close(code, &text))
}

/// Returns the status of a peer's error; `None` if it just disconnected.
fn code(error: &Error) -> Option<CloseCode> {
    if is_gone(error) {
        None
    } else if matches!(error, Error::Capacity(_)) {
        Some(CloseCode::Size)
    } else if matches!(error, Error::Utf8(_)) {
        Some(CloseCode::Invalid)
    } else {
        matches!(error, Error::Protocol(_)).then_some(CloseCode::Protocol)
    }
}

fn is_gone(error: &Error) -> bool {
    matches!(
        error,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)
    )
}

fn close(code: CloseCode, reason: &str) -> CloseFrame {
    let reason = &reason[..reason.floor_char_boundary(REASON)];
    CloseFrame {
        code,
        reason: reason.into(),
    }
}

fn io_error(error: Error) -> io::Error {
    if is_gone(&error) {
        return io::ErrorKind::ConnectionReset.into();
    }
    match (code(&error), error) {
        (_, Error::Io(error)) => error,
        (Some(_), error) => io::Error::new(io::ErrorKind::InvalidData, error),
        (None, error) => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::io::{DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    impl Unread for DuplexStream {
        fn has_unread(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn a_ping_during_a_message_is_answered_after_the_message() {
        // Less room than one message needs, so that it stops half-way.
        let (ours, theirs) = duplex(1000);
        let mut server = WebSocket::new(ours, Bytes::new()).await;
        let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
        let sent = (0..3 * SENT / 2)
            .map(|number| number as u8)
            .collect::<Bytes>();
        let mut output = Output::default();
        output.share(sent.clone());
        let mut input = BytesMut::new();

        let begun = poll_fn(|cx| server.poll_write(cx, &mut output)).now_or_never();
        assert!(begun.is_none(), "all of it went out at once");
        let ping = Message::Ping("are you there".into());
        client.send(ping).await.expect("a ping can be sent");
        // Now there is room for an answer.
        let part = client.next().now_or_never();
        assert!(part.is_none(), "the message came whole");
        let read = poll_fn(|cx| server.poll_read(cx, &mut input)).now_or_never();
        assert!(read.is_some() && input.is_empty(), "a ping brings nothing");
        assert_eq!(server.held(), "are you there".len() + 2, "the answer waits");

        let (mut received, mut answered) = (BytesMut::new(), false);
        let mut writing = pin!(poll_fn(|cx| server.poll_write(cx, &mut output)).fuse());
        while received.len() < sent.len() || !answered {
            let message = tokio::select! {
                message = timeout(DEADLINE, client.next()) => message.expect("in time"),
                written = &mut writing => {
                    written.expect("it is written");
                    continue;
                }
            };
            let message = message.expect("it goes on").expect("it is not an error");
            if let Message::Binary(bytes) = message {
                received.extend_from_slice(&bytes);
            } else {
                assert_eq!(message, Message::Pong("are you there".into()));
                answered = true;
            }
        }
        assert_eq!(received, sent);
        assert_eq!(server.held(), 0);
    }

    #[tokio::test]
    async fn a_close_waits_until_the_peer_has_answered_and_closed() {
        let (ours, theirs) = duplex(1000);
        let mut server = WebSocket::new(ours, Bytes::new()).await;
        let mut client = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;

        let closed = poll_fn(|cx| server.poll_close(cx)).now_or_never();
        assert!(closed.is_none(), "an answer would find no socket");
        let read = client.next().await.expect("it goes on");
        assert!(read.expect("it is a frame").is_close());
        client.flush().await.expect("the answer can be sent");
        drop(client);
        let closed = timeout(DEADLINE, poll_fn(|cx| server.poll_close(cx)));
        closed.await.expect("in time").expect("it is closed");
    }
}

//! The stream beneath a WebSocket, which sends binary messages straight from the output instead of copying them into the
//! library's buffer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use servicebus_amqp::Output;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

/// Header and mask of a control frame.
pub(crate) const CONTROL: usize = 6;
/// What the library answers to a close frame without a status, and what is written instead (spec/observed.md 57).
const EMPTY_CLOSE: [u8; 2] = [0x88, 0];
const NORMAL_CLOSE: &[u8] = &[0x88, 2, 0x03, 0xe8];
/// Slices of output that are written at once.
const SLICES: usize = 16;

/// A stream that is within a message or between two. Within one the library writes nothing: its output waits until it is
/// flushed between two.
pub(crate) struct Messages<S> {
    stream: S,
    /// The unwritten part of the message's header.
    header: Vec<u8>,
    /// Unwritten bytes of the message.
    left: usize,
    /// Bytes that the library has read since it returned a complete message.
    unfinished: usize,
    /// Bytes that the library has read since the last turn.
    bytes_read: usize,
    /// Bytes that the library must write.
    answers: usize,
    /// What is not written yet instead of the close frame at the end of what the library writes; nothing where that stays.
    close: Option<&'static [u8]>,
}

impl<S: AsyncWrite + Unpin> Messages<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            header: Vec::new(),
            left: 0,
            unfinished: 0,
            bytes_read: 0,
            answers: 0,
            close: None,
        }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    /// Returns the library's buffered bytes: of incomplete messages, and of unwritten answers.
    pub(crate) fn held(&self) -> usize {
        self.unfinished + self.answers
    }

    /// Returns the bytes that the library has read since the last turn.
    pub(crate) fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    /// Begins a turn.
    pub(crate) fn read_on(&mut self) {
        self.bytes_read = 0;
    }

    /// Records that the library has returned a complete message.
    pub(crate) fn end_message(&mut self) {
        self.unfinished = 0;
    }

    /// Records a control frame of so many bytes, which may come between the frames of a message.
    pub(crate) fn take_out(&mut self, payload: usize) {
        self.unfinished = self.unfinished.saturating_sub(payload + CONTROL);
    }

    /// Records that the library will answer a control frame with so many bytes.
    pub(crate) fn expect_answer(&mut self, payload: usize) {
        // The answer has no mask.
        self.answers += payload + CONTROL - 4;
    }

    /// The library will answer a close frame without a status with the like, and writes nothing after that.
    pub(crate) fn expect_empty_close(&mut self) {
        self.close = Some(NORMAL_CLOSE);
    }

    /// Records that the library has written everything.
    pub(crate) fn answered(&mut self) {
        self.answers = 0;
    }

    /// Returns whether a message is incomplete.
    pub(crate) fn is_within(&self) -> bool {
        self.left > 0
    }

    /// Begins a message with the next `size` bytes of the output.
    pub(crate) fn begin(&mut self, size: usize) -> io::Result<()> {
        let header = FrameHeader {
            opcode: OpCode::Data(Data::Binary),
            ..FrameHeader::default()
        };
        self.left = size;
        header
            .format(size as u64, &mut self.header)
            .map_err(io::Error::other)
    }

    /// Writes the rest of the message from the output, as far as available; ready when the stream has it.
    pub(crate) fn poll_go_on(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut Output,
    ) -> Poll<io::Result<()>> {
        while self.left > 0 && !output.is_empty() {
            let mut chunks = [IoSlice::new(&[]); SLICES];
            let count = output.chunks(&mut chunks);
            let mut slices = [IoSlice::new(&[]); SLICES + 1];
            slices[0] = IoSlice::new(&self.header);
            let mut room = self.left;
            for (slice, chunk) in slices[1..].iter_mut().zip(&chunks[..count]) {
                let taken = chunk.len().min(room);
                *slice = IoSlice::new(&chunk[..taken]);
                room -= taken;
            }
            let stream = Pin::new(&mut self.stream);
            let written = ready!(stream.poll_write_vectored(cx, &slices[..=count]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_header = written.min(self.header.len());
            self.header.drain(..of_header);
            self.left -= written - of_header;
            output.advance(written - of_header);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Messages<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let read_now = buffer.filled().len() - before;
        self.unfinished += read_now;
        self.bytes_read += read_now;
        read
    }
}

/// The library's output.
impl<S: AsyncWrite + Unpin> AsyncWrite for Messages<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // No wake-up is needed: the end of the message flushes the library.
        if self.left > 0 {
            return Poll::Pending;
        }
        let own = &mut *self;
        let (mut stream, mut bytes) = (Pin::new(&mut own.stream), bytes);
        if let (Some(close), Some(before)) = (&mut own.close, bytes.strip_suffix(&EMPTY_CLOSE)) {
            bytes = before;
            while before.is_empty() && !close.is_empty() {
                let written = ready!(stream.as_mut().poll_write(cx, close))?;
                if written == 0 {
                    return Poll::Ready(Ok(0));
                }
                *close = &close[written..];
            }
            if before.is_empty() {
                return Poll::Ready(Ok(EMPTY_CLOSE.len()));
            }
        }
        let written = ready!(stream.poll_write(cx, bytes))?;
        self.answers = self.answers.saturating_sub(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

//! A blocking connection of the client: a socket, a large read buffer, and the frames in it.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use servicebus_codec::{DecodeError, Fields, Reader};
use servicebus_test_support::stream::Stream;

use crate::frames::{self, Role, code};

/// Maximum bytes of one read.
pub(crate) const READ: usize = 256 * 1024;
/// Longer than anything here takes: a connection without input for so long hangs.
pub(crate) const HUNG: Duration = Duration::from_secs(120);

/// A session on an authenticated connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    input: Vec<u8>,
    start: usize,
    end: usize,
}

/// A received frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// Which performative it is.
    pub(crate) code: u8,
    /// The performative and what follows it.
    pub(crate) body: &'a [u8],
}

impl Connection {
    /// Connects, authenticates and begins a session.
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        Self::open_over(Stream::Plain(connect(address)?))
    }

    /// The same over a stream of any kind.
    pub(crate) fn open_over(stream: Stream) -> io::Result<Self> {
        let mut connection = Self {
            stream,
            input: vec![0; 2 * READ],
            start: 0,
            end: 0,
        };
        connection.write(&frames::login())?;
        connection.wait_for(code::BEGIN)?;
        Ok(connection)
    }

    /// Attaches a link; returns after the emulator's answer.
    pub(crate) fn attach(&mut self, role: Role, handle: u32, address: &str) -> io::Result<()> {
        self.attach_with(&frames::attach(role, handle, address))
    }

    /// Attaches a link by this frame.
    pub(crate) fn attach_with(&mut self, frame: &[u8]) -> io::Result<()> {
        self.write(frame)?;
        self.wait_for(code::ATTACH)
    }

    /// Writes raw bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Writes what is collected in `output`, if anything is, and empties it.
    pub(crate) fn write_out(&mut self, output: &mut Vec<u8>) -> io::Result<()> {
        if !output.is_empty() {
            self.write(output)?;
            output.clear();
        }
        Ok(())
    }

    /// Waits for input and reads it.
    pub(crate) fn read(&mut self) -> io::Result<()> {
        if self.input.len() - self.end < READ {
            self.input.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        match self.stream.read(&mut self.input[self.end..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }

    /// Waits for input no longer than this, and reads it; returns whether there was any.
    pub(crate) fn read_within(&mut self, wait: Duration) -> io::Result<bool> {
        self.stream.tcp().set_read_timeout(Some(wait))?;
        let read = self.read();
        self.stream.tcp().set_read_timeout(Some(HUNG))?;
        match read {
            Err(error) if is_late(&error) => Ok(false),
            read => read.map(|()| true),
        }
    }

    /// Reads available input without waiting.
    pub(crate) fn read_if_ready(&mut self) -> io::Result<()> {
        self.stream.tcp().set_nonblocking(true)?;
        let read = self.read();
        self.stream.tcp().set_nonblocking(false)?;
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            read => read,
        }
    }

    /// Returns the next complete frame; skips protocol headers, SASL and empty frames.
    pub(crate) fn frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        loop {
            let rest = &self.input[self.start..self.end];
            let Some(&[a, b, c, d, _, kind, _, _]) = rest.first_chunk::<8>() else {
                return Ok(None);
            };
            let size = match &[a, b, c, d] {
                b"AMQP" => 8,
                size => u32::from_be_bytes(*size) as usize,
            };
            if rest.len() < size {
                return Ok(None);
            }
            let body = self.start + 8..self.start + size;
            self.start += size;
            if size == 8 || kind != 0 {
                continue;
            }
            let code = self.input[body.start + 2];
            if matches!(code, code::CLOSE | code::END | code::DETACH) {
                let text = String::from_utf8_lossy(&self.input[body]).into_owned();
                return Err(io::Error::other(format!("the emulator refuses: {text}")));
            }
            return Ok(Some(Frame {
                code,
                body: &self.input[body],
            }));
        }
    }

    /// Reads until a performative of this kind has arrived; ignores others, but leaves flows to be read.
    fn wait_for(&mut self, wanted: u8) -> io::Result<()> {
        loop {
            while let Some(frame) = self.frame()? {
                if frame.code == wanted {
                    return Ok(());
                }
            }
            self.read()?;
        }
    }
}

impl<'a> Frame<'a> {
    /// Reads fields of the performative, from the first.
    fn read<T>(
        &self,
        read: impl FnOnce(&mut Fields<'a>) -> Result<T, DecodeError>,
    ) -> io::Result<T> {
        let read = || {
            let mut reader = Reader::new(self.body);
            reader.descriptor()?;
            read(&mut reader.fields()?)
        };
        read().map_err(io::Error::other)
    }

    /// Returns the number of deliveries in a disposition of accepted.
    pub(crate) fn accepted(&self) -> io::Result<u32> {
        let read = self.read(|fields| {
            fields.bool()?;
            let first = fields.u32()?.unwrap_or(0);
            let last = fields.u32()?.unwrap_or(first);
            fields.bool()?;
            Ok((first, last, fields.raw()?))
        });
        match read? {
            (first, last, Some([0, 0x53, code::ACCEPTED, ..])) => Ok(last.wrapping_sub(first) + 1),
            (.., state) => Err(io::Error::other(format!("not accepted: {state:?}"))),
        }
    }

    /// The state of a disposition.
    pub(crate) fn state(&self) -> io::Result<&'a [u8]> {
        let state = self.read(|fields| {
            skip(fields, 4)?;
            fields.raw()
        });
        state?.ok_or_else(|| io::Error::other("a disposition without a state"))
    }

    /// Returns how many deliveries the emulator will have accepted when a link's credit is used up.
    pub(crate) fn credit_limit(&self) -> io::Result<Option<u32>> {
        let (count, credit) = self.read(|fields| {
            skip(fields, 5)?;
            Ok((fields.u32()?, fields.u32()?))
        })?;
        let limit = count.zip(credit);
        Ok(limit.map(|(count, credit)| count.wrapping_add(credit)))
    }

    /// The handle of the link that a transfer is on.
    pub(crate) fn handle(&self) -> io::Result<u32> {
        let handle = self.read(Fields::u32)?;
        handle.ok_or_else(|| io::Error::other("a transfer without a handle"))
    }

    /// The delivery id of a transfer.
    pub(crate) fn delivery_id(&self) -> io::Result<u32> {
        let id = self.read(|fields| {
            skip(fields, 1)?;
            fields.u32()
        });
        id?.ok_or_else(|| io::Error::other("a transfer without an id"))
    }

    /// Whether more frames of a transfer's delivery follow.
    pub(crate) fn continues(&self) -> io::Result<bool> {
        let more = self.read(|fields| {
            skip(fields, 5)?;
            fields.bool()
        });
        Ok(more?.unwrap_or(false))
    }
}

fn skip(fields: &mut Fields<'_>, count: usize) -> Result<(), DecodeError> {
    (0..count).try_for_each(|_| fields.raw().map(drop))
}

/// Connects a socket without Nagle's algorithm and with a read timeout.
pub(crate) fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(HUNG))?;
    Ok(stream)
}

/// Systems differ in the error of a read timeout.
fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

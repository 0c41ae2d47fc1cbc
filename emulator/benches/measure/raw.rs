//! The baseline: the same bytes through a TCP echo server, on the same kind of runtime as the emulator's.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::Outcome;
use crate::connection::{READ, connect};
use crate::frames::{Transfers, read_stamp};
use crate::latency::Pace;
use crate::statistics::histogram;

/// Bytes that the emulator reads at once.
const BLOCK: usize = 64 * 1024;

/// Prints its address and echoes its input, until it is ended.
pub(crate) fn serve_echo() -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        crate::report::say(&listener.local_addr()?.to_string())?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(echo(stream));
        }
    })
}

async fn echo(mut stream: tokio::net::TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut block = vec![0; BLOCK];
    loop {
        let read = stream.read(&mut block).await?;
        if read == 0 {
            return Ok(());
        }
        stream.write_all(&block[..read]).await?;
    }
}

/// A connection to the echo server.
#[derive(Debug)]
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        connect(address).map(Self)
    }

    /// Sends `count` frames as fast as possible; returns the time until the last is back.
    pub(crate) fn pour(&self, transfers: &mut Transfers, count: u32) -> io::Result<Duration> {
        let size = transfers.frame() * count as usize;
        let begin = Instant::now();
        thread::scope(|scope| {
            let writing = scope.spawn(move || {
                let mut sent = 0;
                while sent < count {
                    let block = transfers.count().min((count - sent) as usize);
                    (&self.0).write_all(transfers.numbered(sent, block))?;
                    sent += block as u32;
                }
                Ok::<(), io::Error>(())
            });
            self.drain(size)?;
            writing.join().expect("the writer does not panic")
        })?;
        Ok(begin.elapsed())
    }

    fn drain(&self, size: usize) -> io::Result<()> {
        let mut block = vec![0; READ];
        let mut read = 0;
        while read < size {
            match (&self.0).read(&mut block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
        }
        Ok(())
    }

    /// Sends `count` frames one by one; records each round trip in nanoseconds.
    pub(crate) fn trickle(
        &self,
        transfers: &mut Transfers,
        pace: Pace,
        count: u32,
    ) -> io::Result<Histogram<u64>> {
        let mut frame = vec![0; transfers.frame()];
        let mut seen = histogram()?;
        let (clock, beat, answer) = pace.start();
        thread::scope(|scope| {
            let writing = scope.spawn(move || {
                for number in 0..count {
                    beat.wait_for(number);
                    transfers.stamp(clock.stamp());
                    (&self.0).write_all(transfers.numbered(number, 1))?;
                }
                Ok::<(), io::Error>(())
            });
            for _ in 0..count {
                (&self.0).read_exact(&mut frame)?;
                seen.saturating_record(clock.since(read_stamp(&frame)));
                answer.give();
            }
            writing.join().expect("the writer does not panic")
        })?;
        Ok(seen)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

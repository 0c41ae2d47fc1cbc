//! The names of headers in the letters in which they were sent.
//!
//! A header becomes an application property and the reverse, and the name of a property has case; the HTTP library knows
//! names in lower case only. So a connection keeps the bytes that it has read of late, in which the head of the request
//! that is being answered is found again, and the names in the head of an answer are changed on their way out. Nothing
//! but the case of names comes of it, and no byte more or less: a head that is not found costs no more than that.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::http::request::Parts;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are kept at most, and of those the ones that stay when there are more. A head comes with less.
const MOST: usize = 512 * 1024;
const KEPT: usize = 256 * 1024;
/// What ends a head.
const END: &[u8] = b"\r\n\r\n";

/// What a connection has read of late and how its next answer is written: an extension of its requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heads(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    read: Vec<u8>,
    /// Names of the next answer, in their letters.
    answer: Vec<String>,
}

/// A stream whose heads can be looked at again and written in other letters.
#[derive(Debug)]
pub(crate) struct Tapped<S> {
    inner: S,
    heads: Heads,
}

/// Lets the heads on a stream be looked at again and written in other letters.
pub(crate) fn tap<S>(inner: S) -> (Tapped<S>, Heads) {
    let heads = Heads::default();
    let tapped = Tapped {
        inner,
        heads: heads.clone(),
    };
    (tapped, heads)
}

impl<S> Tapped<S> {
    /// The stream as it was, for those who go on in another protocol.
    pub(crate) fn into_inner(self) -> S {
        self.inner
    }
}

impl Heads {
    /// The names of a request's headers as they were sent, by their lower case; what came before is forgotten.
    pub(super) fn names(&self, parts: &Parts) -> HashMap<String, String> {
        let target = parts
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str());
        let line = format!("{} {target} HTTP/1.", parts.method);
        let read = &mut self.state().read;
        let Some(begin) = position(read, line.as_bytes()) else {
            return HashMap::new();
        };
        let end = position(&read[begin..], END).map_or(read.len(), |end| begin + end);
        let head = String::from_utf8_lossy(&read[begin..end]).into_owned();
        read.drain(..end);
        let names = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        names
            .map(|(name, _)| (name.to_ascii_lowercase(), name.to_owned()))
            .collect()
    }

    /// Has these names in the head of the next answer written as they are here.
    pub(super) fn write(&self, names: Vec<String>) {
        self.state().answer = names;
    }

    /// The beginning of an answer with its names in their letters; none when it has no names to change, or is none.
    fn restored(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let state = self.state();
        if state.answer.is_empty() || !bytes.starts_with(b"HTTP/1.") {
            return None;
        }
        let mut restored = bytes.to_vec();
        let end = position(bytes, END).unwrap_or(bytes.len());
        for name in &state.answer {
            let line = format!("\r\n{}: ", name.to_ascii_lowercase());
            if let Some(at) = position(&bytes[..end], line.as_bytes()) {
                restored[at + 2..at + 2 + name.len()].copy_from_slice(name.as_bytes());
            }
        }
        Some(restored)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, bytes: &[u8]) {
        let read = &mut self.state().read;
        read.extend_from_slice(bytes);
        if read.len() > MOST {
            let excess = read.len() - KEPT;
            read.drain(..excess);
        }
    }
}

impl<S: AsyncWrite + Unpin> Tapped<S> {
    /// Writes the beginning of an answer whose names have letters of their own; none for anything else.
    fn poll_write_head(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Option<Poll<io::Result<usize>>> {
        let restored = self.heads.restored(bytes)?;
        let polled = Pin::new(&mut self.inner).poll_write(cx, &restored);
        if polled.is_ready() {
            self.heads.write(Vec::new());
        }
        Some(polled)
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

impl<S: AsyncRead + Unpin> AsyncRead for Tapped<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.heads.keep(&buffer.filled()[before..]);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Tapped<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.poll_write_head(cx, bytes) {
            Some(polled) => polled,
            None => Pin::new(&mut self.inner).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        match first.and_then(|first| self.poll_write_head(cx, first)) {
            Some(polled) => polled,
            None => Pin::new(&mut self.inner).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(method: &str, target: &str) -> Parts {
        let request = Request::builder().method(method).uri(target).body(());
        request.expect("a request").into_parts().0
    }

    #[test]
    fn names_are_those_of_the_request_that_is_asked_for() {
        let heads = Heads::default();
        heads.keep(b"POST /q/messages?a HTTP/1.1\r\nPriority: 1\r\nHOST: x\r\n\r\nprio");
        heads.keep(b"rity: body\r\nPOST /q/messages HTTP/1.1\r\npRIORITY: 2\r\n\r\n");
        let first = heads.names(&parts("POST", "/q/messages?a"));
        assert_eq!(first["priority"], "Priority");
        assert_eq!(first["host"], "HOST");
        let second = heads.names(&parts("POST", "/q/messages"));
        assert_eq!(second["priority"], "pRIORITY");
        assert!(heads.names(&parts("POST", "/q/messages")).is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_latest() {
        let heads = Heads::default();
        for _ in 0..100 {
            heads.keep(&[b'x'; 64 * 1024]);
            let kept = heads.state().read.len();
            assert!(kept <= MOST, "{kept}");
        }
        heads.keep(b"PUT / HTTP/1.1\r\nA: b\r\n\r\n");
        assert_eq!(heads.names(&parts("PUT", "/"))["a"], "A");
    }
    #[test]
    fn names_of_an_answer_are_written_in_their_letters_once() {
        let heads = Heads::default();
        let answer =
            b"HTTP/1.1 200 OK\r\nprio: 1\r\npriority: prio\r\n\r\nb\r\npriority: 1\r\n\r\n";
        assert_eq!(heads.restored(answer), None);
        heads.write(vec!["Priority".into(), "pRIO".into(), "Missing".into()]);
        assert_eq!(
            heads.restored(b"the rest of another one\r\npriority: 1"),
            None
        );
        let restored = heads.restored(answer).expect("names to change");
        assert_eq!(
            String::from_utf8_lossy(&restored),
            "HTTP/1.1 200 OK\r\npRIO: 1\r\nPriority: prio\r\n\r\nb\r\npriority: 1\r\n\r\n"
        );
    }
}

//! Keeps the original case of header names.
//!
//! Headers become application properties and the reverse, and the names of properties are case-sensitive; the HTTP library
//! has names in lower case only. So a connection keeps the bytes that it has read recently, except bodies of known length,
//! and finds the head of the current request in them; on output it changes the names in the head of a response. This affects
//! only the case of names and the ends of lines, which the HTTP library does not report either; no byte is added or removed,
//! and a head that is not found only loses its case.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::Request;
use axum::http::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum bytes that are kept, and of those the ones that stay when there are more. A head has less.
const MOST: usize = 512 * 1024;
const KEPT: usize = 256 * 1024;
const END: &[u8] = b"\r\n\r\n";

/// The recent input of a connection and the case of its next response: an extension of its requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heads(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Input behind the head of the current request.
    read: Vec<u8>,
    /// The head of the current request.
    head: Vec<u8>,
    /// How many bytes of its body are still to come; they are not kept.
    body: u64,
    /// Whether `read` begins with the next head, and not with a body of unknown length.
    is_exact: bool,
    /// Names of the next response, in their own case.
    answer: Vec<String>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            read: Vec::new(),
            head: Vec::new(),
            body: 0,
            is_exact: true,
            answer: Vec::new(),
        }
    }
}

/// A stream that keeps heads of requests and changes the case in heads of responses.
#[derive(Debug)]
pub(crate) struct HeaderCaseStream<S> {
    inner: S,
    heads: Heads,
}

/// Wraps a stream and returns the access to its heads.
pub(crate) fn tap<S>(inner: S) -> (HeaderCaseStream<S>, Heads) {
    let heads = Heads::default();
    let tapped = HeaderCaseStream {
        inner,
        heads: heads.clone(),
    };
    (tapped, heads)
}

impl<S> HeaderCaseStream<S> {
    /// Returns the inner stream, for another protocol.
    pub(crate) fn into_inner(self) -> S {
        self.inner
    }
}

impl Heads {
    /// Finds the head of a request; returns false if it is certain that one of its lines ends without a carriage return.
    pub(crate) fn begin<B>(&self, request: &Request<B>) -> bool {
        let state = &mut *self.state();
        state.head.clear();
        let found = state.find(request);
        let is_certain = state.is_exact;
        let Some((begin, length, is_clean)) = found else {
            state.body = 0;
            return true;
        };
        state.head.extend(&state.read[begin..begin + length]);
        let headers = request.headers();
        state.is_exact = !headers.contains_key(TRANSFER_ENCODING);
        let body = headers.get(CONTENT_LENGTH).filter(|_| state.is_exact);
        let body = body.and_then(|body| body.to_str().ok()?.parse().ok());
        state.body = body.unwrap_or(0);
        let rest = state.read.split_off(begin + length);
        state.read.clear();
        state.keep(&rest);
        is_clean || !is_certain
    }

    /// Returns whether the whole body of the current request was read, as far as its length is known.
    pub(crate) fn has_whole_body(&self) -> bool {
        let state = self.state();
        state.is_exact && state.body == 0
    }

    /// Returns the names of the request's headers as sent, by their lower case.
    pub(crate) fn names(&self) -> HashMap<String, String> {
        let head = String::from_utf8_lossy(&self.state().head).into_owned();
        let names = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        names
            .map(|(name, _)| (name.to_ascii_lowercase(), name.to_owned()))
            .collect()
    }

    /// Sets the case of names in the head of the next response.
    pub(crate) fn write(&self, names: Vec<String>) {
        self.state().answer = names;
    }

    /// Returns the beginning of a response with its names in their own case; `None` if there are no names to change, or it
    /// is not a response.
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
        self.0.lock()
    }

    fn keep(&self, bytes: &[u8]) {
        self.state().keep(bytes);
    }
}

impl State {
    /// Finds this request's head in the input: its position, its length, and whether all of its lines end correctly. A body
    /// of unknown length before it may look like heads, so that only one with the headers of the request counts.
    fn find<B>(&mut self, request: &Request<B>) -> Option<(usize, usize, bool)> {
        let found = |begin| {
            let (length, is_clean) = measure(&self.read[begin..], request.headers())?;
            Some((begin, length, is_clean))
        };
        if self.is_exact {
            // A server must skip empty lines before a request (RFC 9112 §2.2).
            let begin = self.read.iter().position(|byte| !b"\r\n".contains(byte));
            if let Some(found) = begin.and_then(found) {
                return Some(found);
            }
        }
        let uri = request.uri();
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let line = format!("{} {target} HTTP/1.", request.method());
        let windows = self.read.windows(line.len()).enumerate();
        let mut begins = windows.filter(|(_, window)| *window == line.as_bytes());
        let found = begins.find_map(|(begin, _)| found(begin));
        self.is_exact = false;
        found
    }

    fn keep(&mut self, bytes: &[u8]) {
        let body = self.body.min(bytes.len() as u64);
        self.body -= body;
        self.read.extend_from_slice(&bytes[body as usize..]);
        if self.read.len() > MOST {
            let excess = self.read.len() - KEPT;
            self.read.drain(..excess);
            self.is_exact = false;
        }
    }
}

/// Returns the length of a head with the empty line at its end, and whether all of its lines end correctly; `None` if it has
/// other headers than these.
fn measure(bytes: &[u8], headers: &HeaderMap) -> Option<(usize, bool)> {
    let (mut length, mut is_clean) = (0, true);
    // The HTTP library leaves out lengths that are repeated or do not count.
    let mut unseen = headers.len() - headers.get_all(CONTENT_LENGTH).iter().count();
    for (index, line) in bytes.split_inclusive(|&byte| byte == b'\n').enumerate() {
        length += line.len();
        is_clean &= line.ends_with(b"\r\n");
        if matches!(line, b"\n" | b"\r\n") {
            return (unseen == 0).then_some((length, is_clean));
        }
        if index == 0 {
            continue;
        }
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = std::str::from_utf8(&line[..colon]).ok()?;
        if name.eq_ignore_ascii_case(CONTENT_LENGTH.as_str()) {
            continue;
        }
        let value = line[colon + 1..].trim_ascii();
        let mut values = headers.get_all(name).iter();
        if !values.any(|found| found.as_bytes() == value) {
            return None;
        }
        unseen = unseen.checked_sub(1)?;
    }
    None
}

impl<S: AsyncWrite + Unpin> HeaderCaseStream<S> {
    /// Writes the beginning of a response whose names have a case of their own; `None` for other output.
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

impl<S: AsyncRead + Unpin> AsyncRead for HeaderCaseStream<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for HeaderCaseStream<S> {
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
    use super::*;

    fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request")
    }

    #[test]
    fn header_names_belong_to_the_current_request() {
        let heads = Heads::default();
        heads.keep(b"POST /q/messages?a HTTP/1.1\r\nPriority: 1\r\nHOST: x\r\n\r\nPOST /q ");
        // A body that looks like the next request, in two reads.
        let body = "POST /q HTTP/1.1\nA: b\r\n\r\n";
        heads.keep(&body.as_bytes()["POST /q ".len()..]);
        heads.keep(b"POST /q HTTP/1.1\r\npRIORITY: 2\r\n\r\n");
        let length = body.len().to_string();
        let first = [
            ("Priority", "1"),
            ("Host", "x"),
            ("Content-Length", &length),
        ];
        let first = request("POST", "/q/messages?a", &first);
        assert!(heads.begin(&first));
        assert_eq!(heads.names()["priority"], "Priority");
        assert_eq!(heads.names()["host"], "HOST");
        let second = request("POST", "/q", &[("Priority", "2")]);
        assert!(heads.begin(&second));
        assert_eq!(heads.names()["priority"], "pRIORITY");
        assert!(heads.begin(&second) && heads.names().is_empty());
    }

    #[test]
    fn the_head_after_a_chunked_body_is_found() {
        let heads = Heads::default();
        heads.keep(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n");
        assert!(heads.begin(&request("POST", "/a", &[("Transfer-Encoding", "chunked")])));
        heads.keep(b"PUT /b HTTP/1.1\r\nA: b\r\n\r\n");
        assert!(heads.begin(&request("PUT", "/b", &[("A", "b")])));
        assert_eq!(heads.names()["a"], "A");
    }

    #[test]
    fn a_chunked_body_that_looks_like_a_head_is_not_one() {
        let next = request("PUT", "/b", &[("Aa", "b"), ("Aa", "c")]);
        for body in [
            // Other values, other numbers of headers, and no end.
            "PUT /b HTTP/1.1\r\nAA: x\r\nAA: c\r\n\r\n",
            "PUT /b HTTP/1.1\r\nAA: b\r\n\r\n",
            "PUT /b HTTP/1.1\r\nAA: b\r\nAA: c\r\nAA: b\r\n\r\n",
            "PUT /b HTTP/1.1\nHost: x\n\nPUT /b HTTP/1.1\r\nAA: b\r\n",
        ] {
            let heads = Heads::default();
            heads.keep(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
            assert!(heads.begin(&request("POST", "/a", &[("Transfer-Encoding", "chunked")])));
            heads.keep(body.as_bytes());
            heads.keep(b"\r\n0\r\n\r\nPUT /b HTTP/1.1\r\naA: b\r\naA:c \r\n\r\n");
            assert!(heads.begin(&next), "{body}");
            assert_eq!(heads.names()["aa"], "aA", "{body}");
            assert!(heads.state().read.is_empty());
        }
    }

    #[test]
    fn a_head_after_a_chunked_body_may_lose_its_case_but_is_not_refused() {
        // The body contains the whole next head, with other ends of its lines.
        let heads = Heads::default();
        heads.keep(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
        assert!(heads.begin(&request("POST", "/a", &[("Transfer-Encoding", "chunked")])));
        heads.keep(b"PUT /b HTTP/1.1\naa: b\n\n\r\n0\r\n\r\nPUT /b HTTP/1.1\r\nAA: b\r\n\r\n");
        assert!(heads.begin(&request("PUT", "/b", &[("Aa", "b")])));
        heads.keep(b"PUT /c HTTP/1.1\r\nAA: b\r\n\r\n");
        assert!(heads.begin(&request("PUT", "/c", &[("Aa", "b")])));
        assert_eq!(heads.names()["aa"], "AA");
    }

    #[test]
    fn a_line_without_carriage_return_is_detected() {
        for (head, is_clean) in [
            ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", true),
            ("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", true),
            ("GET / HTTP/1.1\nHost: x\r\n\r\n", false),
            ("GET / HTTP/1.1\r\nHost: x\n\r\n", false),
            ("GET / HTTP/1.1\r\nHost: x\r\n\n", false),
            ("GET / HTTP/1.1\nHost: x\n\n", false),
        ] {
            let heads = Heads::default();
            heads.keep(head.as_bytes());
            heads.keep(b"GET /next HTTP/1.1\r\n\r\n");
            let first = request("GET", "/", &[("Host", "x")]);
            assert_eq!(heads.begin(&first), is_clean, "{head:?}");
            assert!(heads.begin(&request("GET", "/next", &[])), "{head:?}");
        }
    }

    #[test]
    fn kept_input_is_limited_to_the_latest_bytes() {
        let heads = Heads::default();
        for _ in 0..100 {
            heads.keep(&[b'x'; 64 * 1024]);
            let kept = heads.state().read.len();
            assert!(kept <= MOST, "{kept}");
        }
        heads.keep(b"PUT / HTTP/1.1\r\nA: b\r\n\r\n");
        assert!(heads.begin(&request("PUT", "/", &[("A", "b")])));
        assert_eq!(heads.names()["a"], "A");
    }

    #[test]
    fn a_body_of_known_length_is_not_kept() {
        let heads = Heads::default();
        heads.keep(b"PUT / HTTP/1.1\r\n\r\n");
        heads.begin(&request("PUT", "/", &[("Content-Length", "1000000")]));
        heads.keep(&[b'x'; 999_999]);
        assert!(heads.state().read.is_empty());
        heads.keep(b"xGET");
        assert_eq!(heads.state().read, b"GET");
    }

    #[test]
    fn response_header_names_are_written_in_their_case_once() {
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

//! Requests and answers of one HTTP/1.1 connection: method, path and status.
//!
//! Bodies are stepped over by their lengths (RFC 9112 §6).

use std::{collections::VecDeque, sync::Arc};

use bytes::{Buf as _, BytesMut};

use super::{Side, trace::Budget};

/// Longest head that is read, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Longest line that gives the size of a chunk, in bytes.
const MAX_CHUNK_LINE: usize = 1024;
/// Most headers of a head.
const MAX_HEADERS: usize = 128;

/// An HTTP connection as the recorder sees it.
#[derive(Debug)]
pub(super) struct Http {
    budget: Arc<Budget>,
    client: Messages,
    service: Messages,
    operations: Vec<String>,
    /// Requests that have no answer yet: what the trace says of them, and whether it is one to a `HEAD`.
    pending: VecDeque<(Option<usize>, bool)>,
    is_switched: bool,
}

/// One direction.
#[derive(Debug, Default)]
struct Messages {
    left: BytesMut,
    next: NextPart,
}

/// What is due next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum NextPart {
    #[default]
    Head,
    Counted(u64),
    Size,
    Chunk(u64),
    Trailer,
    UntilEnd,
}

impl Http {
    pub(super) fn new(budget: Arc<Budget>) -> Self {
        Self {
            budget,
            client: Messages::default(),
            service: Messages::default(),
            operations: Vec::new(),
            pending: VecDeque::new(),
            is_switched: false,
        }
    }

    /// Takes the next bytes of one side; an error when it is not understood.
    pub(super) fn push(&mut self, side: Side, bytes: &[u8]) -> Result<(), String> {
        let direction = match side {
            Side::Client => &mut self.client,
            Side::Service => &mut self.service,
        };
        direction.left.extend_from_slice(bytes);
        while !self.is_switched {
            let direction = match side {
                Side::Client => &mut self.client,
                Side::Service => &mut self.service,
            };
            match direction.head()? {
                None => break,
                Some(head) => match side {
                    Side::Client => self.requested(&head)?,
                    Side::Service => self.answered(&head)?,
                },
            }
        }
        Ok(())
    }

    /// What is left of both directions once the connection has changed to WebSocket.
    pub(super) fn switched(&mut self) -> Option<[(Side, BytesMut); 2]> {
        self.is_switched.then(|| {
            [
                (Side::Client, std::mem::take(&mut self.client.left)),
                (Side::Service, std::mem::take(&mut self.service.left)),
            ]
        })
    }

    /// Says that the rest of the connection is not decoded.
    pub(super) fn lost(&mut self, why: &str) {
        self.operations.push(format!("not decoded further: {why}"));
    }

    /// Tells every request with the status of its answer.
    pub(super) fn render(&self) -> (String, Vec<String>) {
        ("HTTP".to_owned(), self.operations.clone())
    }

    fn requested(&mut self, head: &[u8]) -> Result<(), String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        request.parse(head).map_err(|error| error.to_string())?;
        let (method, path) = (request.method.unwrap_or("-"), request.path.unwrap_or("-"));
        self.client.next = length(request.headers, NextPart::Head);
        let index = self.budget.take().then(|| {
            self.operations.push(format!("{method} {path}"));
            self.operations.len() - 1
        });
        self.pending.push_back((index, method == "HEAD"));
        Ok(())
    }

    fn answered(&mut self, head: &[u8]) -> Result<(), String> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut answer = httparse::Response::new(&mut headers);
        answer.parse(head).map_err(|error| error.to_string())?;
        let code = answer.code.unwrap_or_default();
        if (100..200).contains(&code) && code != 101 {
            return Ok(());
        }
        let (index, is_head) = self.pending.pop_front().unwrap_or_default();
        if let Some(index) = index {
            self.operations[index] += &format!(": {code}");
        }
        self.is_switched = code == 101;
        self.service.next = match is_head || matches!(code, 101 | 204 | 304) {
            true => NextPart::Head,
            false => length(answer.headers, NextPart::UntilEnd),
        };
        Ok(())
    }
}

impl Messages {
    /// Steps over bodies up to the end of the next head.
    fn head(&mut self) -> Result<Option<BytesMut>, String> {
        loop {
            match self.next {
                NextPart::Head => return self.until(b"\r\n\r\n", MAX_HEAD),
                NextPart::Counted(length) => match self.step(length) {
                    0 => self.next = NextPart::Head,
                    left => {
                        self.next = NextPart::Counted(left);
                        return Ok(None);
                    }
                },
                NextPart::Size => {
                    let Some(line) = self.until(b"\r\n", MAX_CHUNK_LINE)? else {
                        return Ok(None);
                    };
                    self.next = match size(&line)? {
                        0 => NextPart::Trailer,
                        size => NextPart::Chunk(size + 2),
                    };
                }
                NextPart::Chunk(length) => match self.step(length) {
                    0 => self.next = NextPart::Size,
                    left => {
                        self.next = NextPart::Chunk(left);
                        return Ok(None);
                    }
                },
                NextPart::Trailer => match self.until(b"\r\n", MAX_CHUNK_LINE)? {
                    None => return Ok(None),
                    Some(line) if line.len() == 2 => self.next = NextPart::Head,
                    Some(_field) => {}
                },
                NextPart::UntilEnd => {
                    self.left.clear();
                    return Ok(None);
                }
            }
        }
    }

    fn until(&mut self, end: &[u8], longest: usize) -> Result<Option<BytesMut>, String> {
        let found = self.left.windows(end.len()).position(|part| part == end);
        match found {
            Some(at) => Ok(Some(self.left.split_to(at + end.len()))),
            None if self.left.len() > longest => {
                Err(format!("no end of a head or line within {longest} bytes"))
            }
            None => Ok(None),
        }
    }

    /// Steps over so many bytes; how many are still to come.
    fn step(&mut self, length: u64) -> u64 {
        let there =
            usize::try_from(length).map_or(self.left.len(), |length| length.min(self.left.len()));
        self.left.advance(there);
        length - there as u64
    }
}

/// How a body ends; one without a length ends as is said.
fn length(headers: &[httparse::Header<'_>], without: NextPart) -> NextPart {
    let value = |name: &str| {
        let mut headers = headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let coding = value("transfer-encoding").unwrap_or_default();
    if coding.to_ascii_lowercase().contains("chunked") {
        return NextPart::Size;
    }
    let counted = value("content-length").and_then(|length| length.trim().parse().ok());
    counted.map_or(without, NextPart::Counted)
}

fn size(line: &[u8]) -> Result<u64, String> {
    let text = String::from_utf8_lossy(line);
    let digits = text.split(';').next().unwrap_or_default().trim();
    let size = u64::from_str_radix(digits, 16).ok();
    let size = size.filter(|size| *size < u64::MAX - 2);
    size.ok_or_else(|| format!("the size of a chunk is {digits:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: &[u8] =
        b"POST /orders/messages?timeout=60 HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody\
        PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nt: 1\r\n\r\n\
        DELETE /b HTTP/1.1\r\n\r\n";
    const ANSWERS: &[u8] =
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok\
        HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\nuntil the end";

    #[test]
    fn requests_are_rendered_with_their_responses() {
        for piece in [1, 7, 1000] {
            let mut http = Http::new(Arc::default());
            for (side, bytes) in [(Side::Client, REQUESTS), (Side::Service, ANSWERS)] {
                for piece in bytes.chunks(piece) {
                    http.push(side, piece).unwrap();
                }
            }
            assert_eq!(
                http.render().1,
                [
                    "POST /orders/messages?timeout=60: 201",
                    "PUT /a: 204",
                    "DELETE /b: 404"
                ]
            );
        }
    }

    #[test]
    fn invalid_http_is_an_error() {
        let mut http = Http::new(Arc::default());
        assert!(http.push(Side::Client, b"\x00\x01\r\n\r\n").is_err());
        let mut http = Http::new(Arc::default());
        assert!(http.push(Side::Client, &[b'a'; MAX_HEAD + 1]).is_err());
    }
}

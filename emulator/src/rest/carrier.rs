//! What a request has to know of the connection on which it came.

use tokio::sync::watch;

use super::heads::Heads;

/// An extension of every request.
#[derive(Debug, Clone)]
pub(crate) struct Carrier {
    /// The messages in which names were sent.
    pub(crate) heads: Heads,
    /// Whether it goes through TLS.
    pub(crate) is_secured: bool,
    /// Changes when the emulator stops.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Carrier {
    /// How the URLs of this connection begin.
    pub(super) fn scheme(&self) -> &'static str {
        if self.is_secured { "https" } else { "http" }
    }
}

//! What this side announces and allows; fixed for the life of a connection.

use std::time::Duration;

/// The limits and names of our side of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of this container in our `open`.
    pub container_id: String,
    /// Put behind the text of every error that the engine raises itself, so that log and peer name the same
    /// thing; nothing if empty.
    pub tracking_id: String,
    /// Largest frame in bytes that we take, and that we send if the peer allows as much. At least
    /// 512 (AMQP 1.0 §2.7.1).
    pub max_frame_size: u32,
    /// Highest channel number; one more is the number of sessions that a connection may have.
    pub channel_max: u16,
    /// Highest link handle; one more is the number of links that a session may have. Never more
    /// than 65535, whatever is written here.
    pub handle_max: u32,
    /// How long the peer may be silent before its connection is closed. `open` announces half of it, as the
    /// service does (spec/observed.md 47).
    pub idle_timeout: Duration,
    /// Credit that a sending peer gets on each link, refilled at half.
    pub incoming_credit: u32,
    /// Transfers that a peer may send on a session before it hears from us, announced again at half.
    pub session_window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            container_id: "servicebus-emulator".to_owned(),
            tracking_id: String::new(),
            max_frame_size: 65_536,
            channel_max: 4_999,
            handle_max: 4_999,
            idle_timeout: Duration::from_secs(240),
            incoming_credit: 1_000,
            session_window: 5_000,
        }
    }
}

impl Config {
    /// The same with every number in the range that the engine can keep.
    pub(crate) fn bounded(mut self) -> Self {
        self.max_frame_size = self.max_frame_size.max(512);
        self.handle_max = self.handle_max.min(u32::from(u16::MAX));
        self.incoming_credit = self.incoming_credit.max(1);
        self.session_window = self.session_window.max(1);
        self
    }
}

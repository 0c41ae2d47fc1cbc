//! The limits and names of this side; fixed for the life of a connection.

use std::time::Duration;

/// The limits and names of this side of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Container id in this side's `open`.
    pub container_id: String,
    /// Appended to the text of every error that the engine raises itself, so that the log and the peer name the same id;
    /// nothing if empty.
    pub tracking_id: String,
    /// Largest accepted frame in bytes, and the largest sent one if the peer allows it. At least 512 (AMQP 1.0 §2.7.1).
    pub max_frame_size: u32,
    /// Highest channel number; a connection may have one session more.
    pub channel_max: u16,
    /// Highest link handle; a session may have one link more, and is ended if the peer uses a higher one. Values above 65535
    /// are reduced to it. The service's is 255 (azure-sdk-for-java 32211).
    pub handle_max: u32,
    /// How long the peer may be silent before its connection is closed. `open` announces half of it, as the service does
    /// (spec/observed.md 47).
    pub idle_timeout: Duration,
    /// Credit of a sending peer on each link, refilled at half.
    pub incoming_credit: u32,
    /// Transfers that a peer may send on a session before the next flow, announced again at half.
    pub session_window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            container_id: "servicebus-emulator".to_owned(),
            tracking_id: String::new(),
            max_frame_size: 65_536,
            channel_max: 4_999,
            handle_max: 255,
            idle_timeout: Duration::from_secs(240),
            incoming_credit: 1_000,
            session_window: 5_000,
        }
    }
}

impl Config {
    /// Limits every number to the range that the engine supports.
    pub(crate) fn bounded(mut self) -> Self {
        self.max_frame_size = self.max_frame_size.max(512);
        self.handle_max = self.handle_max.min(u32::from(u16::MAX));
        self.incoming_credit = self.incoming_credit.max(1);
        self.session_window = self.session_window.max(1);
        self
    }
}

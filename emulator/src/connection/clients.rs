//! How client libraries introduce themselves, and which of them needs what (seen with the versions that `tests/sdks` pins,
//! unless another source is named).
//!
//! | library | SASL | `channel-max` | idle time-out | properties | windows of `begin` | needs |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | fe2o3-amqp 0.14 under azservicebus | ANONYMOUS | 255 | 30 s | none | 2,048 both | outcomes a millisecond later |
//! | the same under the official Rust client (as it was described: its crate speaks REST here) | ANONYMOUS | 255 | none | none | 2,048 both | the same |
//! | go-amqp | ANONYMOUS | none | 30 s | `MSGolangClient` | 5,000 both | refused attaches without termini |
//! | pyamqp | ANONYMOUS | 65,535 | none | `azsdk-python-servicebus` | 65,536 both | |
//! | rhea | ANONYMOUS | none | 60 s | `MSJSClient` | 2,048 in, 4,294,967,295 out | |
//! | proton-j, under Java's SDK | ANONYMOUS | 65,535 | 30 s | `azure-messaging-servicebus` | 2,147,483,647 both | close frames with a status |
//! | Proton | PLAIN | 32,767 | none | none | 2,147,483,647 both | |
//! | Microsoft's for .NET (spec/wire.md 1.4, observed.md 44) | MSSBCBS | 8,191 | 60 s | a set of its own | 4,294,967,295 in | every outcome twice |
//!
//! Libraries are known by what they always write, not by an option that an application can set: one that is taken for
//! another waits a millisecond, one that is not known would hang.

use servicebus_amqp::PeerOpen;
use servicebus_broker::Tier;

use super::peer::ClientConnection;
use crate::nodes::ServiceError;

/// What fe2o3-amqp announces, and no other library that is known.
const CHANNEL_MAX_OF_FE2O3: u16 = 255;
/// What it writes in every `begin`, coming in and going out.
const WINDOWS_OF_FE2O3: (u32, u32) = (2048, 2048);

/// Whether the peer is one that loses outcomes that come at once (decision D31), as far as its `open` tells.
pub(crate) fn opens_as_fe2o3(open: &PeerOpen) -> bool {
    open.channel_max == CHANNEL_MAX_OF_FE2O3
}

/// The same, as far as the windows of a session tell.
pub(crate) fn begins_as_fe2o3(windows: (u32, u32)) -> bool {
    windows == WINDOWS_OF_FE2O3
}

impl ClientConnection {
    /// Refuses clients of JMS 2.0 where the namespace has none of it (spec/observed.md 72).
    pub(crate) fn check_jms(&mut self) {
        if self.client.is_jms
            && self.client.namespace.is_some()
            && self.client.tier() != Tier::Premium
        {
            let error = self.client.refuse(&ServiceError::needs_premium(), None);
            self.engine.close(Some(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table: library, `channel-max`, windows, and whether it is fe2o3-amqp.
    const KNOWN: [(&str, u16, (u32, u32), bool); 8] = [
        ("azservicebus", 255, (2048, 2048), true),
        ("official Rust client", 255, (2048, 2048), true),
        ("go-amqp", u16::MAX, (5000, 5000), false),
        ("pyamqp", u16::MAX, (65_536, 65_536), false),
        ("rhea", u16::MAX, (2048, u32::MAX), false),
        ("proton-j", u16::MAX, (2_147_483_647, 2_147_483_647), false),
        ("Proton", 32_767, (2_147_483_647, 2_147_483_647), false),
        // Its outgoing window was not told: not even with that of fe2o3-amqp it is taken for it.
        ("Microsoft's for .NET", 8191, (u32::MAX, 2048), false),
    ];

    fn open(channel_max: u16) -> PeerOpen {
        PeerOpen {
            container_id: "client".into(),
            hostname: None,
            idle_timeout: None,
            channel_max,
            max_frame_size: 65_536,
            has_properties: false,
            is_jms: false,
        }
    }

    #[test]
    fn each_library_is_known_by_either_frame() {
        for (library, channel_max, windows, is_fe2o3) in KNOWN {
            assert_eq!(opens_as_fe2o3(&open(channel_max)), is_fe2o3, "{library}");
            assert_eq!(begins_as_fe2o3(windows), is_fe2o3, "{library}");
        }
    }
}

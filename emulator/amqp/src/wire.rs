//! Encodes and decodes frames and performatives, without state of connections, sessions or links.
//!
//! Transfer, flow and disposition are frequent: they are coded by hand, with fixed widths where possible. [`cold`] reads the
//! others, [`reply`] writes them.

pub(crate) mod cold;
pub(crate) mod disposition;
pub(crate) mod flow;
pub(crate) mod frame;
pub(crate) mod reply;
pub(crate) mod state;
pub(crate) mod transfer;
pub(crate) mod value;

/// Codes of the described types (AMQP 1.0 §1.3).
pub(crate) mod code {
    pub(crate) const OPEN: u8 = 0x10;
    pub(crate) const BEGIN: u8 = 0x11;
    pub(crate) const ATTACH: u8 = 0x12;
    pub(crate) const FLOW: u8 = 0x13;
    pub(crate) const TRANSFER: u8 = 0x14;
    pub(crate) const DISPOSITION: u8 = 0x15;
    pub(crate) const DETACH: u8 = 0x16;
    pub(crate) const END: u8 = 0x17;
    pub(crate) const CLOSE: u8 = 0x18;
    pub(crate) const ERROR: u8 = 0x1d;
    pub(crate) const RECEIVED: u8 = 0x23;
    pub(crate) const ACCEPTED: u8 = 0x24;
    pub(crate) const REJECTED: u8 = 0x25;
    pub(crate) const RELEASED: u8 = 0x26;
    pub(crate) const MODIFIED: u8 = 0x27;
    pub(crate) const SOURCE: u8 = 0x28;
    pub(crate) const TARGET: u8 = 0x29;
    pub(crate) const DECLARED: u8 = 0x33;
    pub(crate) const TRANSACTIONAL: u8 = 0x34;
    pub(crate) const SASL_MECHANISMS: u8 = 0x40;
    pub(crate) const SASL_INIT: u8 = 0x41;
    pub(crate) const SASL_OUTCOME: u8 = 0x44;
}

//! Frames and performatives as bytes. Knows no connection, session or link.
//!
//! Transfer, flow and disposition are hot: read and written by hand, in forms of fixed width where
//! that is possible. The others are cold and read by [`cold`], written by [`reply`].

pub(crate) mod code;
pub(crate) mod cold;
pub(crate) mod disposition;
pub(crate) mod flow;
pub(crate) mod frame;
pub(crate) mod reply;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod transfer;
pub(crate) mod value;

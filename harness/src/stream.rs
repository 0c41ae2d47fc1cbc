//! A connection of the harness, over TLS or not, as one type.
//!
//! A protocol's code is compiled anew for every type of connection that it goes over, and that of AMQP is long; what a
//! call through a pointer costs is nothing beside a system call.

use std::fmt::Debug;

use tokio::io::{AsyncRead, AsyncWrite};

/// What bytes can be read from and written to.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Debug + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Debug + Unpin + Send> Stream for T {}

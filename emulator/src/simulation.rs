//! An emulator in a deterministic simulation: no socket, a simulated wall clock, and client streams that the simulation
//! supplies. Everything behind the listeners is the same as in production.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::clock::WallClock;
use crate::emulator::Emulator;
use crate::options::{Endpoints, Options, StartError};
use crate::server::simulated;

impl Emulator {
    /// Starts an emulator without sockets, whose wall clock begins at `wall`.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub fn start_simulated(options: Options, wall: SystemTime) -> Result<Self, StartError> {
        let at = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
        let endpoints = Endpoints {
            amqp: at(options.amqp_port),
            amqps: None,
            http: at(options.http_port),
            https: None,
        };
        let options = Options {
            wall_clock: WallClock::starting_at(wall),
            ..options
        };
        Self::serve(options, endpoints, Vec::new())
    }

    /// Serves a client's stream as if the client had connected over TCP from `from`.
    pub fn accept(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        from: SocketAddr,
    ) {
        let router = self.control().router();
        simulated::serve(&self.shared, router, stream, from, self.endpoints().amqp);
    }
}

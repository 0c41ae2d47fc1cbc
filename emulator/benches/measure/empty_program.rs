//! The least that a server can be: binds a socket, prints a line, waits. Compiled by `startup.rs`, with the same
//! compiler and optimised, as what the emulator's start is compared with.

use std::io::Write as _;
use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    listener.accept().map(drop)
}

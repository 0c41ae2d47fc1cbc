//! The smallest possible server: binds a socket, prints a line, waits. `startup.rs` compiles it with the same compiler and
//! optimisation, to compare the emulator's start with it.

use std::io::Write as _;
use std::net::TcpListener;

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    writeln!(std::io::stdout(), "{}", listener.local_addr()?)?;
    listener.accept().map(drop)
}

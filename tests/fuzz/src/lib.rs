//! Fuzz targets: each is a plain function that takes any bytes and panics when the emulator breaks a promise.
//!
//! What they promise, and how long they ran, stands in `emulator/RELIABILITY.md`.

// What counts coverage is linked to every binary that is built, this library's own tests included.
#[cfg(all(test, fuzzing))]
use bolero as _;

mod input;
mod run;
pub mod value;
mod world;

pub mod admin;
pub mod amqp;
pub mod codec;
pub mod config;
pub mod emulator;
pub mod filter;
pub mod management;
pub mod message;
pub mod rest;
pub mod token;

pub use input::{Input, altered, altered_text};
#[cfg(not(fuzzing))]
pub use run::run;

//! The binary, as scripts rely on it.

mod arguments;
mod configuration;
mod idle;
mod ready;
mod seed;
mod stop;

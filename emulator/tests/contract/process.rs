//! The binary, as scripts rely on it.

mod arguments;
mod configuration;
mod ready;
mod seed;
mod stop;

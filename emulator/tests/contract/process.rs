//! The binary, as scripts rely on it.

mod arguments;
mod client_settings;
mod configuration;
mod import;
mod print_env;
mod ready;
mod stop;

//! Parsers of option values.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fmt;
use std::net::Ipv6Addr;

use clap::CommandFactory as _;
use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use servicebus_broker::Tier;
use servicebus_config::ControlToken;

use super::Cli;
use crate::durable::Sync;
use crate::tls::is_certifiable;

/// The port of a listener; `None` is `off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortOption(pub(super) Option<u16>);

/// A token that clap does not validate, because clap prints values that it rejects.
#[derive(Clone)]
pub(super) struct TokenOption(String);

impl TokenOption {
    pub(super) fn read(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }

    pub(super) fn check(self) -> Result<ControlToken, clap::Error> {
        self.0.parse().map_err(|error| {
            let message = format!("invalid value for '--control-token <TOKEN>' or SERVICEBUS_EMULATOR_CONTROL_TOKEN: {error}");
            Cli::command().error(ErrorKind::ValueValidation, message)
        })
    }
}

impl fmt::Debug for TokenOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("GivenToken").finish_non_exhaustive()
    }
}

pub(super) fn read_port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "expected a port (0 to 65535)")
}

pub(super) fn read_port_or_off(text: &str) -> Result<PortOption, String> {
    if text == "off" {
        return Ok(PortOption(None));
    }
    let port = read_port(text).map(|port| PortOption(Some(port)));
    port.map_err(|error| format!("{error} or `off`"))
}

/// Reads an address to listen on or to connect to; IPv6 may be in brackets, as in URLs.
pub(super) fn read_host(text: &str) -> Result<String, Infallible> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let address = bare.filter(|bare| bare.parse::<Ipv6Addr>().is_ok());
    Ok(address.unwrap_or(text).to_owned())
}

/// Reads a name for the server certificate.
pub(super) fn read_certificate_name(text: &str) -> Result<String, String> {
    let Ok(name) = read_host(text.trim());
    if name.contains('*') {
        return Err("wildcards are not supported; give each name".to_owned());
    }
    match is_certifiable(&name) {
        true => Ok(name),
        false => Err("expected a host name or an IP address, without scheme and port".to_owned()),
    }
}

pub(super) fn read_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let pair = pair.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| "expected NAME=VALUE, for example prefix=shop".to_owned())
}

pub(super) fn tiers() -> impl TypedValueParser<Value = Tier> {
    PossibleValuesParser::new(["basic", "standard", "premium"])
        .map(|name| Tier::named(&name).unwrap_or_default())
}

pub(super) fn syncs() -> impl TypedValueParser<Value = Sync> {
    PossibleValuesParser::new(Sync::WORDS.map(|(word, _)| word)).map(|word| Sync::from_name(&word))
}

/// The value of a switch in its variable: many tools write 1 and 0.
pub(super) fn switch() -> impl TypedValueParser<Value = bool> {
    BoolishValueParser::new()
}

/// The option as it appears on the command line.
pub(super) const FOR_TESTS: &str = "--for-tests";

/// Applies the defaults of a test run. It ignores variables, which may configure an emulator that a developer runs at the same time.
pub(super) fn for_tests(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let argument = argument.env(None::<&str>);
        match argument.get_id().as_str() {
            "host" => argument.default_value("127.0.0.1"),
            "amqp_port" | "amqps_port" | "http_port" => argument.default_value("0"),
            _ => argument,
        }
    })
}

/// Names the variable in an error about its value, where clap names the option.
pub(super) fn name_variable(
    mut error: clap::Error,
    command: &clap::Command,
    arguments: &[OsString],
) -> clap::Error {
    let is_of_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    // Without the name of its value.
    let named = named.split(' ').next().unwrap_or_default();
    let is_given = arguments.iter().any(|argument| {
        let argument = argument.to_string_lossy();
        argument.split('=').next() == Some(named)
    });
    let commands = command.get_subcommands().chain([command]);
    let mut options = commands.flat_map(clap::Command::get_arguments);
    let option = options.find(|option| option.get_long() == named.strip_prefix("--"));
    let variable = option.and_then(clap::Arg::get_env);
    if let Some(variable) = variable.filter(|_| is_of_value && !is_given) {
        let variable = variable.to_string_lossy().into_owned();
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// Ignores variables with an empty value: Compose files contain `${NAME:-}`.
pub(super) fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let value = argument.get_env().and_then(std::env::var_os);
        match value.is_some_and(|value| value.is_empty()) {
            true => argument.env("").hide_env(true),
            false => argument,
        }
    })
}

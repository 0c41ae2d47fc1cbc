//! The command line: what can be asked for, and the help that says so.
//!
//! This module only reads; starting and printing is for `main`. Its surface is a contract with scripts.

mod data;
mod health;
mod report;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{PathBuf, absolute};
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use servicebus_broker::Tier;
use servicebus_config::AMQPS_PORT;

use crate::access::{AccessOptions, HostName, Origin};
use crate::durable::Sync;
use crate::options::DataOptions;
use crate::tls::{TlsOptions, UserCertificate};

pub use data::{DataVerb, run_data};
pub use health::{HealthOptions, run_health};
pub use report::run_client_settings;
pub use report::{describe, print_env, run_check, run_import};
use values::{FOR_TESTS, GivenToken, PortOption, for_tests, read_pair, read_port, syncs, tiers};

/// What a process was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// To serve.
    Run(RunOptions),
    /// To judge a configuration file.
    Check(PathBuf),
    /// To make a configuration of a template.
    Import {
        /// The template.
        file: PathBuf,
        /// Values for its parameters.
        parameters: BTreeMap<String, String>,
    },
    /// To do something with a data directory that no emulator serves.
    Data(DataVerb),
    /// To ask a running emulator whether it is healthy.
    Health(HealthOptions),
    /// To print the lines that point `az` at an emulator.
    PrintEnv(RunOptions),
    /// To say what clients are set to that insist on the service's names.
    ClientSettings(RunOptions),
}

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// The configuration file; none for the default namespace.
    pub config: Option<PathBuf>,
    /// The address to listen on, a name or a number.
    pub host: String,
    /// The port of AMQP; 0 for any free one.
    pub amqp_port: u16,
    /// The port of AMQP over TLS, if there is to be one; 0 for any free one.
    pub amqps_port: Option<u16>,
    /// The port of HTTP; 0 for any free one.
    pub http_port: u16,
    /// The port of HTTP over TLS, if there is to be one; 0 for any free one.
    pub https_port: Option<u16>,
    /// Which certificate clients are shown.
    pub tls: TlsOptions,
    /// The tier of namespaces whose configuration names none.
    pub tier: Option<Tier>,
    /// Makes lock tokens, tracking ids and choices the same in every run.
    pub seed: Option<u64>,
    /// Whether messages are kept behind the record.
    pub record_messages: bool,
    /// Who may use the control API.
    pub access: AccessOptions,
    /// Whether to end when standard input closes.
    pub exit_with_stdin: bool,
    /// After how long without a single connection to end, if at all.
    pub exit_when_idle: Option<Duration>,
    /// Whether outcomes to `fe2o3-amqp` 0.14 peers are repeated (decision D31).
    pub outcome_delay: bool,
    /// Most bytes that a connection may make the emulator keep.
    pub connection_memory: u64,
    /// Most bytes that all connections together may.
    pub process_memory: u64,
    /// Where what namespaces hold outlives the process, if anywhere.
    pub data: Option<DataOptions>,
    /// Whether variables count, the one that says what to log, too.
    pub variables: bool,
}

impl Command {
    /// What this process was asked to do. Answers `--help` and `--version` itself, and ends the process
    /// with code 2 on arguments that cannot be read.
    pub fn from_process() -> Self {
        Self::from_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// The same from given arguments, the first being the name of the program.
    pub fn from_arguments<I, T>(arguments: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let arguments = Vec::from_iter(arguments.into_iter().map(Into::into));
        let is_for_tests = arguments
            .iter()
            .any(|argument: &OsString| argument == FOR_TESTS);
        let adjusted = |command| match is_for_tests {
            true => for_tests(command),
            false => without_empty_variables(command),
        };
        // Clap builds the options of every subcommand before it parses: two more times those of `run`, a fifth of a start.
        // Only arguments that these options alone do not explain are parsed with the subcommands, as are errors and help.
        let run = adjusted(RunArguments::augment_args(clap::Command::new(NAME)));
        if let Ok(matches) = run.try_get_matches_from(&arguments)
            && let Ok(arguments) = RunArguments::from_arg_matches(&matches)
        {
            return Self::serving(arguments);
        }
        let command = adjusted(Cli::command()).mut_subcommands(adjusted);
        let matches = command.try_get_matches_from(arguments)?;
        let cli = Cli::from_arg_matches(&matches)?;
        Ok(match cli.verb {
            Some(Verb::Check { file }) => Self::Check(file),
            Some(Verb::Import { file, parameters }) => Self::Import {
                file,
                parameters: parameters.into_iter().collect(),
            },
            Some(Verb::Data(data)) => Self::Data(data),
            Some(Verb::Health(options)) => Self::Health(options),
            Some(Verb::Run(arguments)) => Self::serving(arguments)?,
            Some(Verb::ClientSettings(arguments)) => Self::ClientSettings(arguments.try_into()?),
            None => Self::serving(cli.arguments)?,
        })
    }

    fn serving(arguments: RunArguments) -> Result<Self, clap::Error> {
        let prints = arguments.print_env.is_some();
        let options: RunOptions = arguments.try_into()?;
        let is_known = options.https_port.is_some_and(|port| port != 0);
        match (prints, is_known) {
            (false, _) => Ok(Self::Run(options)),
            (true, true) => Ok(Self::PrintEnv(options)),
            (true, false) => {
                let message =
                    "--print-env az needs the --https-port of the emulator: az takes nothing else";
                Err(Cli::command().error(ErrorKind::MissingRequiredArgument, message))
            }
        }
    }
}

/// Treats variables that are set to an empty text as not set: Compose files write `${NAME:-}`.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    command.mut_args(|argument| {
        let value = argument.get_env().and_then(std::env::var_os);
        match value.is_some_and(|value| value.is_empty()) {
            true => argument.env("").hide_env(true),
            false => argument,
        }
    })
}

const NAME: &str = "servicebus-emulator";
const ABOUT: &str =
    "An emulator of Azure Service Bus for tests: queues and topics for real Service Bus SDKs";

const AFTER_HELP: &str = r#"Connection string when nothing is configured, for a namespace with one queue, queue.1:
  Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;

Every port takes AMQP, HTTP and AMQP over WebSocket, each with or without TLS.

Once everything serves, one line of JSON on standard output has the addresses and the connection strings.
Nothing else is written there; logs go to standard error.

Examples:
  servicebus-emulator --config config.json
      Serve the entities of a configuration file on the usual ports.
  servicebus-emulator --for-tests
      Serve one test run on free ports, and end with the process that started it.
  servicebus-emulator client-settings --https-port 443
      Print what to set for code that insists on *.servicebus.windows.net.
  servicebus-emulator check config.json
      Report every problem of a configuration file, or print what it declares.
  servicebus-emulator import template.json --set prefix=shop > config.json
      Make a configuration file of an ARM template.
  servicebus-emulator data ./data check
      Read what --data ./data has kept, and list what is damaged.

Units: durations in configuration files are ISO 8601 (PT30S, PT5M, P14D), sizes are bytes.

Environment: an option on the command line is stronger than its variable; a variable without text is not set.
  SERVICEBUS_EMULATOR_LOG       what to log, for example debug or servicebus_emulator=trace
  OTEL_EXPORTER_OTLP_ENDPOINT   a collector of OpenTelemetry, which is sent spans of messages; none when not set

Exit codes: 0 stopped when asked, 1 bad configuration or data directory, 2 bad arguments, 3 cannot listen."#;

#[derive(Debug, Parser)]
#[command(
    name = NAME,
    version,
    about = ABOUT,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    arguments: RunArguments,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Serve; the same as no command
    #[command(after_help = AFTER_HELP)]
    Run(RunArguments),
    /// Report every problem of a configuration and exit 1, or print what it declares
    Check {
        /// A file in the official emulator's JSON
        file: PathBuf,
    },
    /// Print a configuration that declares what an ARM template does: exported by the portal, compiled by Bicep, or written
    /// by hand. What a configuration cannot have is listed on standard error
    Import {
        /// A template in JSON
        file: PathBuf,
        /// A value for a parameter of the template, as in --set prefix=shop; JSON for arrays and objects; may be repeated
        #[arg(long = "set", value_name = "NAME=VALUE", value_parser = read_pair)]
        parameters: Vec<(String, String)>,
    },
    /// Check, export or compact a data directory that no emulator serves
    Data(DataVerb),
    /// Ask a running emulator whether it is healthy, and exit 1 where it is not or does not answer
    Health(HealthOptions),
    /// Print what to set for code that insists on *.servicebus.windows.net, with the options that `run` is given: name,
    /// ports, connection string and authority
    ClientSettings(RunArguments),
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Topology in the official emulator's JSON (comments allowed)
    #[arg(long, value_name = "FILE", env = "SERVICEBUS_EMULATOR_CONFIG")]
    config: Option<PathBuf>,

    /// Address to listen on; localhost means 127.0.0.1 and ::1
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "localhost",
        env = "SERVICEBUS_EMULATOR_HOST"
    )]
    host: String,

    /// Port of AMQP, 0 = any free
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 5672,
        env = "SERVICEBUS_EMULATOR_AMQP_PORT"
    )]
    amqp_port: u16,

    /// Port of AMQP over TLS, 0 = any free, or `off` [default: 5671; 0 where --amqp-port is 0]
    #[arg(
        long,
        value_name = "PORT",
        value_parser = read_port,
        env = "SERVICEBUS_EMULATOR_AMQPS_PORT"
    )]
    amqps_port: Option<PortOption>,

    /// Port of HTTP: health, control and AMQP over WebSocket, 0 = any free
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 5300,
        env = "EMULATOR_HTTP_PORT"
    )]
    http_port: u16,

    /// Port of HTTP over TLS, 0 = any free, or `off`; some clients know only 443
    #[arg(
        long,
        value_name = "PORT",
        default_value = "off",
        value_parser = read_port,
        env = "SERVICEBUS_EMULATOR_HTTPS_PORT"
    )]
    https_port: PortOption,

    /// Where the certificate authority is kept that is made for you [default: servicebus-emulator in your cache
    /// directory]
    #[arg(
        long,
        value_name = "DIRECTORY",
        env = "SERVICEBUS_EMULATOR_TLS_DIRECTORY"
    )]
    tls_directory: Option<PathBuf>,

    /// Another name or address that the certificate made for TLS holds for; may be repeated
    #[arg(
        long = "tls-name",
        value_name = "NAME",
        value_delimiter = ',',
        env = "SERVICEBUS_EMULATOR_TLS_NAME"
    )]
    tls_names: Vec<String>,

    /// Certificate to show instead, in PEM, with those between it and its authority
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        env = "SERVICEBUS_EMULATOR_TLS_CERTIFICATE"
    )]
    tls_certificate: Option<PathBuf>,

    /// Private key of --tls-certificate, in PEM
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_certificate",
        env = "SERVICEBUS_EMULATOR_TLS_KEY"
    )]
    tls_key: Option<PathBuf>,

    /// Print the lines for a shell that point a client at an emulator with these options, and end
    #[arg(long, value_name = "CLIENT", value_parser = PossibleValuesParser::new(["az"]))]
    print_env: Option<String>,

    /// Tier of namespaces whose configuration names none [default: standard]
    #[arg(long, value_name = "TIER", value_parser = tiers())]
    tier: Option<Tier>,

    /// Make lock tokens, tracking ids and choices the same in every run
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Keep messages behind the record, up to 64 MiB a namespace, so that timelines can show them
    #[arg(long)]
    record_messages: bool,

    /// Another host name by which browsers may use the control API; may be repeated
    #[arg(
        long = "allow-host",
        value_name = "NAME",
        value_delimiter = ',',
        env = "SERVICEBUS_EMULATOR_ALLOW_HOST"
    )]
    allowed_hosts: Vec<HostName>,

    /// Origin of web pages that may use the control API and open WebSockets, as in http://localhost:3000; may be
    /// repeated
    #[arg(
        long = "allow-origin",
        value_name = "ORIGIN",
        value_delimiter = ',',
        env = "SERVICEBUS_EMULATOR_ALLOW_ORIGIN"
    )]
    allowed_origins: Vec<Origin>,

    /// Serve the control API beyond loopback to clients that send this token; better by its variable, which lists of
    /// processes do not show
    #[arg(
        long,
        value_name = "TOKEN",
        value_parser = GivenToken::read,
        env = "SERVICEBUS_EMULATOR_CONTROL_TOKEN",
        hide_env_values = true
    )]
    control_token: Option<GivenToken>,

    /// Serve the control API to the default gateway as to loopback: in a container, whose published ports are reached
    /// from there
    #[arg(long, env = "SERVICEBUS_EMULATOR_TRUST_GATEWAY")]
    trust_gateway: bool,

    /// End when standard input closes
    #[arg(long)]
    exit_with_stdin: bool,

    /// Serve the tests of the process that starts this one: on free ports of 127.0.0.1, with --record-messages and
    /// --exit-with-stdin, and without what variables say; further options count
    #[arg(long)]
    for_tests: bool,

    /// End when no client has been connected for so many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    exit_when_idle: Option<u64>,

    /// Send each outcome once to clients on fe2o3-amqp 0.14 (the Rust azservicebus), which lose those that come too
    /// fast, instead of repeating them
    #[arg(long, env = "SERVICEBUS_EMULATOR_NO_OUTCOME_DELAY")]
    no_outcome_delay: bool,

    /// Bytes that a connection may make the emulator keep, beside messages in entities; twice the largest message of its
    /// namespace always fits
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 64 << 20,
        value_parser = clap::value_parser!(u64).range(65_536..),
        env = "SERVICEBUS_EMULATOR_CONNECTION_MEMORY"
    )]
    connection_memory: u64,

    /// The same for all connections together
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 1 << 30,
        value_parser = clap::value_parser!(u64).range(65_536..),
        env = "SERVICEBUS_EMULATOR_PROCESS_MEMORY"
    )]
    process_memory: u64,

    /// Keep what namespaces hold in this directory, and go on with it at the next start
    #[arg(long, value_name = "DIR", env = "SERVICEBUS_EMULATOR_DATA")]
    data: Option<PathBuf>,

    /// What the data directory survives: always, loss of power too; process, the end of the process in any way
    #[arg(
        long,
        value_name = "WHEN",
        value_parser = syncs(),
        default_value = "always",
        requires = "data",
        env = "SERVICEBUS_EMULATOR_SYNC"
    )]
    sync: Sync,

    /// Remove namespaces and entities that the data directory has and the configuration does not declare
    #[arg(long, requires = "data")]
    prune: bool,
}

impl TryFrom<RunArguments> for RunOptions {
    type Error = clap::Error;

    fn try_from(arguments: RunArguments) -> Result<Self, clap::Error> {
        let usual = match arguments.amqp_port {
            0 => 0,
            _ => AMQPS_PORT,
        };
        let certificate = arguments.tls_certificate.zip(arguments.tls_key);
        let token = arguments.control_token.map(GivenToken::check);
        Ok(Self {
            config: arguments.config,
            host: arguments.host,
            amqp_port: arguments.amqp_port,
            amqps_port: arguments.amqps_port.unwrap_or(PortOption(Some(usual))).0,
            http_port: arguments.http_port,
            https_port: arguments.https_port.0,
            tls: TlsOptions {
                // Other programs are told where its files are.
                directory: arguments
                    .tls_directory
                    .map(|directory| absolute(&directory).unwrap_or(directory)),
                certificate: certificate.map(|(chain, key)| UserCertificate { chain, key }),
                names: arguments.tls_names,
            },
            tier: arguments.tier,
            seed: arguments.seed,
            record_messages: arguments.record_messages || arguments.for_tests,
            access: AccessOptions {
                allowed_hosts: arguments.allowed_hosts,
                allowed_origins: arguments.allowed_origins,
                control_token: token.transpose()?,
                trust_gateway: arguments.trust_gateway,
            },
            exit_with_stdin: arguments.exit_with_stdin || arguments.for_tests,
            exit_when_idle: arguments.exit_when_idle.map(Duration::from_secs),
            outcome_delay: !arguments.no_outcome_delay,
            connection_memory: arguments.connection_memory,
            process_memory: arguments.process_memory,
            data: arguments.data.map(|directory| DataOptions {
                directory,
                sync: arguments.sync,
                prune: arguments.prune,
            }),
            variables: !arguments.for_tests,
        })
    }
}

#[cfg(test)]
mod tests;

//! The command line: options, subcommands and their help.
//!
//! This module only parses; `main` starts and prints. Scripts rely on the names of options, variables and subcommands.

mod data;
mod health;
mod log;
mod output;
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

pub use data::{DataCommand, run_data};
pub use health::{HealthOptions, run_health};
pub use log::Log;
pub use output::print;
pub use report::{describe, print_env, run_check, run_client_settings, run_import};
use values::{
    FOR_TESTS, PortOption, TokenOption, for_tests, name_variable, read_certificate_name, read_host,
    read_pair, read_port, read_port_or_off, switch, syncs, tiers, without_empty_variables,
};

/// The command that the arguments of a process select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Runs the emulator.
    Run(RunOptions),
    /// Validates a configuration file.
    Check {
        /// The file.
        file: PathBuf,
        /// The tier of namespaces whose configuration does not set one.
        tier: Option<Tier>,
    },
    /// Converts an ARM template to a configuration.
    Import {
        /// The template.
        file: PathBuf,
        /// Values for its parameters.
        parameters: BTreeMap<String, String>,
    },
    /// Checks, exports or compacts a data directory.
    Data(DataCommand),
    /// Queries the health of a running emulator.
    Health(HealthOptions),
    /// Prints the shell commands that connect `az` to an emulator.
    PrintEnv(RunOptions),
    /// Prints the settings for clients that require the service's host names.
    ClientSettings(RunOptions),
}

/// Options of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// The configuration file; none for the default namespace.
    pub config: Option<PathBuf>,
    /// The address to listen on, a name or a number.
    pub host: String,
    /// The port of AMQP; 0 selects a free one.
    pub amqp_port: u16,
    /// The port of AMQP over TLS; 0 selects a free one, `None` opens none.
    pub amqps_port: Option<u16>,
    /// The port of HTTP; 0 selects a free one.
    pub http_port: u16,
    /// The port of HTTP over TLS; 0 selects a free one, `None` opens none.
    pub https_port: Option<u16>,
    /// The server certificate and its authority.
    pub tls: TlsOptions,
    /// The tier of namespaces whose configuration does not set one.
    pub tier: Option<Tier>,
    /// Seed of lock tokens, tracking ids and random choices.
    pub seed: Option<u64>,
    /// Whether the record keeps messages.
    pub record_messages: bool,
    /// Which clients may use the control API.
    pub access: AccessOptions,
    /// Whether the process ends when its standard input closes.
    pub exit_with_stdin: bool,
    /// How long the process runs without a connection before it ends; `None` for no limit.
    pub exit_when_idle: Option<Duration>,
    /// Whether outcomes to `fe2o3-amqp` peers are repeated (decision D31).
    pub outcome_delay: bool,
    /// Maximum number of bytes that the emulator buffers for one connection.
    pub connection_memory: u64,
    /// Maximum number of bytes that the emulator buffers for all connections.
    pub process_memory: u64,
    /// The data directory; `None` keeps everything in memory.
    pub data: Option<DataOptions>,
}

impl Command {
    /// Parses the arguments of this process. Prints `--help` and `--version`, and ends the process with exit code 2 if
    /// the arguments are invalid.
    pub fn from_process() -> Self {
        Self::from_arguments(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// Parses `arguments`, the first of which is the name of the program.
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
        let mut command = adjusted(Cli::command()).mut_subcommands(adjusted);
        let matches = command.try_get_matches_from_mut(&arguments);
        let matches = matches.map_err(|error| name_variable(error, &command, &arguments))?;
        let cli = Cli::from_arg_matches(&matches)?;
        Ok(match cli.action {
            Some(Action::Check { file, tier }) => Self::Check { file, tier },
            Some(Action::Import { file, parameters }) => Self::Import {
                file,
                parameters: parameters.into_iter().collect(),
            },
            Some(Action::Data(data)) => Self::Data(data),
            Some(Action::Health(options)) => Self::Health(options),
            Some(Action::Run(arguments)) => Self::serving(arguments)?,
            Some(Action::ClientSettings(arguments)) if arguments.print_env.is_some() => {
                Self::serving(arguments)?
            }
            Some(Action::ClientSettings(arguments)) => Self::ClientSettings(arguments.try_into()?),
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
                let message = "--print-env az needs the --https-port of the emulator: az connects only over HTTPS";
                Err(Cli::command().error(ErrorKind::MissingRequiredArgument, message))
            }
        }
    }
}

const NAME: &str = "servicebus-emulator";
const ABOUT: &str =
    "An emulator of Azure Service Bus for tests: queues and topics for real Service Bus SDKs";

const AFTER_HELP: &str = r#"Connection string of the default namespace, which has one queue, queue.1:
  Endpoint=sb://localhost;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;

Every port accepts AMQP, HTTP and AMQP over WebSocket, each with or without TLS.

When the emulator is ready, it writes one line of JSON with its addresses and connection strings to standard output.
It writes nothing else there; logs go to standard error.

Examples:
  servicebus-emulator --config config.json
      Serve the entities of a configuration file on the default ports.
  servicebus-emulator --for-tests
      Serve a test run on free ports, and stop when the process that started it ends.
  servicebus-emulator client-settings --https-port 443
      Print the settings for code that requires the host name *.servicebus.windows.net.
  servicebus-emulator check config.json
      List all problems of a configuration file, or print the effective configuration.
  servicebus-emulator import template.json --set prefix=shop > config.json
      Convert an ARM template to a configuration file.
  servicebus-emulator data ./data check
      Read the data directory ./data, and list damaged rows.

Units: durations in configuration files are ISO 8601 (PT30S, PT5M, P14D), sizes are bytes.

Environment: an option on the command line overrides its variable; a variable with an empty value is ignored.
  SERVICEBUS_EMULATOR_LOG       log filter, for example debug or servicebus_emulator=trace [default: warn]
  OTEL_EXPORTER_OTLP_ENDPOINT   OpenTelemetry collector that receives spans of messages; none if not set

Exit codes: 0 stopped on request, 1 invalid configuration or data directory, 2 invalid arguments, 3 cannot listen."#;

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
    action: Option<Action>,
    #[command(flatten)]
    arguments: RunArguments,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Run the emulator (the default command)
    #[command(after_help = AFTER_HELP)]
    Run(RunArguments),
    /// Validate a configuration file: list all problems and exit with 1, or print the effective configuration
    Check {
        /// Configuration file in the JSON format of the official emulator
        file: PathBuf,
        /// Tier of namespaces whose configuration does not set one [default: standard]
        #[arg(long, value_name = "TIER", value_parser = tiers())]
        tier: Option<Tier>,
    },
    /// Convert an ARM template (exported from the portal, compiled from Bicep, or written by hand) to a configuration. Lists
    /// on standard error what a configuration cannot express
    Import {
        /// ARM template in JSON
        file: PathBuf,
        /// Value of a template parameter, for example --set prefix=shop; JSON for arrays and objects; may be repeated
        #[arg(long = "set", value_name = "NAME=VALUE", value_parser = read_pair)]
        parameters: Vec<(String, String)>,
    },
    /// Check, export or compact a data directory that no running emulator uses
    Data(DataCommand),
    /// Query the health of a running emulator; exit with 1 if it is not healthy or does not respond
    Health(HealthOptions),
    /// Print the settings (host name, ports, connection string, certificate authority) for code that requires
    /// *.servicebus.windows.net, given the options of `run`
    ClientSettings(RunArguments),
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Configuration file in the JSON format of the official emulator (comments allowed)
    #[arg(long, value_name = "FILE", env = "SERVICEBUS_EMULATOR_CONFIG")]
    config: Option<PathBuf>,

    /// Address to listen on; localhost means 127.0.0.1 and ::1
    #[arg(long, value_name = "ADDRESS", default_value = "localhost")]
    #[arg(value_parser = read_host, env = "SERVICEBUS_EMULATOR_HOST")]
    host: String,

    /// Port of AMQP; 0 = any free port
    #[arg(long, value_name = "PORT", default_value_t = 5672)]
    #[arg(value_parser = read_port, env = "SERVICEBUS_EMULATOR_AMQP_PORT")]
    amqp_port: u16,

    /// Port of AMQP over TLS; 0 = any free port, `off` = none [default: 5671, or 0 if --amqp-port is 0]
    #[arg(long, value_name = "PORT", value_parser = read_port_or_off)]
    #[arg(env = "SERVICEBUS_EMULATOR_AMQPS_PORT")]
    amqps_port: Option<PortOption>,

    /// Port of HTTP (health, administration, control API) and of AMQP over WebSocket; 0 = any free port
    #[arg(long, value_name = "PORT", default_value_t = 5300)]
    #[arg(value_parser = read_port, env = "EMULATOR_HTTP_PORT")]
    http_port: u16,

    /// Port of HTTP over TLS; 0 = any free port, `off` = none; some clients support only 443
    #[arg(long, value_name = "PORT", default_value = "off")]
    #[arg(value_parser = read_port_or_off, env = "SERVICEBUS_EMULATOR_HTTPS_PORT")]
    https_port: PortOption,

    /// Directory of the generated certificate authority [default: servicebus-emulator in the user's cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    #[arg(env = "SERVICEBUS_EMULATOR_TLS_DIRECTORY")]
    tls_directory: Option<PathBuf>,

    /// Additional host name or IP address of the generated server certificate; may be repeated
    #[arg(long = "tls-name", value_name = "NAME", value_delimiter = ',')]
    #[arg(value_parser = read_certificate_name, env = "SERVICEBUS_EMULATOR_TLS_NAME")]
    tls_names: Vec<String>,

    /// Server certificate to use instead of a generated one, in PEM with its intermediate certificates
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    #[arg(env = "SERVICEBUS_EMULATOR_TLS_CERTIFICATE")]
    tls_certificate: Option<PathBuf>,

    /// Private key of --tls-certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    #[arg(env = "SERVICEBUS_EMULATOR_TLS_KEY")]
    tls_key: Option<PathBuf>,

    /// Print the shell commands that connect a client to an emulator with these options, and exit
    #[arg(long, value_name = "CLIENT", value_parser = PossibleValuesParser::new(["az"]))]
    print_env: Option<String>,

    /// Tier of namespaces whose configuration does not set one [default: standard]
    #[arg(long, value_name = "TIER", value_parser = tiers())]
    tier: Option<Tier>,

    /// Seed of lock tokens, tracking ids and random choices, for repeatable runs
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Keep messages in the record, up to 64 MiB per namespace, so that timelines can show them
    #[arg(long)]
    record_messages: bool,

    /// Additional host name under which clients may use the control API; may be repeated
    #[arg(long = "allow-host", value_name = "NAME", value_delimiter = ',')]
    #[arg(env = "SERVICEBUS_EMULATOR_ALLOW_HOST")]
    allowed_hosts: Vec<HostName>,

    /// Origin of web pages that may use the control API and open WebSockets, for example http://localhost:3000; may be
    /// repeated
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_delimiter = ',')]
    #[arg(env = "SERVICEBUS_EMULATOR_ALLOW_ORIGIN")]
    allowed_origins: Vec<Origin>,

    /// Token with which clients outside loopback may use the control API; prefer the variable, which process lists do not
    /// show
    #[arg(long, value_name = "TOKEN", value_parser = TokenOption::read)]
    #[arg(env = "SERVICEBUS_EMULATOR_CONTROL_TOKEN", hide_env_values = true)]
    control_token: Option<TokenOption>,

    /// Treat the default gateway like loopback for the control API: in a container, requests to published ports come from
    /// the gateway
    #[arg(long, value_parser = switch(), env = "SERVICEBUS_EMULATOR_TRUST_GATEWAY")]
    trust_gateway: bool,

    /// Stop when standard input closes
    #[arg(long)]
    exit_with_stdin: bool,

    /// Defaults for a test run: free ports on 127.0.0.1, --record-messages, --exit-with-stdin; variables
    /// of options ignored; other options still apply
    #[arg(long)]
    for_tests: bool,

    /// Stop after this many seconds without a connected client
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    exit_when_idle: Option<u64>,

    /// Send each outcome only once to clients on fe2o3-amqp (under the Rust crate azservicebus). Before version 0.18.2 such
    /// clients can lose an outcome that arrives early, so by default the emulator repeats it
    #[arg(long, value_parser = switch(), env = "SERVICEBUS_EMULATOR_NO_OUTCOME_DELAY")]
    no_outcome_delay: bool,

    /// Maximum number of bytes that the emulator buffers for one connection, not counting messages in entities; at least
    /// twice the maximum message size of the namespace
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(65_536..))]
    #[arg(env = "SERVICEBUS_EMULATOR_CONNECTION_MEMORY")]
    connection_memory: u64,

    /// Maximum number of bytes that the emulator buffers for all connections together
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(65_536..))]
    #[arg(env = "SERVICEBUS_EMULATOR_PROCESS_MEMORY")]
    process_memory: u64,

    /// Directory that keeps namespaces, entities and messages across restarts
    #[arg(long, value_name = "DIR", env = "SERVICEBUS_EMULATOR_DATA")]
    data: Option<PathBuf>,

    /// When data counts as stored: always = synchronized to disk, survives a power failure; process = written to the
    /// operating system, survives the end of the process
    #[arg(long, value_name = "WHEN", value_parser = syncs())]
    #[arg(default_value = "always", requires = "data")]
    #[arg(env = "SERVICEBUS_EMULATOR_SYNC")]
    sync: Sync,

    /// Remove namespaces and entities of the data directory that the configuration does not declare
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
        let token = arguments.control_token.map(TokenOption::check);
        Ok(Self {
            config: arguments.config,
            host: arguments.host,
            amqp_port: arguments.amqp_port,
            amqps_port: arguments.amqps_port.unwrap_or(PortOption(Some(usual))).0,
            http_port: arguments.http_port,
            https_port: arguments.https_port.0,
            tls: TlsOptions {
                directory: arguments.tls_directory.map(resolved),
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
                directory: resolved(directory),
                sync: arguments.sync,
                prune: arguments.prune,
            }),
        })
    }
}

/// Returns the absolute path of a directory: other programs get the paths of its certificates.
fn resolved(directory: PathBuf) -> PathBuf {
    absolute(&directory).unwrap_or(directory)
}

#[cfg(test)]
mod tests;

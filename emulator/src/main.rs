//! The binary: parses the command line, starts an emulator, prints the ready line, and waits for a signal to stop.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::panic::resume_unwind;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use servicebus_emulator::broker::Tier;
use servicebus_emulator::cli::{
    Command, HealthOptions, Log, RunOptions, print, print_env, run_check, run_client_settings,
    run_data, run_health, run_import,
};
use servicebus_emulator::{Config, Emulator, Options, StartError, TraceOptions};
use tokio::io::AsyncReadExt as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code of `health` for an emulator that is not healthy.
const UNHEALTHY: u8 = 1;
/// Exit codes (interfaces.md); the parser exits with 2 for most bad arguments.
const BAD_CONFIGURATION: u8 = 1;
const CANNOT_PRINT: u8 = 1;
const BAD_ARGUMENTS: u8 = 2;
const CANNOT_LISTEN: u8 = 3;

fn main() -> ExitCode {
    let ended = match Command::from_process() {
        Command::Check { file, tier } => check(&file, tier.unwrap_or_default()),
        Command::Import { file, parameters } => import(&file, &parameters),
        Command::Data(data) => run_data(&data)
            .map(|()| ExitCode::SUCCESS)
            .map_err(|message| (BAD_CONFIGURATION, message)),
        Command::Health(options) => health(&options),
        Command::PrintEnv(options) => print_environment(options),
        Command::ClientSettings(options) => client_settings(options),
        Command::Run(options) => run(options),
    };
    ended.unwrap_or_else(|(code, message)| {
        let _ = writeln!(io::stderr(), "{message}");
        ExitCode::from(code)
    })
}

type RunResult = Result<ExitCode, (u8, String)>;

fn printed(text: &str) -> RunResult {
    print(text)
        .map(|()| ExitCode::SUCCESS)
        .map_err(|message| (CANNOT_PRINT, message))
}

fn check(file: &Path, tier: Tier) -> RunResult {
    let report = run_check(file, tier).map_err(|error| (BAD_CONFIGURATION, error.to_string()))?;
    printed(&report)
}

fn health(options: &HealthOptions) -> RunResult {
    let text = run_health(options).map_err(|message| (UNHEALTHY, message))?;
    // The exit code is the result, whether or not the report can be written.
    let _ = print(&text);
    Ok(ExitCode::SUCCESS)
}

fn print_environment(options: RunOptions) -> RunResult {
    let text = print_env(options).map_err(|error| (exit_code(&error), error.to_string()))?;
    printed(&text)
}

fn import(file: &Path, parameters: &BTreeMap<String, String>) -> RunResult {
    let imported = run_import(file, parameters);
    let (text, notes) = imported.map_err(|message| (BAD_CONFIGURATION, message))?;
    for note in notes {
        let _ = writeln!(io::stderr(), "{note}");
    }
    printed(&text)
}

fn client_settings(options: RunOptions) -> RunResult {
    let config = config(&options)?;
    let text = run_client_settings(options, &config)
        .map_err(|error| (exit_code(&error), error.to_string()))?;
    printed(&text)
}

fn config(options: &RunOptions) -> Result<Config, (u8, String)> {
    let tier = options.tier.unwrap_or_default();
    let config = match &options.config {
        Some(file) => Config::from_file_in_tier(file, tier),
        None => Ok(Config::default_in_tier(tier)),
    };
    config.map_err(|error| (BAD_CONFIGURATION, error.to_string()))
}

fn run(options: RunOptions) -> RunResult {
    let log = Log::to_stderr().map_err(|message| (BAD_ARGUMENTS, message))?;
    let ended = run_logged(options);
    log.finish();
    ended
}

fn run_logged(options: RunOptions) -> RunResult {
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| (CANNOT_LISTEN, error.to_string()))?;
    let ended = runtime.block_on(serve(options));
    // A read of standard input, or a start that a signal has cut short, blocks a thread that cannot be cancelled; dropping
    // the runtime would wait for it.
    runtime.shutdown_background();
    ended
}

async fn serve(options: RunOptions) -> RunResult {
    let (exit_with_stdin, exit_when_idle) = (options.exit_with_stdin, options.exit_when_idle);
    // Before the start: the first process of a container ignores signals that it does not handle, and a parent process may
    // send one as soon as it reads the ready line.
    let mut interrupted = pin!(interruption());
    let started = tokio::select! {
        // A task, because the start blocks its thread while it reads files.
        started = tokio::spawn(start(options)) => started,
        () = &mut interrupted => return Ok(ExitCode::SUCCESS),
    };
    let emulator = started.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))?;
    let mut stdout = io::stdout();
    // The parent process may not read the line; the emulator serves anyway.
    let written = writeln!(stdout, "{}", emulator.ready_line()).and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::warn!(%error, "the ready line cannot be written");
    }
    tokio::select! {
        () = stop_requested(interrupted, exit_with_stdin) => {}
        () = wait_until_unused(&emulator, exit_when_idle) => {}
    }
    emulator.stop().await;
    Ok(ExitCode::SUCCESS)
}

async fn start(options: RunOptions) -> Result<Emulator, (u8, String)> {
    let config = config(&options)?;
    let started = Emulator::start_read(Options {
        host: options.host,
        amqp_port: options.amqp_port,
        amqps_port: options.amqps_port,
        http_port: options.http_port,
        https_port: options.https_port,
        tls: options.tls,
        config,
        tier: options.tier.unwrap_or_default(),
        seed: options.seed,
        record_messages: options.record_messages,
        outcome_delay: options.outcome_delay,
        connection_memory: options.connection_memory,
        process_memory: options.process_memory,
        access: options.access,
        data: options.data,
        traces: traces(),
        ..Options::default()
    });
    let started = started.await;
    started.map_err(|error| (exit_code(&error), description(&error)))
}

/// Returns where the environment asks to send spans. The variables are often meant for other programs, so that an invalid
/// one does not stop the emulator.
fn traces() -> Option<TraceOptions> {
    TraceOptions::from_environment().unwrap_or_else(|reason| {
        tracing::warn!("no spans are exported: {reason}");
        None
    })
}

fn description(error: &StartError) -> String {
    let StartError::Listen {
        option: Some(option),
        source,
        ..
    } = error
    else {
        return error.to_string();
    };
    match source.kind() == io::ErrorKind::AddrNotAvailable {
        true => format!("{error}; select an address of this machine with --host"),
        false => format!("{error}; select another port with {option}"),
    }
}

fn exit_code(error: &StartError) -> u8 {
    match error {
        StartError::Host { .. } | StartError::Listen { .. } => CANNOT_LISTEN,
        StartError::Config(_)
        | StartError::Namespace { .. }
        | StartError::Tls(_)
        | StartError::Data(_) => BAD_CONFIGURATION,
    }
}

async fn stop_requested(interrupted: impl Future<Output = ()>, exit_with_stdin: bool) {
    tokio::select! {
        () = interrupted => {}
        () = stdin_closed(), if exit_with_stdin => {}
    }
}

/// Resolves when no client has been connected for `after`; never without that option.
async fn wait_until_unused(emulator: &Emulator, after: Option<Duration>) {
    let Some(after) = after else {
        return std::future::pending().await;
    };
    emulator.idle_for(after).await;
    tracing::info!(
        seconds = after.as_secs(),
        "no client is connected: stopping"
    );
}

/// Registers signal handlers at once; resolves with the first signal.
#[cfg(unix)]
fn interruption() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
    async {
        let [Ok(mut interrupt), Ok(mut terminate)] = signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
async fn interruption() {
    let _ = tokio::signal::ctrl_c().await;
}

async fn stdin_closed() {
    let mut stdin = tokio::io::stdin();
    let mut ignored = [0; 256];
    while matches!(stdin.read(&mut ignored).await, Ok(read) if read > 0) {}
}

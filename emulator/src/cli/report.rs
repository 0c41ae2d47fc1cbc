//! What `check` prints: a configuration as it takes effect, defaults written out.

use std::fmt::{self, Write as _};
use std::path::Path;

use servicebus_broker::{Expiry, LocksOnDetach, QueueDescription, Tier};

use crate::auth::{Jwt, TokenCheck};
use crate::config::{Config, ConfigError, NamespaceConfig, duration};

/// Width of the names of settings: the longest is that of a queue.
const WIDTH: usize = "DeadLetteringOnMessageExpiration".len();

/// What a valid file declares; every problem of another.
pub fn run_check(path: &Path) -> Result<String, ConfigError> {
    Config::from_file(path).map(|config| describe(&config))
}

/// The configuration with every effective value, one line each.
pub fn describe(config: &Config) -> String {
    let mut text = String::new();
    for (index, namespace) in config.namespaces.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write_namespace(&mut text, namespace);
    }
    text
}

fn write_namespace(text: &mut String, namespace: &NamespaceConfig) -> fmt::Result {
    let settings = &namespace.settings;
    writeln!(text, "namespace {}", namespace.name)?;
    let lines = [
        ("Tier", tier(settings.tier)),
        ("Expiry", expiry(settings.expiry)),
        ("LocksOnDetach", locks_on_detach(settings.locks_on_detach)),
        ("TokenCheck", token_check(namespace.token_check)),
        ("Jwt", jwt(namespace.jwt)),
    ];
    for (name, value) in lines {
        writeln!(text, "  {name:WIDTH$}    {value}")?;
    }
    for key in &namespace.keys {
        writeln!(text, "  key {}: {}", key.name, key.claims)?;
    }
    if namespace.queues.is_empty() {
        writeln!(text, "  no queues")?;
    }
    for (path, queue) in &namespace.queues {
        writeln!(text, "  queue {path}")?;
        write_queue(text, queue)?;
    }
    Ok(())
}

fn write_queue(text: &mut String, queue: &QueueDescription) -> fmt::Result {
    let time_to_live = queue.default_message_time_to_live;
    let lines = [
        ("LockDuration", duration::format(queue.lock_duration)),
        ("MaxDeliveryCount", queue.max_delivery_count.to_string()),
        (
            "DefaultMessageTimeToLive",
            time_to_live.map_or_else(|| "for ever".to_owned(), duration::format),
        ),
        (
            "DeadLetteringOnMessageExpiration",
            queue.dead_lettering_on_message_expiration.to_string(),
        ),
    ];
    for (name, value) in lines {
        writeln!(text, "    {name:WIDTH$}  {value}")?;
    }
    Ok(())
}

fn tier(tier: Tier) -> &'static str {
    match tier {
        Tier::Basic => "basic",
        Tier::Standard => "standard",
        Tier::Premium => "premium",
    }
}

fn expiry(expiry: Expiry) -> &'static str {
    match expiry {
        Expiry::Eager => "eager",
        Expiry::OnReceive => "on-receive",
    }
}

fn locks_on_detach(locks: LocksOnDetach) -> &'static str {
    match locks {
        LocksOnDetach::Keep => "keep",
        LocksOnDetach::Release => "release",
    }
}

fn token_check(check: TokenCheck) -> &'static str {
    match check {
        TokenCheck::Signature => "signature",
        TokenCheck::None => "none",
    }
}

fn jwt(jwt: Jwt) -> &'static str {
    match jwt {
        Jwt::Accept => "accept",
        Jwt::Refuse => "refuse",
    }
}

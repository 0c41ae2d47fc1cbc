//! What `check` prints: a configuration as it takes effect, defaults written out.

use std::fmt::{self, Write as _};
use std::path::Path;

use serde_json::Value;
use servicebus_broker::{Expiry, FailedForwards, LocksOnDetach, QueueDescription, Tier};

use crate::auth::{Jwt, TokenCheck};
use crate::config::{Config, ConfigError, NamespaceConfig, duration, properties_json};

/// Width of the names of settings: the longest is that of a queue.
const WIDTH: usize = "DuplicateDetectionHistoryTimeWindow".len();

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
        ("FailedForwards", failed_forwards(settings.failed_forwards)),
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
        write_queue(text, queue, settings.tier)?;
    }
    Ok(())
}

fn write_queue(text: &mut String, queue: &QueueDescription, tier: Tier) -> fmt::Result {
    let mut properties = properties_json(queue);
    if queue.max_message_size_in_kilobytes.is_none() {
        properties["MaxMessageSizeInKilobytes"] = (tier.max_message_size() / 1024).into();
    }
    for (name, value) in properties.as_object().into_iter().flatten() {
        writeln!(text, "    {name:WIDTH$}  {}", readable(name, value))?;
    }
    Ok(())
}

/// A value as people say it, where the format has a code for it.
fn readable(name: &str, value: &Value) -> String {
    let Some(text) = value.as_str() else {
        return value.to_string();
    };
    let endless = text == duration::format(duration::FOREVER);
    match (name, text) {
        (_, "") => "none",
        ("AutoDeleteOnIdle", _) if endless => "never",
        _ if endless => "for ever",
        _ => text,
    }
    .to_owned()
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

fn failed_forwards(failed: FailedForwards) -> &'static str {
    match failed {
        FailedForwards::TransferDeadLetter => "transfer-dead-letter",
        FailedForwards::DeadLetter => "dead-letter",
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

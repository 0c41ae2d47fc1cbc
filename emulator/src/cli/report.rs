//! The output of `check`, `import`, `client-settings` and `--print-env`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use servicebus_broker::filter::{Filter, Rule};
use servicebus_broker::{EntityDescription, EntityKind, Property, PropertyValue, Tier};
use servicebus_config::{self, AMQPS_PORT, ClientSettings, HTTPS_PORT};

use super::RunOptions;
use crate::auth::Jwt;
use crate::config::words::{self, word};
use crate::config::{
    Arm, Config, ConfigError, NamespaceConfig, SubscriptionConfig, TopicConfig, duration,
    read_text, rule_json,
};
use crate::import::{Note, import};
use crate::options::{DataOptions, StartError};
use crate::tls::{TlsOptions, authority_file};

/// Column width of a namespace's settings: the longest name of a queue property, so that both line up.
const WIDTH: usize = "DuplicateDetectionHistoryTimeWindow".len();

/// Returns the effective configuration of a valid file, or all problems of an invalid one; `tier` is that of namespaces
/// without one.
pub fn run_check(path: &Path, tier: Tier) -> Result<String, ConfigError> {
    Config::from_file_in_tier(path, tier).map(|config| describe(&config))
}

/// Returns the configuration that an ARM template declares with the notes of the import, or all problems of the template.
pub fn run_import(
    path: &Path,
    parameters: &BTreeMap<String, String>,
) -> Result<(String, Vec<Note>), String> {
    let in_file = |error: String| format!("{}: {error}", path.display());
    let text = read_text(path).map_err(|error| error.to_string())?;
    let imported = import(&text, parameters).map_err(|error| {
        let lines: Vec<String> = error.problems.iter().map(ToString::to_string).collect();
        in_file(lines.join("\n  "))
    })?;
    let text = format!("{:#}\n", imported.document);
    // The parser of configurations also checks conflicts between two rules of a template.
    Config::parse(&text).map_err(|error| in_file(error.to_string()))?;
    Ok((text, imported.notes))
}

/// Formats the configuration with every effective value, one per line.
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
    let jwt = jwt(&namespace.jwt);
    let words = words::SETTINGS
        .iter()
        .map(|own| (own.name, (own.word)(settings)));
    let token_check = word(&words::TOKEN_CHECK, &namespace.token_check);
    let lines = words.chain([("TokenCheck", token_check), ("Jwt", jwt.as_str())]);
    for (name, value) in lines {
        writeln!(text, "  {name:WIDTH$}    {value}")?;
    }
    if namespace.arm != Arm::default() {
        writeln!(
            text,
            "  {:WIDTH$}    {}",
            "Arm",
            word(&words::ARM, &namespace.arm)
        )?;
    }
    if let Some(address) = &namespace.address {
        writeln!(text, "  {:WIDTH$}    {address}", "Address")?;
    }
    for key in &namespace.keys {
        writeln!(text, "  key {}: {}", key.name, key.claims)?;
    }
    if namespace.queues.is_empty() {
        writeln!(text, "  no queues")?;
    }
    for (path, queue) in &namespace.queues {
        writeln!(text, "  queue {path}")?;
        write_properties(text, "    ", EntityKind::Queue, queue, settings.tier)?;
    }
    for topic in &namespace.topics {
        write_topic(text, topic, settings.tier)?;
    }
    Ok(())
}

fn write_topic(text: &mut String, topic: &TopicConfig, tier: Tier) -> fmt::Result {
    writeln!(text, "  topic {}", topic.path)?;
    write_properties(text, "    ", EntityKind::Topic, &topic.description, tier)?;
    for subscription in &topic.subscriptions {
        write_subscription(text, subscription, tier)?;
    }
    Ok(())
}

fn write_subscription(
    text: &mut String,
    subscription: &SubscriptionConfig,
    tier: Tier,
) -> fmt::Result {
    writeln!(text, "    subscription {}", subscription.name)?;
    let (kind, description) = (EntityKind::Subscription, &subscription.description);
    write_properties(text, "      ", kind, description, tier)?;
    for rule in &subscription.rules {
        writeln!(text, "      rule {}: {}", rule.name, selection(rule))?;
        if let Some(action) = &rule.action {
            let parameters = &rule_json(rule)["Action"]["Parameters"];
            let action = expression(action.text(), parameters);
            writeln!(text, "        action {action}")?;
        }
    }
    Ok(())
}

/// Describes the messages that a rule selects.
fn selection(rule: &Rule) -> String {
    let properties = rule_json(rule);
    match &rule.filter {
        Filter::True => "every message".to_owned(),
        Filter::False => "no message".to_owned(),
        Filter::Sql(filter) => expression(filter.text(), &properties["SqlFilter"]["Parameters"]),
        Filter::Correlation(_) => correlation(&properties["CorrelationFilter"]),
    }
}

fn correlation(filter: &Value) -> String {
    let (user, system): (Vec<_>, Vec<_>) = filter
        .as_object()
        .into_iter()
        .flatten()
        .partition(|(name, _)| *name == "Properties");
    let user = user.into_iter().filter_map(|(_, user)| user.as_object());
    let system = system
        .into_iter()
        .map(|(name, value)| condition("sys.", name, value));
    let user = user
        .flatten()
        .map(|(name, value)| condition("", name, value));
    system.chain(user).collect::<Vec<_>>().join(" and ")
}

fn condition(scope: &str, name: &str, value: &Value) -> String {
    format!("{scope}{} is {value}", one_line(name))
}

/// Formats an expression on one line, with the values of its parameters.
fn expression(text: &str, parameters: &Value) -> String {
    let text = one_line(text);
    if parameters.is_null() {
        return text;
    }
    format!("{text} with {parameters}")
}

/// Escapes control characters.
fn one_line(text: &str) -> String {
    let escaped = |c: char| match c.is_control() {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// Writes every property of an entity with its effective value, sorted by name.
fn write_properties(
    text: &mut String,
    indent: &str,
    kind: EntityKind,
    description: &EntityDescription,
    tier: Tier,
) -> fmt::Result {
    let mut properties: Vec<&Property> = Property::of(kind).collect();
    properties.sort_unstable_by_key(|property| property.name);
    let width = properties.iter().map(|property| property.name.len()).max();
    let width = width.unwrap_or_default();
    for property in properties {
        // The tier determines the value unless the entity sets it.
        let of_tier = || PropertyValue::Number(tier.max_message_size() / 1024);
        let value = property.get(description).unwrap_or_else(of_tier);
        let value = readable(property, &value);
        writeln!(text, "{indent}{:width$}  {value}", property.name)?;
    }
    Ok(())
}

/// Formats durations for people instead of ISO 8601.
fn readable(property: &Property, value: &PropertyValue) -> String {
    match value {
        PropertyValue::Duration(duration) | PropertyValue::Endless(Some(duration)) => {
            duration::format(*duration)
        }
        PropertyValue::Flag(_)
        | PropertyValue::Number(_)
        | PropertyValue::Endless(None)
        | PropertyValue::Status(_)
        | PropertyValue::Target(_)
        | PropertyValue::Text(_) => property.text(value),
    }
}

fn jwt(jwt: &Jwt) -> String {
    match jwt {
        Jwt::Unset | Jwt::Issued => {
            "accept on loopback if every key has all rights, else refuse".to_owned()
        }
        Jwt::Accept => "accept".to_owned(),
        Jwt::Refuse => "refuse".to_owned(),
        Jwt::Check(keys) => {
            let audience = keys.audience.as_ref();
            let audience = audience.map_or_else(String::new, |audience| format!(" for {audience}"));
            match keys.len() {
                1 => format!("signed by a key{audience}"),
                several => format!("signed by one of {several} keys{audience}"),
            }
        }
    }
}

/// Returns the client settings for an emulator with these options and this configuration. A port that is 0 or `off` is
/// replaced by the port that such clients use.
pub fn run_client_settings(options: RunOptions, config: &Config) -> Result<String, StartError> {
    let common = address(&options.host)?;
    let chosen = |port: Option<u16>| port.filter(|&port| port != 0);
    let amqps = chosen(options.amqps_port);
    // Every port takes TLS.
    let http = chosen(Some(options.http_port)).filter(|&port| port == HTTPS_PORT);
    let https = chosen(options.https_port).or(http);
    let ca_file = ca_file(options.tls, options.data)?;
    let mut text = String::new();
    let needed = [
        amqps.is_none().then_some(" --amqps-port 5671"),
        https.is_none().then_some(" --https-port 443"),
    ];
    let needed = String::from_iter(needed.into_iter().flatten());
    if !needed.is_empty() {
        text = format!("Run the emulator with{needed}.\n\n");
    }
    for namespace in &config.namespaces {
        let Some(key) = namespace.keys.first() else {
            continue;
        };
        let own = namespace.address.as_ref();
        let own = own.and_then(|own| own.to_string().parse().ok());
        let at = |port| SocketAddr::new(own.unwrap_or(common), port);
        let amqps = at(amqps.unwrap_or(AMQPS_PORT));
        let https = at(https.unwrap_or(HTTPS_PORT));
        let settings = ClientSettings::new(&namespace.name, key, amqps, https, ca_file.clone());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{settings}");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

/// Returns the shell commands that connect `az` to an emulator with these options.
pub fn print_env(options: RunOptions) -> Result<String, StartError> {
    let port = options.https_port.unwrap_or(HTTPS_PORT);
    let host = match address(&options.host)? {
        ip if ip.is_loopback() => "localhost".to_owned(),
        _ => options.host,
    };
    // A new directory, because `az` neither registers a cloud twice nor gets a new token from another emulator.
    let mut text = "export AZURE_CONFIG_DIR=\"$(mktemp -d)\"\n".to_owned();
    let is_given = options.tls.certificate.is_some();
    match ca_file(options.tls, options.data)? {
        Some(file) => {
            let file = servicebus_config::quoted(&file.display().to_string());
            text.push_str(&format!("export REQUESTS_CA_BUNDLE={file}\n"));
        }
        // Clients already trust the authority of a certificate that the user supplies.
        None if is_given => {}
        None => text.push_str(
            "# No file here for REQUESTS_CA_BUNDLE: save what the emulator answers at /$emulator/v1/ca.pem\n",
        ),
    }
    let secret = match options.access.control_token {
        Some(_) => "\"$SERVICEBUS_EMULATOR_CONTROL_TOKEN\"",
        None => "any",
    };
    text.push_str(&format!(
        "az cloud register -n sbemu --endpoint-resource-manager https://{host}:{port}\n\
         az cloud set -n sbemu\n\
         az login --service-principal -u any -p {secret} --tenant any\n"
    ));
    Ok(text)
}

fn ca_file(tls: TlsOptions, data: Option<DataOptions>) -> Result<Option<PathBuf>, StartError> {
    let directory = data.map(|data| data.directory);
    authority_file(tls, directory).map_err(StartError::Tls)
}

/// Returns the address at which a client on this machine reaches an emulator that listens on `host`.
fn address(host: &str) -> Result<IpAddr, StartError> {
    let unknown = |source| StartError::Host {
        host: host.to_owned(),
        source,
    };
    // Every client tries 127.0.0.1; not every client tries ::1.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let mut addresses = (host, 0).to_socket_addrs().map_err(unknown)?;
    let first = addresses.next();
    let address = first.ok_or_else(|| unknown(io::Error::other("it has no address")))?;
    Ok(match address.ip().is_unspecified() {
        true => Ipv4Addr::LOCALHOST.into(),
        false => address.ip(),
    })
}

//! The configuration: namespaces with their keys and entities.
//!
//! The format is the official emulator's JSON, comments included, with one additional block per namespace. Parsing is all or
//! nothing: a file results in a [`Config`] that can be served as it is, or in a [`ConfigError`] with every problem at its
//! path, line and column. Nothing is ignored silently (decision D16), and missing settings have the defaults of the service
//! (decision D21).
//!
//! `reader` parses the text to a tree, `document` reads the structure of the tree, and `resolve` validates its content. The
//! broker defines the bounds of all entity settings.

mod address;
mod document;
pub mod duration;
mod export;
pub mod problem;
mod properties;
mod reader;
mod resolve;
mod rule;
pub mod words;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::json;
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityDescription, EntityPath, NamespaceSettings, Tier, Timestamp};

use crate::auth::{Jwt, Key, Policy, TokenCheck};
use resolve::{Files, ResolveContext};

pub(crate) use export::client_json;
use export::declaration;

pub use address::Address;
pub use export::{declared_rules, export};
pub use problem::{ConfigError, ConfigProblem, Position};
pub use properties::{json as property_json, properties_json, read_properties};
pub use reader::repeated_key;
pub use resolve::entities::missing_targets;
pub(crate) use resolve::key_name;
pub use resolve::{NAMESPACE_NAMES, is_namespace_name};
pub use rule::rule_json;
pub use words::setting_names;

/// The default namespace, as in the official emulator.
pub const DEFAULT_NAMESPACE: &str = "sbemulatorns";
/// The default queue, as in the official emulator.
pub const DEFAULT_QUEUE: &str = "queue.1";
/// The maximum size of a configuration in bytes.
pub const MAX_CONFIG_SIZE: u64 = 16 * 1024 * 1024;

/// The maximum number of namespaces of a process.
pub const MAX_NAMESPACES: usize = 1_000;

/// The configuration of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The namespaces, in the order of declaration; at least one.
    pub namespaces: Vec<NamespaceConfig>,
}

/// Whether a namespace is a resource of Azure Resource Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arm {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

/// A valid namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceConfig {
    /// The name, compared without regard to case.
    pub name: String,
    /// The settings that change the behaviour of the entities.
    pub settings: NamespaceSettings,
    /// At least one key; key names are unique within a process.
    pub keys: Vec<Key>,
    /// Whether shared access signatures are checked.
    pub token_check: TokenCheck,
    /// Which JSON web tokens are accepted.
    pub jwt: Jwt,
    /// Whether clients of Azure Resource Manager are served.
    pub arm: Arm,
    /// Its own address or host name, unique among namespaces.
    pub address: Option<Address>,
    /// The queues with their effective settings, in the order of declaration.
    pub queues: Vec<(EntityPath, EntityDescription)>,
    /// The topics with their effective settings, in the order of declaration; none in the basic tier.
    pub topics: Vec<TopicConfig>,
}

/// A valid topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    /// Its name, which is unique among queues and topics.
    pub path: EntityPath,
    /// Its effective settings.
    pub description: EntityDescription,
    /// Its subscriptions, in the order of declaration.
    pub subscriptions: Vec<SubscriptionConfig>,
}

/// A valid subscription.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionConfig {
    /// Its name within the topic, valid for [`EntityPath::subscription`].
    pub name: String,
    /// Its effective settings.
    pub description: EntityDescription,
    /// Its rules, in the order of declaration; `$Default` if the file has none. Their creation time is the Unix epoch,
    /// because a file does not know when it will be served: see [`SubscriptionConfig::rules_at`].
    pub rules: Vec<Rule>,
}

impl SubscriptionConfig {
    /// Returns the rules with `now` as their creation time.
    pub fn rules_at(&self, now: Timestamp) -> impl Iterator<Item = Rule> {
        let rules = self.rules.iter().cloned();
        rules.map(move |rule| Rule {
            created_at: now,
            ..rule
        })
    }
}

impl NamespaceConfig {
    /// Returns the namespace without entities.
    pub fn without_entities(&self) -> Self {
        Self {
            queues: Vec::new(),
            topics: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns a configuration file that declares only this namespace, with every effective value.
    pub fn to_json(&self) -> serde_json::Value {
        export(self)
    }

    /// Returns the declaration of the namespace: its element of `Namespaces` in a file.
    pub fn declaration(&self) -> serde_json::Value {
        declaration(self)
    }

    /// Creates a namespace without entities, with the default key.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            settings: NamespaceSettings::default(),
            keys: vec![Key::well_known()],
            token_check: TokenCheck::default(),
            jwt: Jwt::default(),
            arm: Arm::default(),
            address: None,
            queues: Vec::new(),
            topics: Vec::new(),
        }
    }

    /// Returns the policy for tokens.
    pub fn policy(&self) -> Policy<'_> {
        Policy {
            keys: &self.keys,
            entity_keys: &[],
            token_check: self.token_check,
            jwt: &self.jwt,
        }
    }
}

impl Default for Config {
    /// Returns the default configuration: [`DEFAULT_NAMESPACE`] with [`DEFAULT_QUEUE`].
    fn default() -> Self {
        Self::default_in_tier(Tier::default())
    }
}

impl Config {
    /// Returns the default configuration in the given tier.
    pub fn default_in_tier(tier: Tier) -> Self {
        let path = DEFAULT_QUEUE
            .parse()
            .expect("the default queue has a legal name");
        let mut namespace = NamespaceConfig::new(DEFAULT_NAMESPACE);
        namespace.settings.tier = tier;
        let queue = EntityDescription::of_tier(tier);
        namespace.queues.push((path, queue));
        Self {
            namespaces: vec![namespace],
        }
    }

    /// Validates a configuration that was created in code, as a file that declares the same: names, settings, rules and
    /// targets have one set of rules. Problems have no position, because there is no text.
    pub fn check(&self) -> Result<(), ConfigError> {
        let namespaces = self.namespaces.iter().map(NamespaceConfig::declaration);
        let text = json!({"UserConfig": {"Namespaces": namespaces.collect::<Vec<_>>()}});
        let read = Self::parse(&text.to_string());
        read.map(drop).map_err(|mut error| {
            for problem in &mut error.problems {
                problem.position = None;
            }
            error
        })
    }

    /// Reads a file; namespaces without a tier are standard.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        Self::from_file_in_tier(path, Tier::default())
    }

    /// Reads a file; `tier` is that of namespaces without one.
    pub fn from_file_in_tier(path: &Path, tier: Tier) -> Result<Self, ConfigError> {
        let directory = path.parent().unwrap_or_else(|| Path::new(""));
        let text = read_text(path)?;
        Self::read(&text, tier, directory).map_err(|error| error.in_file(path))
    }

    /// Parses a text; namespaces without a tier are standard. Relative file names in it refer to the current directory.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_in_tier(text, Tier::default())
    }

    /// Parses a text; `tier` is that of namespaces without one.
    pub fn parse_in_tier(text: &str, tier: Tier) -> Result<Self, ConfigError> {
        Self::read(text, tier, Path::new(""))
    }

    /// Relative file names in the text refer to `directory`.
    fn read(text: &str, tier: Tier, directory: &Path) -> Result<Self, ConfigError> {
        let context = ResolveContext {
            files: Files::RelativeTo(directory),
            only: None,
            is_taken: &|_| false,
        };
        let namespaces = read_for(text, tier, &context)?;
        Ok(Self { namespaces })
    }
}

impl NamespaceConfig {
    /// Parses the text of a request, which declares one namespace or nothing, to serve it under `name` beside others; keys
    /// for which `is_taken` returns true belong to those. Opens no files, even if the text names one. `tier` is that of a
    /// namespace without one.
    pub fn parse_as(
        name: &str,
        text: &str,
        tier: Tier,
        is_taken: &dyn Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut empty = Self::new(name);
        if text.trim().is_empty() {
            empty.settings.tier = tier;
            empty.keys = vec![resolve::generate_key(name, is_taken)];
            return Ok(empty);
        }
        let context = ResolveContext {
            files: Files::Refused,
            only: Some(name),
            is_taken,
        };
        let read = read_for(text, tier, &context)?;
        Ok(read.into_iter().next().unwrap_or(empty))
    }
}

fn read_for(
    text: &str,
    tier: Tier,
    context: &ResolveContext<'_>,
) -> Result<Vec<NamespaceConfig>, ConfigError> {
    if text.len() as u64 > MAX_CONFIG_SIZE {
        return Err(too_large());
    }
    let report = reader::Report::new(text);
    let document = reader::parse(&report).and_then(|tree| document::read(&report, &tree, tier));
    let namespaces = resolve::resolve(&report, document.unwrap_or_default(), context);
    report.finish().map(|()| namespaces)
}

/// Reads the text of a configuration file or of a template.
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_CONFIG_SIZE + 1).read_to_end(&mut bytes))
        .map_err(|error| ConfigError::general(format!("cannot be read: {error}")))
        .and_then(|_| decode(bytes))
        .map_err(|error| error.in_file(path))
}

fn decode(bytes: Vec<u8>) -> Result<String, ConfigError> {
    if bytes.len() as u64 > MAX_CONFIG_SIZE {
        return Err(too_large());
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(ConfigError::general(
            "is UTF-16, as some editors save it; it must be UTF-8",
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        ConfigError::general(format!(
            "is not UTF-8: the byte at offset {offset} is not text"
        ))
    })
}

fn too_large() -> ConfigError {
    ConfigError::general(format!(
        "is larger than {} MiB",
        MAX_CONFIG_SIZE / 1024 / 1024
    ))
}

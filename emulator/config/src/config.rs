//! The configuration: namespaces with their keys and entities.
//!
//! The format is the official emulator's JSON, comments included, with one block of ours per namespace.
//! Reading is all or nothing: a file is either a [`Config`] that can be served as it stands, or a
//! [`ConfigError`] with every problem at its path, line and column. Nothing is dropped in silence
//! (decision D16), and what a file leaves out has the defaults of the service (decision D21).
//!
//! The way of a file: `syntax` makes a tree of the text, `document` reads the tree by its shape,
//! `resolve` judges what it means. Bounds of entity settings live in the broker, for all of them.

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
use std::io::{self, Read};
use std::path::Path;

use serde_json::json;
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityDescription, EntityPath, NamespaceSettings, Tier, Timestamp};

use crate::auth::{Jwt, Key, Policy, TokenCheck};
use resolve::{Files, Purpose};

pub(crate) use export::client_json;
use export::declaration;

pub use address::Address;
pub use export::{declared_rules, export};
pub use problem::{ConfigError, ConfigProblem, Position};
pub use properties::{json as property_json, properties_json, read_properties};
pub use resolve::entities::missing_targets;
pub use resolve::{NAMESPACE_NAMES, is_namespace_name};
pub use rule::rule_json;
pub use words::setting_names;

/// Name of the namespace that is served when no configuration is given, as in the official emulator.
pub const DEFAULT_NAMESPACE: &str = "sbemulatorns";
/// The queue that is served when no configuration is given, as in the official emulator.
pub const DEFAULT_QUEUE: &str = "queue.1";
/// Largest configuration that is read, in bytes.
pub const MAX_CONFIG_SIZE: u64 = 16 * 1024 * 1024;

/// Most namespaces of a process.
pub const MAX_NAMESPACES: usize = 1_000;

/// Everything that is served by one process.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The namespaces, in the order of their declaration; at least one.
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

/// One namespace, ready to be served.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceConfig {
    /// The name, compared without regard to case.
    pub name: String,
    /// What changes how the entities behave.
    pub settings: NamespaceSettings,
    /// At least one key, and no name twice in a process.
    pub keys: Vec<Key>,
    /// Whether shared access signatures are checked.
    pub token_check: TokenCheck,
    /// Whether JSON web tokens are accepted.
    pub jwt: Jwt,
    /// Whether clients of Azure Resource Manager are served.
    pub arm: Arm,
    /// Its own address or host name, which no other namespace has.
    pub address: Option<Address>,
    /// The queues with their effective settings, in the order of their declaration.
    pub queues: Vec<(EntityPath, EntityDescription)>,
    /// The topics with their effective settings, in the order of their declaration; none in the basic tier.
    pub topics: Vec<TopicConfig>,
}

/// One topic, ready to be served.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicConfig {
    /// Its name; no queue has it too.
    pub path: EntityPath,
    /// Its effective settings.
    pub description: EntityDescription,
    /// Its subscriptions, in the order of their declaration.
    pub subscriptions: Vec<SubscriptionConfig>,
}

/// One subscription, ready to be served.
#[derive(Debug, Clone, PartialEq)]
pub struct SubscriptionConfig {
    /// Its name within the topic, legal for [`EntityPath::subscription`].
    pub name: String,
    /// Its effective settings.
    pub description: EntityDescription,
    /// Its rules, in the order of their declaration; `$Default` when the file has none. A file does not know when
    /// it will be served, so they were created at the Unix epoch: see [`SubscriptionConfig::rules_at`].
    pub rules: Vec<Rule>,
}

impl SubscriptionConfig {
    /// The rules as they are created now.
    pub fn rules_at(&self, now: Timestamp) -> impl Iterator<Item = Rule> {
        let rules = self.rules.iter().cloned();
        rules.map(move |rule| Rule {
            created_at: now,
            ..rule
        })
    }
}

impl NamespaceConfig {
    /// The same without any entity.
    pub fn without_entities(&self) -> Self {
        Self {
            queues: Vec::new(),
            topics: Vec::new(),
            ..self.clone()
        }
    }

    /// A configuration file that declares this namespace alone, every effective value written out.
    pub fn to_json(&self) -> serde_json::Value {
        export(self)
    }

    /// The same without the file around it: what `Namespaces` of a file has of this one.
    pub fn declaration(&self) -> serde_json::Value {
        declaration(self)
    }

    /// A namespace without entities, with the key that every client of an emulator knows.
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

    /// How tokens are judged.
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
    /// What is served without a configuration: [`DEFAULT_NAMESPACE`] with [`DEFAULT_QUEUE`].
    fn default() -> Self {
        Self::default_in_tier(Tier::default())
    }
}

impl Config {
    /// What is served without a configuration, in the given tier.
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

    /// Whether a file that declares the same would be read. A configuration that was made in code is judged by that: names,
    /// settings, rules and targets have one set of rules. Problems have no position, because no text was written.
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

    /// Reads a file; namespaces that name no tier are standard.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        Self::from_file_in_tier(path, Tier::default())
    }

    /// Reads a file; `tier` is that of the namespaces that name none.
    pub fn from_file_in_tier(path: &Path, tier: Tier) -> Result<Self, ConfigError> {
        let directory = path.parent().unwrap_or_else(|| Path::new(""));
        read_text(path)
            .and_then(|text| Self::read(&text, tier, directory))
            .map_err(|error| error.in_file(path))
    }

    /// Reads a text; namespaces that name no tier are standard. Files that it names are looked for in the current
    /// directory.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_in_tier(text, Tier::default())
    }

    /// Reads a text; `tier` is that of the namespaces that name none.
    pub fn parse_in_tier(text: &str, tier: Tier) -> Result<Self, ConfigError> {
        Self::read(text, tier, Path::new(""))
    }

    /// Files that the text names are looked for in `directory`.
    fn read(text: &str, tier: Tier, directory: &Path) -> Result<Self, ConfigError> {
        let purpose = Purpose {
            files: Files::Beside(directory),
            only: None,
            is_taken: &|_| false,
        };
        let namespaces = read_for(text, tier, &purpose)?;
        Ok(Self { namespaces })
    }
}

impl NamespaceConfig {
    /// Reads the one namespace that the text of a request declares, or nothing, to serve it under `name` beside others;
    /// keys that `is_taken` says of belong to those. No file is opened, even where the text names one. `tier` is what it is in
    /// where it names none.
    pub fn parse_as(
        name: &str,
        text: &str,
        tier: Tier,
        is_taken: &dyn Fn(&str) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut empty = Self::new(name);
        if text.trim().is_empty() {
            empty.settings.tier = tier;
            empty.keys = vec![resolve::made_up_key(name, is_taken)];
            return Ok(empty);
        }
        let purpose = Purpose {
            files: Files::Refused,
            only: Some(name),
            is_taken,
        };
        let read = read_for(text, tier, &purpose)?;
        Ok(read.into_iter().next().unwrap_or(empty))
    }
}

fn read_for(
    text: &str,
    tier: Tier,
    purpose: &Purpose<'_>,
) -> Result<Vec<NamespaceConfig>, ConfigError> {
    if text.len() as u64 > MAX_CONFIG_SIZE {
        return Err(too_large());
    }
    let report = reader::Report::new(text);
    let document = reader::parse(&report).and_then(|tree| document::read(&report, &tree, tier));
    let namespaces = resolve::resolve(&report, document.unwrap_or_default(), purpose);
    report.finish().map(|()| namespaces)
}

fn read_text(path: &Path) -> Result<String, ConfigError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_CONFIG_SIZE + 1).read_to_end(&mut bytes))
        .map_err(|error| cannot_be_read(&error))?;
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

fn cannot_be_read(error: &io::Error) -> ConfigError {
    ConfigError::general(format!("cannot be read: {error}"))
}

fn too_large() -> ConfigError {
    ConfigError::general(format!(
        "is larger than {} MiB",
        MAX_CONFIG_SIZE / 1024 / 1024
    ))
}

//! The structure of a configuration file: its keys and the types of their values.
//!
//! This module only checks structure; [`super::resolve`] validates values. Keys are those of the official schema, and
//! `Emulator` with the additional settings of this emulator.

mod entity;

use std::fmt;

use jsonc_parser::ast::Value;
use servicebus_broker::{NamespaceSettings, Tier};

use super::reader::{Located, Object, Report, json, wrong_type};
use super::{Arm, words};
use crate::auth::{Claim, TokenCheck};

pub(crate) use entity::{AMQP, SELECTOR};
pub(crate) use entity::{CorrelationBlock, ExpressionBlock, FilterType, RuleBlock, RuleProperties};
pub(crate) use entity::{QueueBlock, SubscriptionBlock, TopicBlock};

/// A configuration file.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) namespaces: Option<Located<Vec<NamespaceBlock>>>,
}

/// An element of `UserConfig.Namespaces`.
#[derive(Debug)]
pub(crate) struct NamespaceBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) queues: Vec<QueueBlock>,
    pub(crate) topics: Vec<TopicBlock>,
    pub(crate) emulator: EmulatorBlock,
}

/// The problem of a file with what packages for other languages send to the control API.
const SHORT_FORM: &str = "this is a topology in short, which only the control API takes; a file has \
    {\"UserConfig\":{\"Namespaces\":[{\"Name\":\"sbemulatorns\",\"Queues\":[{\"Name\":\"orders\"}]}]}}";

/// Reads the tree of a file; parts of another structure are reported and left out.
pub(crate) fn read<'a>(
    report: &Report<'a>,
    tree: &Value<'a>,
    default_tier: Tier,
) -> Option<Document> {
    let mut root = Object::of(report, tree, String::new())?;
    let has = |key| tree.as_object().is_some_and(|root| root.get(key).is_some());
    if !has("UserConfig") && (has("queues") || has("topics")) {
        report.problem(&root.location, SHORT_FORM, None);
        return None;
    }
    // Editors use it to find the schema.
    root.string("$schema");
    let user = root.required_object("UserConfig");
    root.finish();
    let mut user = user?;
    if let Some(mut logging) = user.object("Logging") {
        // The official emulator's log target; this emulator logs to standard error.
        logging.string("Type");
        logging.finish();
    }
    let namespaces = user.required_objects("Namespaces");
    user.finish();
    namespaces.map(|Located { location, value }| Document {
        namespaces: Some(Located {
            location,
            value: value
                .into_iter()
                .map(|own| NamespaceBlock::read(own, default_tier))
                .collect(),
        }),
    })
}

impl NamespaceBlock {
    fn read(mut object: Object<'_, '_>, default_tier: Tier) -> Self {
        let name = object.required_string("Name");
        let queues = object.list("Queues", QueueBlock::read);
        let topics = object.list("Topics", TopicBlock::read);
        let emulator = object.object("Emulator").map_or_else(
            || EmulatorBlock::of_tier(default_tier),
            |own| EmulatorBlock::read(own, default_tier),
        );
        object.finish();
        Self {
            name,
            queues,
            topics,
            emulator,
        }
    }
}

/// The `Emulator` block of a namespace.
#[derive(Debug, Default)]
pub(crate) struct EmulatorBlock {
    pub(crate) settings: NamespaceSettings,
    pub(crate) keys: Option<Located<Vec<KeyBlock>>>,
    pub(crate) token_check: Option<TokenCheck>,
    pub(crate) jwt: Option<JwtBlock>,
    pub(crate) arm: Option<Arm>,
    pub(crate) address: Option<Located<String>>,
}

/// `Emulator.Jwt`: a string, or an object with a key set.
#[derive(Debug)]
pub(crate) enum JwtBlock {
    Accept,
    Refuse,
    Check {
        /// `None` if it was reported as missing.
        keys: Option<Located<KeysBlock>>,
        audience: Option<String>,
    },
}

/// `Emulator.Jwt.Keys`.
pub(crate) enum KeysBlock {
    /// The name of a file with the key set.
    File(String),
    /// The key set itself.
    Inline(serde_json::Value),
}

/// An element of `Emulator.Keys`.
pub(crate) struct KeyBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) key: Option<Located<String>>,
    pub(crate) claims: Option<Located<Vec<Claim>>>,
}

impl fmt::Debug for KeysBlock {
    /// Omits the set, because it may contain a private key by mistake.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => formatter.debug_tuple("File").field(name).finish(),
            Self::Inline(_) => formatter.debug_tuple("Inline").finish_non_exhaustive(),
        }
    }
}

impl fmt::Debug for KeyBlock {
    /// Omits the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KeyBlock")
            .field("name", &self.name)
            .field("claims", &self.claims)
            .finish_non_exhaustive()
    }
}

impl EmulatorBlock {
    /// Returns the defaults of a tier.
    pub(crate) fn of_tier(tier: Tier) -> Self {
        let settings = NamespaceSettings {
            tier,
            ..NamespaceSettings::default()
        };
        Self {
            settings,
            ..Self::default()
        }
    }

    pub(crate) fn read(mut object: Object<'_, '_>, default_tier: Tier) -> Self {
        let jwt = read_jwt(&mut object);
        let Self { mut settings, .. } = Self::of_tier(default_tier);
        for setting in &words::SETTINGS {
            (setting.read)(&mut object, &mut settings);
        }
        let block = Self {
            settings,
            keys: object.secret_objects("Keys").map(|keys| Located {
                location: keys.location,
                value: keys.value.into_iter().map(KeyBlock::read).collect(),
            }),
            token_check: object
                .choice("TokenCheck", &words::TOKEN_CHECK)
                .map(|word| word.value),
            jwt,
            arm: object.choice("Arm", &words::ARM).map(|word| word.value),
            address: object.string("Address"),
        };
        object.finish();
        block
    }
}

impl KeyBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let block = Self {
            name: object.required_string("Name"),
            key: object.required_secret("Key"),
            claims: object.choices("Claims", &words::CLAIMS),
        };
        object.finish();
        block
    }
}

fn read_jwt(object: &mut Object<'_, '_>) -> Option<JwtBlock> {
    if let Value::Object(_) = object.any("Jwt")?.value {
        let mut check = object.object("Jwt")?;
        let keys = read_keys(&mut check);
        let audience = check.string("Audience").map(|audience| audience.value);
        check.finish();
        return Some(JwtBlock::Check { keys, audience });
    }
    let words = [("accept", true), ("refuse", false)];
    let word = object.choice("Jwt", &words)?;
    Some(match word.value {
        true => JwtBlock::Accept,
        false => JwtBlock::Refuse,
    })
}

/// Reads the name of a file, or a key set, which no problem quotes.
fn read_keys(check: &mut Object<'_, '_>) -> Option<Located<KeysBlock>> {
    let Located { location, value } = check.required_any("Keys")?;
    Some(match value {
        Value::StringLit(file) => Located {
            location,
            value: KeysBlock::File(file.value.to_string()),
        },
        Value::Object(_) => Located {
            location: location.secret(),
            value: KeysBlock::Inline(json(value)),
        },
        Value::NumberLit(_) | Value::BooleanLit(_) | Value::Array(_) | Value::NullKeyword(_) => {
            let expected = "the name of a file, or a JSON web key set";
            wrong_type(check.report(), &location.secret(), value, expected);
            return None;
        }
    })
}

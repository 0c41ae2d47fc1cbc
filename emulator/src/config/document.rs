//! The shape of a configuration file: which keys stand where and what type each has.
//!
//! Only shape is judged here; whether a value is legal is for [`super::resolve`]. Keys are those of the
//! official schema, and `Emulator` is ours.

mod emulator;
mod entity;

use jsonc_parser::ast::Value;
use servicebus_broker::Tier;

use super::reader::{Located, Object, Report};

pub(crate) use emulator::{EmulatorBlock, JwtBlock, KeyBlock, KeysBlock};
pub(crate) use entity::AMQP;
pub(crate) use entity::{CorrelationBlock, ExpressionBlock, FilterType, RuleBlock, RuleProperties};
pub(crate) use entity::{QueueBlock, SubscriptionBlock, TopicBlock};

/// A file.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) namespaces: Option<Located<Vec<NamespaceBlock>>>,
}

/// One element of `UserConfig.Namespaces`.
#[derive(Debug)]
pub(crate) struct NamespaceBlock {
    pub(crate) name: Option<Located<String>>,
    pub(crate) queues: Vec<QueueBlock>,
    pub(crate) topics: Vec<TopicBlock>,
    pub(crate) emulator: EmulatorBlock,
}

/// Reads the tree of a file; what has not the right shape is reported and left out.
pub(crate) fn read<'a>(
    report: &Report<'a>,
    tree: &Value<'a>,
    default_tier: Tier,
) -> Option<Document> {
    let mut root = Object::of(report, tree, String::new())?;
    // Editors write it to find the schema.
    root.string("$schema");
    let user = root.required_object("UserConfig");
    root.finish();
    let mut user = user?;
    if let Some(mut logging) = user.object("Logging") {
        // Where the official emulator logs to; this one logs to standard error.
        logging.string("Type");
        logging.finish();
    }
    let namespaces = user.required_objects("Namespaces");
    user.finish();
    namespaces.map(|Located { place, value }| Document {
        namespaces: Some(Located {
            place,
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
        let queues = object.objects("Queues").map(|queues| queues.value);
        let topics = object.objects("Topics").map(|topics| topics.value);
        let emulator = object.object("Emulator");
        let emulator = emulator.map(|own| EmulatorBlock::read(own, default_tier));
        object.finish();
        let queues = queues.unwrap_or_default().into_iter();
        let topics = topics.unwrap_or_default().into_iter();
        Self {
            name,
            queues: queues.map(QueueBlock::read).collect(),
            topics: topics.map(TopicBlock::read).collect(),
            emulator: emulator.unwrap_or_else(|| EmulatorBlock::of_tier(default_tier)),
        }
    }
}

//! The shape of a configuration file: which keys stand where and what type each has.
//!
//! Only shape is judged here; whether a value is legal is for [`super::resolve`]. Keys are those of the
//! official schema, and `Emulator` is ours.

mod emulator;
mod entity;
mod properties;
mod rule;
mod value;

use jsonc_parser::ast::Value;

use super::reader::{Located, Object, Report};

pub(super) use emulator::{EmulatorBlock, JwtBlock, KeyBlock, KeysBlock};
pub(super) use entity::{QueueBlock, SubscriptionBlock, TopicBlock};
pub(super) use properties::Properties;
pub(super) use rule::{CorrelationBlock, ExpressionBlock, FilterType, RuleBlock, RuleProperties};
pub(super) use value::AMQP;

/// A file.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) namespaces: Option<Located<Vec<NamespaceBlock>>>,
}

/// One element of `UserConfig.Namespaces`.
#[derive(Debug)]
pub(super) struct NamespaceBlock {
    pub(super) name: Option<Located<String>>,
    pub(super) queues: Vec<QueueBlock>,
    pub(super) topics: Vec<TopicBlock>,
    pub(super) emulator: EmulatorBlock,
}

/// Reads the tree of a file; what has not the right shape is reported and left out.
pub(super) fn read<'a>(report: &Report<'a>, tree: &Value<'a>) -> Option<Document> {
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
            value: value.into_iter().map(NamespaceBlock::read).collect(),
        }),
    })
}

impl NamespaceBlock {
    fn read(mut object: Object<'_, '_>) -> Self {
        let name = object.required_string("Name");
        let queues = object.objects("Queues").map(|queues| queues.value);
        let topics = object.objects("Topics").map(|topics| topics.value);
        let emulator = object.object("Emulator").map(EmulatorBlock::read);
        object.finish();
        let queues = queues.unwrap_or_default().into_iter();
        let topics = topics.unwrap_or_default().into_iter();
        Self {
            name,
            queues: queues.map(QueueBlock::read).collect(),
            topics: topics.map(TopicBlock::read).collect(),
            emulator: emulator.unwrap_or_default(),
        }
    }
}

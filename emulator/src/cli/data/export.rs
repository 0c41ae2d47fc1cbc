//! Prints the contents of a directory one entity at a time, because a directory can be larger than memory.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::Value;
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityKind, EntityPath, SequenceNumber, SubQueue};

use super::open;
use crate::cli::output::check_written;
use crate::config::{NamespaceConfig, SubscriptionConfig, TopicConfig, export};
use crate::durable::{Definition, Disk, LoadedEntity, OfflineStore, Visitor, fill, walk};
use crate::http::at_rest;

struct Exporting<W: Write> {
    out: W,
    namespace: Option<NamespaceConfig>,
    /// Separators before the next namespace and before the next entity of this namespace.
    separators: [&'static str; 2],
    subscriptions: Vec<(EntityPath, SubscriptionConfig)>,
    /// Rules by the path of their subscription: the store keeps them with the topic.
    rules: BTreeMap<EntityPath, Vec<Rule>>,
    failure: Option<String>,
}

/// Prints the whole store, or returns an error if any part cannot be read.
pub(super) fn run(directory: &Path) -> Result<(), String> {
    let OfflineStore { disk, file, damage } = open(directory)?;
    if let Some(damage) = damage {
        return Err(format!(
            "{file:?} is damaged: {damage}; run `data DIRECTORY check` for details"
        ));
    }
    let mut exporting = Exporting {
        out: BufWriter::new(io::stdout().lock()),
        namespace: None,
        separators: ["", ""],
        subscriptions: Vec::new(),
        rules: BTreeMap::new(),
        failure: None,
    };
    exporting.print(r#"{"namespaces":["#);
    let walked = walk(&*disk, &mut exporting);
    exporting.end_namespace();
    exporting.print("]}\n");
    let flushed = exporting.out.flush();
    exporting.check(flushed);
    walked.map_err(|error| error.to_string())?;
    exporting.failure.map_or(Ok(()), Err)
}

impl<W: Write> Exporting<W> {
    fn print(&mut self, text: &str) {
        let written = self.out.write_all(text.as_bytes());
        self.check(written);
    }

    fn check(&mut self, written: io::Result<()>) {
        if let Err(failure) = check_written(written) {
            self.fail(failure);
        }
    }

    fn fail(&mut self, failure: String) {
        self.failure.get_or_insert(failure);
    }

    fn end_namespace(&mut self) {
        let Some(mut namespace) = self.namespace.take() else {
            return;
        };
        for (topic, mut subscription) in std::mem::take(&mut self.subscriptions) {
            let path = topic.subscription(&subscription.name).ok();
            let rules = path.and_then(|path| self.rules.remove(&path));
            subscription.rules = rules.unwrap_or_default();
            let own = namespace.topics.iter_mut().find(|own| own.path == topic);
            if let Some(own) = own {
                own.subscriptions.push(subscription);
            }
        }
        let topology = export(&namespace);
        self.print(&format!(r#"],"topology":{topology}}}"#));
    }

    fn declare(&mut self, definition: Definition) {
        let Some(namespace) = &mut self.namespace else {
            return;
        };
        let Definition {
            kind,
            path,
            description,
            rules,
            ..
        } = definition;
        match (kind, path.topic()) {
            (EntityKind::Queue, _) => namespace.queues.push((path, description)),
            (EntityKind::Topic, _) => {
                namespace.topics.push(TopicConfig {
                    path: path.clone(),
                    description,
                    subscriptions: Vec::new(),
                });
                self.rules.extend(rules);
            }
            (EntityKind::Subscription, Some((topic, name))) => {
                let subscription = SubscriptionConfig {
                    name: name.to_owned(),
                    description,
                    rules: Vec::new(),
                };
                self.subscriptions.push((topic, subscription));
            }
            (EntityKind::Subscription, None) => {}
        }
    }
}

impl<W: Write> Visitor for Exporting<W> {
    fn namespace(&mut self, config: &NamespaceConfig) {
        self.end_namespace();
        let [separator, _] = self.separators;
        let name = Value::from(config.name.as_str());
        self.print(&format!(r#"{separator}{{"name":{name},"entities":["#));
        self.separators = [",", ""];
        self.namespace = Some(config.clone());
    }

    fn entity(&mut self, loaded: LoadedEntity, disk: &dyn Disk) {
        let LoadedEntity { entity, definition } = loaded;
        for kind in SubQueue::ALL {
            let mut held = entity.inspect(kind, SequenceNumber(0), false, 0).peekable();
            if held.peek().is_none() {
                continue;
            }
            let [_, separator] = self.separators;
            let address = Value::from(format!("{}{}", definition.path, kind.suffix()));
            self.print(&format!(r#"{separator}{{"entity":{address},"messages":["#));
            self.separators[1] = ",";
            for (index, mut found) in held.enumerate() {
                let separator = if index == 0 { "" } else { "," };
                if let Err(error) = fill(&mut found.message, |body| disk.body(body)) {
                    self.fail(format!("{address}: {error}"));
                    continue;
                }
                match at_rest(&found) {
                    Ok(message) => {
                        self.print(separator);
                        // Without a copy: a message can have 100 MiB.
                        let written = serde_json::to_writer(&mut self.out, &message);
                        self.check(written.map_err(io::Error::from));
                    }
                    Err(error) => self.fail(format!("{address}: {error}")),
                }
            }
            self.print("]}");
        }
        self.declare(definition);
    }

    fn damaged(&mut self, problem: String) {
        self.fail(problem);
    }
}

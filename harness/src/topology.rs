//! The entities of a namespace when a test begins.
//!
//! A topology is read from a file, built, or exported from a running namespace; all become JSON of the official emulator's
//! format. The emulator's own parser validates that text, so an error reads the same in every mode. Nothing is read or
//! checked before the namespace starts.

mod document;
mod entity;
mod rule;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use servicebus_config::{
    config::{Config, ConfigError, NamespaceConfig},
    import::import,
};

pub use entity::{Queue, Subscription, Topic};
pub use rule::{Correlation, Rule};
pub use servicebus_broker::{
    BatchLimit, EntityStatus, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts,
    LocksOnDetach, Tier,
};

pub(crate) use document::NAMESPACE;

use document::Settings;

use crate::{catalog::topic_and_name, error::Error, message::Message, observer};

/// The entities and settings with which a namespace starts.
///
/// ```
/// use std::time::Duration;
/// use servicebus_harness::prelude::*;
///
/// let built = Topology::new()
///     .queue(Queue::new("orders").max_delivery_count(3).lock_duration(Duration::from_secs(30)))
///     .topic(
///         Topic::new("prices")
///             .subscription(Subscription::new("all"))
///             .subscription(Subscription::new("eu").rule(Rule::sql("cheap", "price < 10 AND region = 'eu'"))),
///     )
///     .expiry(Expiry::OnReceive);
/// let read = Topology::file("fixtures/orders.json");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Topology {
    file: Option<PathBuf>,
    /// Values for the parameters of the file, if that is an Azure Resource Manager template.
    parameters: Option<BTreeMap<String, String>>,
    /// The export of a running namespace.
    exported: Option<String>,
    queues: Vec<Queue>,
    topics: Vec<Topic>,
    settings: Settings,
    /// Sent when the namespace has started.
    pub(crate) messages: Vec<DeclaredMessage>,
}

/// A message that exists when a test begins. It is sent when the namespace has started, so that it works in every mode, and
/// its record begins like that of any message.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredMessage {
    /// The queue or topic to which it is sent; for a dead letter, its queue or subscription.
    pub(crate) entity: String,
    pub(crate) message: Message,
    /// The reason and description of a dead letter.
    pub(crate) dead_letter: Option<(String, String)>,
}

impl Topology {
    /// Creates an empty topology.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a file in the official emulator's JSON format, when the namespace starts.
    ///
    /// A relative path is resolved against the directory of the package under test (`CARGO_MANIFEST_DIR`), then against the
    /// current directory.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            ..Self::default()
        }
    }

    /// Reads an Azure Resource Manager template, as the portal exports it or Bicep compiles it. Its path is resolved as in
    /// [`Self::file`]. Resources that the emulator does not support are left out.
    ///
    /// ```
    /// use servicebus_harness::prelude::*;
    ///
    /// let deployed = Topology::arm("fixtures/arm/bicep.json").parameter("prefix", "shop");
    /// ```
    ///
    /// `servicebus-emulator import` prints the topology of a template, and what is left out.
    pub fn arm(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            parameters: Some(BTreeMap::new()),
            ..Self::default()
        }
    }

    /// Sets a parameter of a template; JSON for arrays and objects. Without a template it has no effect.
    pub fn parameter(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        if let Some(parameters) = &mut self.parameters {
            parameters.insert(name.into(), value.to_string());
        }
        self
    }

    pub(crate) fn exported(text: String) -> Self {
        Self {
            exported: Some(text),
            ..Self::default()
        }
    }

    /// Adds a queue.
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queues.push(queue);
        self
    }

    /// Adds a topic with its subscriptions.
    pub fn topic(mut self, topic: Topic) -> Self {
        self.topics.push(topic);
        self
    }

    /// Declares a message in a queue, or one that is published to a topic; in a subscription, the start fails. A message with a scheduled time is scheduled.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use servicebus_harness::prelude::*;
    /// let topology = Topology::file("fixtures/orders.json")
    ///     .message("orders", "the first")
    ///     .message("orders", Message::from("later").scheduled_in(Duration::from_secs(600)))
    ///     .dead_letter("orders", "not json", "Rejected", "it is not an order")
    ///     .dead_letter("prices/Subscriptions/eu", "-1", "Rejected", "it is not a price");
    /// ```
    pub fn message(mut self, entity: impl Into<String>, message: impl Into<Message>) -> Self {
        self.messages.push(DeclaredMessage {
            entity: entity.into(),
            message: message.into(),
            dead_letter: None,
        });
        self
    }

    /// Declares a message in the dead-letter queue of a queue or subscription.
    ///
    /// For a subscription, the message is published to its topic, so a rule must select it. The copies of other
    /// subscriptions are deleted, unless these forward.
    pub fn dead_letter(
        mut self,
        entity: impl Into<String>,
        message: impl Into<Message>,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        self.messages.push(DeclaredMessage {
            entity: entity.into(),
            message: message.into(),
            dead_letter: Some((reason.into(), description.into())),
        });
        self
    }

    /// Reads and validates the topology.
    pub(crate) fn resolve(&self) -> Result<Resolved, Error> {
        self.check_messages()?;
        let (path, text) = match &self.file {
            None if self.exported.is_some() && self.is_extended() => {
                return Err(Error::topology(
                    "the topology of a running namespace cannot be extended by the builder: change the namespace before it is exported",
                ));
            }
            Some(path) if self.is_extended() => {
                return Err(Error::topology(format!(
                    "the topology file {} cannot be extended by the builder: declare everything in one of the two",
                    path.display()
                )));
            }
            Some(path) => {
                let (path, text) = document::read(path)?;
                match &self.parameters {
                    None => (Some(path), text),
                    Some(parameters) => (None, imported(&path, &text, parameters)?),
                }
            }
            None => {
                let exported = self.exported.clone();
                (None, exported.unwrap_or_else(|| document::text(self)))
            }
        };
        let parsed = |text: &str| {
            let parsed = Config::parse(text);
            parsed.map_err(|error| {
                let error = with_file(error, path.clone());
                Error::topology(format!("the topology is invalid:\n{error}"))
            })
        };
        let config = parsed(&text)?;
        let changed = observer::changed_topology(&text).map_err(|error| {
            Error::topology(format!(
                "cannot get the topology from the comparison: {error}"
            ))
        });
        match changed? {
            None => Ok(Resolved { text, config }),
            Some(text) => {
                let config = parsed(&text)?;
                Ok(Resolved { text, config })
            }
        }
    }

    /// Refuses messages of subscriptions: sent to the topic, they would be in its other subscriptions too.
    fn check_messages(&self) -> Result<(), Error> {
        let live = self.messages.iter();
        let mut live = live.filter(|declared| declared.dead_letter.is_none());
        match live.find_map(|declared| topic_and_name(&declared.entity)) {
            None => Ok(()),
            Some((topic, name)) => Err(Error::topology(format!(
                "a message cannot be declared in the subscription {name:?}; declare it for its topic {topic:?}, whose rules select the subscriptions that receive it"
            ))),
        }
    }

    fn is_extended(&self) -> bool {
        !self.queues.is_empty() || !self.topics.is_empty() || !self.settings.document().is_empty()
    }
}

/// Gives a topology methods for namespace settings: `method(Type) => "Name"`.
macro_rules! settings {
    ($($(#[$about:meta])+ $setting:ident($type:ty) => $name:literal;)+) => {
        impl Topology {
            $(
                $(#[$about])+
                pub fn $setting(mut self, $setting: $type) -> Self {
                    self.settings.set($name, |all| all.$setting = $setting);
                    self
                }
            )+
        }
    };
}

settings! {
    /// Sets when expired messages are removed.
    expiry(Expiry) => "Expiry";
    /// Sets what happens to the locks of a detached link.
    locks_on_detach(LocksOnDetach) => "LocksOnDetach";
    /// Sets where messages go that cannot be forwarded; to the transfer dead-letter queue unless set.
    failed_forwards(FailedForwards) => "FailedForwards";
    /// Sets whether disabled entities accept forwarded messages; they do not unless set.
    forward_to_disabled(ForwardToDisabled) => "ForwardToDisabled";
    /// Sets what limits a batch; its bytes unless set.
    batch_limit(BatchLimit) => "BatchLimit";
    /// Sets what happens to unused links and connections; they stay open unless set.
    idle_timeouts(IdleTimeouts) => "IdleTimeouts";
    /// Sets the tier; standard unless set.
    tier(Tier) => "Tier";
}

/// Converts a template to a configuration.
fn imported(
    path: &Path,
    text: &str,
    parameters: &BTreeMap<String, String>,
) -> Result<String, Error> {
    let imported = import(text, parameters);
    let imported = imported.map_err(|error| {
        let path = path.display();
        Error::topology(format!("the template {path} cannot be imported:\n{error}"))
    })?;
    Ok(format!("{:#}", imported.document))
}

/// Adds the file to an error. Positions in generated text are removed.
fn with_file(mut error: ConfigError, path: Option<PathBuf>) -> ConfigError {
    if path.is_none() {
        for problem in &mut error.problems {
            problem.position = None;
        }
    }
    error.file = path;
    error
}

/// A validated topology, with its text.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) text: String,
    pub(crate) config: Config,
}

/// Writes a configuration in the official emulator's format.
pub(crate) fn text_of(config: &Config) -> String {
    let namespaces = config.namespaces.iter();
    document::of(namespaces.map(NamespaceConfig::declaration).collect())
}

//! What a namespace holds when a test begins.
//!
//! A topology is written in two spellings, a file and a builder, or taken from a namespace that runs; all end as one text:
//! the official emulator's JSON. The emulator's own parser judges that text, so a mistake reads the same whichever
//! spelling and whichever mode it came through. Nothing is read or checked before the namespace starts.

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

use crate::{error::Error, message::Message, observer};

/// The entities and settings a namespace starts with.
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
    /// Values for the parameters of the file, where that is a template of Azure Resource Manager.
    parameters: Option<BTreeMap<String, String>>,
    /// The text of a namespace that was running.
    exported: Option<String>,
    queues: Vec<Queue>,
    topics: Vec<Topic>,
    settings: Settings,
    /// Sent when the namespace has started.
    pub(crate) messages: Vec<Declared>,
}

/// A message that is there when a test begins, and where it is to be. It is sent when the namespace has started, so that every
/// mode has it, and its record begins as that of any message.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// The queue or topic that it is sent to; of a dead letter, the queue or subscription that it is in.
    pub(crate) entity: String,
    pub(crate) message: Message,
    /// The reason and description, where it is to be dead-lettered.
    pub(crate) dead_letter: Option<(String, String)>,
}

impl Topology {
    /// Starts an empty namespace to add queues and topics to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Names a file in the official emulator's JSON format.
    ///
    /// A relative path is tried against the directory of the package under test (`CARGO_MANIFEST_DIR`),
    /// then against the current directory. It is read when the namespace starts.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            ..Self::default()
        }
    }

    /// Names a template of Azure Resource Manager, as the portal exports it or Bicep compiles it. It is found as
    /// [`Self::file`] is; what a namespace of the emulator does not have is left out.
    ///
    /// ```
    /// use servicebus_harness::prelude::*;
    ///
    /// let deployed = Topology::arm("fixtures/arm/bicep.json").parameter("prefix", "shop");
    /// ```
    ///
    /// `servicebus-emulator import` prints what is made of a template, and what is left out.
    pub fn arm(path: impl Into<PathBuf>) -> Self {
        Self {
            file: Some(path.into()),
            parameters: Some(BTreeMap::new()),
            ..Self::default()
        }
    }

    /// Gives a parameter of a template a value; JSON for arrays and objects. Without a template it has no effect.
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

    /// Declares a message in a queue, or one that is published to a topic. One that says when it becomes active is
    /// scheduled.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use servicebus_harness::prelude::*;
    /// let topology = Topology::file("fixtures/orders.json")
    ///     .message("orders", "the first")
    ///     .message("orders", Message::from("later").scheduled_in(Duration::from_secs(600)))
    ///     .dead_letter("orders", "not json", "Rejected", "it is no order")
    ///     .dead_letter("prices/Subscriptions/eu", "-1", "Rejected", "it is no price");
    /// ```
    pub fn message(mut self, entity: impl Into<String>, message: impl Into<Message>) -> Self {
        self.messages.push(Declared {
            entity: entity.into(),
            message: message.into(),
            dead_letter: None,
        });
        self
    }

    /// Declares a message in the dead-letter queue of a queue or subscription.
    ///
    /// That of a subscription is published to its topic, so that a rule must select it. What other subscriptions get of it
    /// is deleted, unless they forward it.
    pub fn dead_letter(
        mut self,
        entity: impl Into<String>,
        message: impl Into<Message>,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        self.messages.push(Declared {
            entity: entity.into(),
            message: message.into(),
            dead_letter: Some((reason.into(), description.into())),
        });
        self
    }

    /// Reads and checks the topology.
    pub(crate) fn resolve(&self) -> Result<Resolved, Error> {
        let (path, text) = match &self.file {
            None if self.exported.is_some() && self.is_extended() => {
                return Err(Error::topology(
                    "the topology of a running namespace cannot be extended by the builder: change the namespace before it is exported",
                ));
            }
            Some(path) if self.is_extended() => {
                return Err(Error::topology(format!(
                    "the topology file {} cannot be extended by the builder: write it all in one of the two",
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
                let error = located(error, path.clone());
                Error::topology(format!("the topology is invalid:\n{error}"))
            })
        };
        let config = parsed(&text)?;
        let changed = observer::changed(&text).map_err(|error| {
            Error::topology(format!(
                "cannot ask the comparison for the topology: {error}"
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

    fn is_extended(&self) -> bool {
        !self.queues.is_empty() || !self.topics.is_empty() || !self.settings.document().is_empty()
    }
}

/// Lets a topology set what holds for the whole namespace: `method(Type) => "Name"`.
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
    /// Sets when expired messages leave.
    expiry(Expiry) => "Expiry";
    /// Sets what happens to locks whose link goes away.
    locks_on_detach(LocksOnDetach) => "LocksOnDetach";
    /// Sets where messages go that cannot be forwarded; the transfer dead-letter queue unless set.
    failed_forwards(FailedForwards) => "FailedForwards";
    /// Sets whether disabled entities take what is forwarded to them; they do not unless set.
    forward_to_disabled(ForwardToDisabled) => "ForwardToDisabled";
    /// Sets what bounds a batch; its bytes unless set.
    batch_limit(BatchLimit) => "BatchLimit";
    /// Sets what becomes of links and connections that are not used; they stay unless set.
    idle_timeouts(IdleTimeouts) => "IdleTimeouts";
    /// Sets what the namespace was bought as; standard unless set.
    tier(Tier) => "Tier";
}

/// Makes a configuration of a template.
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

/// Names the file in every problem; without one the positions are left out, because they point into generated text.
fn located(mut error: ConfigError, path: Option<PathBuf>) -> ConfigError {
    if path.is_none() {
        for problem in &mut error.problems {
            problem.position = None;
        }
    }
    error.file = path;
    error
}

/// A topology that was read and checked, and what it was read from.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) text: String,
    pub(crate) config: Config,
}

/// Writes a configuration as a file that declares the same.
pub(crate) fn text_of(config: &Config) -> String {
    let namespaces = config.namespaces.iter();
    document::of(namespaces.map(NamespaceConfig::declaration).collect())
}

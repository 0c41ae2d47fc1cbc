//! What happened on one link, as its operations.

use fe2o3_amqp::types::primitives::Value;

use super::{
    outcome,
    value::{composite, described, field, text},
};

/// How much is kept of a message of several frames, in bytes.
const MAX_PAYLOAD: usize = 64 * 1024;
/// Longest text of one operation, in bytes.
const MAX_TEXT: usize = 4_000;

/// Fields of an attach (AMQP 1.0 §2.7.3) that say how the link is, by their places.
const ATTACH_FIELDS: [(usize, &str); 8] = [
    (3, "snd-settle-mode"),
    (4, "rcv-settle-mode"),
    (7, "unsettled"),
    (9, "initial-delivery-count"),
    (10, "max-message-size"),
    (11, "offered-capabilities"),
    (12, "desired-capabilities"),
    (13, "properties"),
];
const SOURCE: usize = 5;
const TARGET: usize = 6;
const SOURCE_FIELDS: [&str; 11] = [
    "address",
    "durable",
    "expiry-policy",
    "timeout",
    "dynamic",
    "dynamic-node-properties",
    "distribution-mode",
    "filter",
    "default-outcome",
    "outcomes",
    "capabilities",
];
const TARGET_FIELDS: [&str; 7] = [
    "address",
    "durable",
    "expiry-policy",
    "timeout",
    "dynamic",
    "dynamic-node-properties",
    "capabilities",
];
/// The descriptor of a target that is the coordinator of transactions.
const COORDINATOR: u64 = 0x30;

/// Where clients show their tokens.
const TOKENS: &str = "$cbs";

/// A link, from the client's attach on.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    /// What it is at the client: the end that receives, or the one that sends.
    pub(super) receives: bool,
    /// The client's own attach, until the service answers it.
    requested: Vec<Value>,
    answer: Option<String>,
    operations: Vec<Operation>,
    /// How the service ended it, if it said more than that.
    end: Option<String>,
    /// The message whose frames are coming.
    pub(super) partial: Option<Partial>,
}

/// One thing that was done, and what came of it.
#[derive(Debug)]
struct Operation {
    what: String,
    then: Vec<String>,
}

/// A message of which not all frames are there.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) transfer: Vec<Value>,
    pub(super) bytes: Vec<u8>,
}

impl Link {
    /// A link as the client asks for it.
    pub(super) fn new(requested: Vec<Value>) -> Self {
        Self {
            name: text(field(&requested, 0)).unwrap_or_default().to_owned(),
            receives: *field(&requested, 2) == Value::Bool(true),
            requested,
            answer: None,
            operations: Vec::new(),
            end: None,
            partial: None,
        }
    }

    /// Whether the service has answered.
    pub(super) fn is_answered(&self) -> bool {
        self.answer.is_some()
    }

    /// The service's attach.
    pub(super) fn answered(&mut self, answer: &[Value]) {
        let mut rendered = Vec::new();
        for (index, name) in ATTACH_FIELDS {
            rendered.extend(against(
                name,
                field(&self.requested, index),
                field(answer, index),
            ));
        }
        for (index, name, names) in [
            (SOURCE, "source", &SOURCE_FIELDS[..]),
            (TARGET, "target", &TARGET_FIELDS[..]),
        ] {
            rendered.extend(terminus(
                name,
                names,
                field(&self.requested, index),
                field(answer, index),
            ));
        }
        self.answer = Some(format!("attached: {}", rendered.join(", ")));
    }

    /// Returns the address at the service.
    pub(super) fn address(&self) -> &str {
        let terminus = field(&self.requested, if self.receives { SOURCE } else { TARGET });
        match composite(terminus) {
            Some((COORDINATOR, _)) => "the coordinator",
            Some((_, fields)) => text(field(fields, 0)).unwrap_or("no address"),
            None => "no address",
        }
    }

    /// Returns the address that a receiving client gave itself.
    pub(super) fn own_address(&self) -> Option<&str> {
        let (_, fields) = composite(field(&self.requested, TARGET))?;
        text(field(fields, 0))
    }

    /// Whether requests or answers go over it, instead of messages.
    pub(super) fn is_of_requests(&self) -> bool {
        let address = self.address();
        address == TOKENS || address == "$management" || address.ends_with("/$management")
    }

    /// Writes an operation down; its number.
    pub(super) fn operation(&mut self, what: String) -> usize {
        let then = Vec::new();
        self.operations.push(Operation {
            what: shortened(what),
            then,
        });
        self.operations.len() - 1
    }

    /// Writes down what came of an operation.
    pub(super) fn then(&mut self, operation: usize, what: String) {
        if let Some(operation) = self.operations.get_mut(operation) {
            let length: usize = operation.then.iter().map(String::len).sum();
            if length < MAX_TEXT {
                operation.then.push(shortened(what));
            }
        }
    }

    /// The service's detach.
    pub(super) fn ended(&mut self, error: &Value) {
        if *error != Value::Null {
            self.end = Some(format!("detached with {}", outcome::error(error)));
        }
    }

    /// Adds a frame to the message that is coming; the whole message with the last frame.
    pub(super) fn frame(&mut self, transfer: Vec<Value>, payload: &[u8]) -> Option<Partial> {
        let is_last = *field(&transfer, 5) != Value::Bool(true);
        let is_aborted = *field(&transfer, 9) == Value::Bool(true);
        let mut partial = self.partial.take().unwrap_or_else(|| Partial {
            transfer,
            bytes: Vec::new(),
        });
        if is_aborted {
            return None;
        }
        let room = MAX_PAYLOAD.saturating_sub(partial.bytes.len());
        partial
            .bytes
            .extend_from_slice(&payload[..payload.len().min(room)]);
        match is_last {
            true => Some(partial),
            false => {
                self.partial = Some(partial);
                None
            }
        }
    }

    /// Returns what it is called.
    pub(super) fn title(&self) -> String {
        let role = if self.receives {
            "receiver of"
        } else {
            "sender to"
        };
        format!("{role} {}", self.address())
    }

    /// Renders everything that happened, in order; nothing before the service's attach, for which clients wait as long as
    /// they like.
    pub(super) fn render(&self) -> Vec<String> {
        let mut rendered = Vec::from_iter(self.answer.clone());
        for operation in &self.operations {
            let is_answered = !operation.then.is_empty();
            let parts = std::iter::once(&operation.what).chain(&operation.then);
            let operation = Vec::from_iter(parts.map(String::as_str)).join("; ");
            // Clients show tokens anew when they think that it is time, and end when they like.
            if self.address() != TOKENS || (is_answered && !rendered.contains(&operation)) {
                rendered.push(operation);
            }
        }
        rendered.extend(self.end.clone());
        rendered
    }
}

/// What the service says where the client asked for something: nothing where neither says anything.
fn against(name: &str, requested: &Value, answer: &Value) -> Option<String> {
    match (requested, answer) {
        (Value::Null, Value::Null) => None,
        (requested, answer) if requested == answer => Some(format!("{name} as asked")),
        (_, answer) => Some(format!("{name} {}", described(answer))),
    }
}

/// The same field by field, because addresses in it may be made for one run alone.
fn terminus(name: &str, names: &[&str], requested: &Value, answer: &Value) -> Option<String> {
    match (composite(requested), composite(answer)) {
        (Some((kind, requested)), Some((other, answer))) if kind == other => {
            let fields = names.iter().enumerate();
            let rendered = fields.filter_map(|(index, name)| {
                against(name, field(requested, index), field(answer, index))
            });
            Some(format!("{name} ({})", Vec::from_iter(rendered).join(", ")))
        }
        _ => against(name, requested, answer),
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    text
}

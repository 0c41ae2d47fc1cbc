//! Scripted faults: which operations they are applied to, and what becomes of these.

mod effect;
mod operation;
#[cfg(feature = "schema")]
mod schema;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use effect::{Effect, EffectKind, ErrorText, Wait, When};
pub use operation::Operation;

/// What goes wrong, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Fault {
    /// What a client does that the fault is applied to.
    pub operation: Operation,
    /// What the operation must have beside its kind.
    #[serde(flatten)]
    pub filter: Filter,
    /// Which of these operations it is applied to, and with what effect.
    #[serde(flatten)]
    pub pick: Pick,
}

/// What an operation must have beside its kind. What is not set does not matter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Filter {
    /// The address of an entity that it concerns.
    pub entity: Option<String>,
    /// The operation of a management request, the method of an HTTP request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The container id of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The name of the key that the client uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub party: Option<String>,
    /// The id of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The sequence number of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_number: Option<i64>,
    /// Which delivery of its message it is, or is about, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<u32>,
    /// The session of its message, or that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// An application property of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<Property>,
}

/// An application property and its value: a string, a number or a boolean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Property {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Which of the operations that a fault is meant for it is applied to, and what becomes of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Pick {
    /// Each by chance.
    Random {
        /// How chance decides.
        random: Random,
        /// One of them becomes of an operation that the fault is applied to.
        effects: Vec<Effect>,
    },
    /// By their number.
    Counted {
        /// The first, counted from 1 since the fault was set.
        nth: u64,
        /// From there on every so many.
        every: u64,
        /// How often; without end where it is null.
        times: Option<u64>,
        /// What becomes of them.
        effect: Effect,
    },
}

/// Chance that can be repeated: the seed and the number of the operation on its entity decide.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// Above 0 and at most 1.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))
    )]
    pub probability: f64,
}

/// A fault that was set, and how often it was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ScriptedFault {
    /// Its number within the namespace.
    pub id: u64,
    /// What goes wrong, and when.
    #[serde(flatten)]
    pub fault: Fault,
    /// How many operations it was meant for, those that it was applied to included.
    pub matched: u64,
    /// How many operations of this kind concerned other entities.
    pub elsewhere: u64,
    /// How many operations of this kind on its entity were not otherwise as it asks.
    pub different: u64,
    /// How often it was applied.
    pub hits: u64,
    /// How a test wrote it, where that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// Where it wrote that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<String>,
}

/// The faults of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Faults {
    /// In the order in which they were set.
    pub faults: Vec<ScriptedFault>,
}

/// What a fault did to one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct AppliedEffect {
    /// What a client did that the fault was applied to.
    pub operation: Operation,
    /// What became of it.
    pub effect: Effect,
}

/// A fault as a client may ask for it: what is left out has a default, and values are judged by the emulator, whose
/// refusal tells what is allowed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FaultRequest {
    /// What a client does that the fault is applied to. `settle` is any of the four that follow it.
    #[cfg_attr(feature = "schema", schemars(with = "Operation"))]
    pub operation: String,
    /// The address of an entity that it must concern; any unless set. Not with `connect`.
    pub entity: Option<String>,
    /// With `management` the operation of the request, with `http` its method.
    pub name: Option<String>,
    /// The container id of the client, or the identifier of its link. Not with `http`.
    pub client: Option<String>,
    /// The name of the key that the client uses (`SharedAccessKeyName`).
    pub party: Option<String>,
    /// The id of the message that is sent, delivered or settled.
    pub message_id: Option<String>,
    /// The sequence number of the message that is delivered, settled or asked for.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub sequence_number: Option<Value>,
    /// Which delivery of the message, counted from 1.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>", range(min = 1)))]
    pub delivery: Option<Value>,
    /// The session of the message that is sent, delivered or settled.
    pub session_id: Option<String>,
    /// An application property that the message must have: a string, a number or a boolean.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Property>"))]
    pub property: Option<Value>,
    /// Which of these operations it takes effect on first, counted from when it was set; `every` unless set, else the first.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub nth: Option<Value>,
    /// From there on it takes effect on every so many; each one unless set.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub every: Option<Value>,
    /// How often it takes effect; once unless set, without end where `every` is set.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub times: Option<Value>,
    /// In place of `nth`, `every` and `times`: chance decides.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Random>"))]
    pub random: Option<Value>,
    /// What becomes of it.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Effect>"))]
    pub effect: Option<Value>,
    /// With `random`, in place of `effect`: one of them, by chance.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Effect>>"))]
    pub effects: Option<Vec<Value>>,
    /// How the test writes it, such as `on("complete").lose_lock()`: a fault that says so has to fire, and is told by
    /// `findProblem` as long as it has not. At most 4,096 bytes.
    pub written: Option<String>,
    /// Where that is written: a file and a line.
    pub written_at: Option<String>,
}

impl Pick {
    /// The `nth`, and from there on `every` so many, so many `times`. The first unless set, and once; without end where
    /// only `every` is set.
    pub fn counted(
        nth: Option<u64>,
        every: Option<u64>,
        times: Option<u64>,
        effect: Effect,
    ) -> Self {
        let once = every.is_none().then_some(1);
        Self::Counted {
            nth: nth.or(every).unwrap_or(1),
            every: every.unwrap_or(1),
            times: times.or(once),
            effect,
        }
    }

    /// What may become of an operation that the fault is applied to.
    pub fn effects(&self) -> &[Effect] {
        match self {
            Self::Random { effects, .. } => effects,
            Self::Counted { effect, .. } => std::slice::from_ref(effect),
        }
    }
}

impl Filter {
    /// Whether it asks for more of a message than where it is.
    pub fn is_about_messages(&self) -> bool {
        self.message_id.is_some()
            || self.session_id.is_some()
            || self.property.is_some()
            || self.sequence_number.is_some()
            || self.delivery.is_some()
    }
}

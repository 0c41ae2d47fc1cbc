//! Scripted faults: the operations to which they apply, and their effects.

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

/// A fault: the operations to which it applies, and its effect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// The kind of operation.
    pub operation: Operation,
    /// Conditions on the operation.
    #[serde(flatten)]
    pub filter: Filter,
    /// Which of the selected operations get which effect.
    #[serde(flatten)]
    pub pick: Pick,
}

/// Conditions on an operation. Those that are not set always hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Filter {
    /// The address of its entity.
    pub entity: Option<String>,
    /// The operation of a management request, or the method of an HTTP request.
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
    /// The delivery of its message, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<u32>,
    /// Its session, or that of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// An application property of its message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub property: Option<Property>,
}

/// An application property and its value: a string, a number or a boolean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Property {
    /// The name.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Which of the selected operations get an effect, and which one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Pick {
    /// Each with a probability.
    Random {
        /// The seed and the probability.
        random: Random,
        /// One of these is the effect.
        effects: Vec<Effect>,
    },
    /// By their number.
    Counted {
        /// The first operation, counted from 1 since the fault was set.
        nth: u64,
        /// The interval from there on.
        every: u64,
        /// The maximum number of effects; unlimited if null.
        times: Option<u64>,
        /// The effect.
        effect: Effect,
    },
}

/// Repeatable randomness: the seed and the number of the operation on its entity decide.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// The probability, above 0 and at most 1.
    #[cfg_attr(
        feature = "schema",
        schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))
    )]
    pub probability: f64,
}

/// A scripted fault, and how often operations matched it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ScriptedFault {
    /// Its number within the namespace.
    pub id: u64,
    /// The fault.
    #[serde(flatten)]
    pub fault: Fault,
    /// The number of operations that matched, those with an effect included.
    pub matched: u64,
    /// The number of operations of this kind on other entities.
    pub elsewhere: u64,
    /// The number of operations of this kind on its entity that did not meet the other conditions.
    pub different: u64,
    /// The number of operations with an effect.
    pub hits: u64,
    /// The source code of the fault, if the test sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// The place of that source code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<String>,
}

/// The faults of a namespace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Faults {
    /// The faults, in the order in which they were set.
    pub faults: Vec<ScriptedFault>,
}

/// The effect of a fault on one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppliedEffect {
    /// The kind of operation.
    pub operation: Operation,
    /// The effect.
    pub effect: Effect,
}

/// A request to set a fault. Members that are left out have defaults. The emulator validates the values, and its error
/// response lists the allowed ones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultRequest {
    /// The kind of operation. `settle` means any of the four that follow it.
    #[cfg_attr(feature = "schema", schemars(with = "Operation"))]
    pub operation: String,
    /// The address of its entity; any unless set. Not with `connect`.
    pub entity: Option<String>,
    /// With `management` the operation of the request, with `http` its method.
    pub name: Option<String>,
    /// The container id of the client, or the identifier of its link. Not with `http`.
    pub client: Option<String>,
    /// The name of the key that the client uses (`SharedAccessKeyName`).
    pub party: Option<String>,
    /// The id of the sent, delivered or settled message.
    pub message_id: Option<String>,
    /// The sequence number of the delivered, settled or requested message.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub sequence_number: Option<Value>,
    /// The delivery of the message, counted from 1.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u32>", range(min = 1)))]
    pub delivery: Option<Value>,
    /// The session of the sent, delivered or settled message.
    pub session_id: Option<String>,
    /// An application property of the message: a string, a number or a boolean.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Property>"))]
    pub property: Option<Value>,
    /// The first selected operation that gets an effect, counted from 1 since the fault was set; unless set the value of `every`,
    /// else 1.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub nth: Option<Value>,
    /// From there on every such operation gets an effect; each one unless set.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub every: Option<Value>,
    /// The number of effects; 1 unless set, unlimited if `every` is set.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>", range(min = 1)))]
    pub times: Option<Value>,
    /// Instead of `nth`, `every` and `times`: a probability decides.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Random>"))]
    pub random: Option<Value>,
    /// The effect.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Effect>"))]
    pub effect: Option<Value>,
    /// With `random`, instead of `effect`: one of them, at random.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<Effect>>"))]
    pub effects: Option<Vec<Value>>,
    /// The source code of the fault in the test, such as `on("complete").lose_lock()`. A fault with it must fire; until then
    /// `findProblem` returns it. At most 4,096 bytes.
    pub written: Option<String>,
    /// The place of that source code: file and line. Without `written`, the fault is reported in the form of this API.
    pub written_at: Option<String>,
}

impl Pick {
    /// Starts at the `nth`, then fires at every `every`th, `times` times. Unless set, at the first and once; unlimited if
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

    /// Returns the possible effects.
    pub fn effects(&self) -> &[Effect] {
        match self {
            Self::Random { effects, .. } => effects,
            Self::Counted { effect, .. } => std::slice::from_ref(effect),
        }
    }
}

impl Filter {
    /// Returns whether it has conditions on messages beyond their entity.
    pub fn is_about_messages(&self) -> bool {
        self.message_id.is_some()
            || self.session_id.is_some()
            || self.property.is_some()
            || self.sequence_number.is_some()
            || self.delivery.is_some()
    }
}

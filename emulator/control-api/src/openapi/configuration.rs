//! The official emulator's configuration, in which namespaces are declared and entities have their properties. It is read
//! by a reader of its own, which tells positions, and not by types.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// What a property's value may be.
enum Form {
    Flag,
    Text,
    Duration,
    Number(u32, u32),
    Status,
}

/// A property: its name, the initials of the kinds that have it, its form and what it is.
type Property = (&'static str, &'static str, Form, &'static str);

/// All properties of queues (Q), topics (T) and subscriptions (S).
#[rustfmt::skip]
const PROPERTIES: [Property; 15] = [
    ("AutoDeleteOnIdle", "QTS", Form::Duration,
        "How long it may be unused before it is deleted; at least PT5M, and not where it forwards. ISO 8601."),
    ("DeadLetteringOnFilterEvaluationExceptions", "S", Form::Flag,
        "Whether a message that a filter fails on is dead-lettered."),
    ("DeadLetteringOnMessageExpiration", "QS", Form::Flag, "Whether expired messages are dead-lettered."),
    ("DefaultMessageTimeToLive", "QTS", Form::Duration,
        "The time to live of messages that bring none, and the longest of all; at least PT1S. ISO 8601."),
    ("DuplicateDetectionHistoryTimeWindow", "QT", Form::Duration,
        "How long message ids are remembered: PT5S to P7D. ISO 8601."),
    ("EnablePartitioning", "QT", Form::Flag, "Whether sequence numbers carry a partition; fixed at creation."),
    ("ForwardDeadLetteredMessagesTo", "QS", Form::Text,
        "Where dead letters are forwarded to: a queue or topic, or nothing."),
    ("ForwardTo", "QS", Form::Text, "Where messages are forwarded to: a queue or topic, or nothing."),
    ("LockDuration", "QS", Form::Duration, "How long a receiver locks a message: PT5S to PT5M. ISO 8601."),
    ("MaxDeliveryCount", "QS", Form::Number(1, 2_147_483_647),
        "After how many failed deliveries a message is dead-lettered."),
    ("MaxMessageSizeInKilobytes", "QT", Form::Number(1024, 102_400),
        "The largest message; premium only, else that of the tier."),
    ("MaxSizeInMegabytes", "QT", Form::Number(1, 81_920), "How much it may hold."),
    ("RequiresDuplicateDetection", "QT", Form::Flag,
        "Whether a message with a known id is dropped; fixed at creation."),
    ("RequiresSession", "QS", Form::Flag, "Whether messages are received by session; fixed at creation."),
    ("Status", "QTS", Form::Status, "What can be done with it."),
];

impl Form {
    fn schema(&self) -> Value {
        match self {
            Self::Flag => json!({ "type": "boolean" }),
            Self::Text => json!({ "type": "string" }),
            Self::Duration => json!({ "type": "string", "pattern": "^P[0-9YMWDTHS.]+$" }),
            Self::Number(minimum, maximum) => {
                json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
            }
            Self::Status => json!({
                "type": "string",
                "enum": ["Active", "Disabled", "SendDisabled", "ReceiveDisabled"],
            }),
        }
    }
}

/// The properties of one kind.
fn properties(kind: char) -> impl Iterator<Item = &'static Property> {
    let all = PROPERTIES.iter();
    all.filter(move |(_, kinds, ..)| kinds.contains(kind))
}

pub(crate) fn queue_settings(_: &mut SchemaGenerator) -> Schema {
    settings("Queue", 'Q')
}

pub(crate) fn topic_settings(_: &mut SchemaGenerator) -> Schema {
    settings("Topic", 'T')
}

pub(crate) fn subscription_settings(_: &mut SchemaGenerator) -> Schema {
    settings("Subscription", 'S')
}

/// The rules of a subscription.
pub(crate) fn rules(_: &mut SchemaGenerator) -> Schema {
    let mut schema = Schema::default();
    schema.insert("type".into(), json!("array"));
    schema.insert("items".into(), reference("Rule"));
    schema
}

/// What an answer has: all properties but one, which the tier may decide.
fn settings(title: &str, kind: char) -> Schema {
    let names = properties(kind).map(|(name, ..)| *name);
    let required = Vec::from_iter(names.filter(|name| *name != "MaxMessageSizeInKilobytes"));
    let reference = json!({ "$ref": format!("#/components/schemas/{title}Properties") });
    let mut schema = Schema::default();
    schema.insert("allOf".into(), json!([reference]));
    schema.insert("required".into(), json!(required));
    schema
}

/// The schemas that no type has.
pub(crate) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for (title, kind) in [("Queue", 'Q'), ("Topic", 'T'), ("Subscription", 'S')] {
        let members = properties(kind).map(|(name, _, form, description)| {
            let mut schema = form.schema();
            schema["description"] = (*description).into();
            ((*name).to_owned(), schema)
        });
        let description = format!("The settings of a {}.", title.to_lowercase());
        let object = object(Value::Object(members.collect()), &[], &description);
        schemas.insert(format!("{title}Properties"), object);
    }
    let expression =
        json!({ "SqlExpression": { "type": "string" }, "Parameters": { "type": "object" } });
    let expression = object(
        expression,
        &["SqlExpression"],
        "A filter or an action in SQL.",
    );
    schemas.insert("Expression".into(), expression);
    schemas.insert("Rule".into(), rule());
    schemas.insert("DeclaredNamespace".into(), namespace());
    schemas.insert("Topology".into(), topology());
    schemas
}

fn object(properties: Value, required: &[&str], description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn rule() -> Value {
    let properties = json!({
        "FilterType": { "type": "string", "enum": ["Correlation", "Sql", "True", "False"] },
        "CorrelationFilter": { "type": "object" },
        "SqlFilter": reference("Expression"),
        "Action": reference("Expression"),
    });
    object(properties, &["FilterType"], "The `Properties` of a rule.")
}

fn topology() -> Value {
    let namespaces = json!({ "type": "array", "items": reference("DeclaredNamespace") });
    let logging = object(
        json!({ "Type": { "type": "string" } }),
        &[],
        "Accepted and not used.",
    );
    let config = json!({ "Namespaces": namespaces, "Logging": logging });
    let config = object(config, &["Namespaces"], "What is configured.");
    let properties = json!({ "$schema": { "type": "string" }, "UserConfig": config });
    let description =
        "The official emulator's configuration. Comments are allowed where it is read.";
    object(properties, &["UserConfig"], description)
}

fn namespace() -> Value {
    let named = |mut members: Value, description: &str| {
        members["Name"] = json!({ "type": "string" });
        let object = object(members, &["Name"], description);
        json!({ "type": "array", "items": object })
    };
    let mut rules = named(json!({ "Properties": reference("Rule") }), "A rule.");
    rules["type"] = json!(["array", "null"]);
    rules["description"] = "Without any, every message is selected.".into();
    let subscriptions =
        json!({ "Properties": reference("SubscriptionProperties"), "Rules": rules });
    let subscriptions = named(subscriptions, "A subscription.");
    let topics =
        json!({ "Properties": reference("TopicProperties"), "Subscriptions": subscriptions });
    let properties = json!({
        "Name": {
            "type": "string",
            "description": "Where one namespace is made, the path names it, not this.",
        },
        "Queues": named(json!({ "Properties": reference("QueueProperties") }), "A queue."),
        "Topics": named(topics, "A topic."),
        "Emulator": emulator(),
    });
    object(properties, &["Name"], "A namespace as it is declared.")
}

/// Settings that only this emulator has.
fn emulator() -> Value {
    let choice = |names: &[&str], description: &str| json!({ "type": "string", "enum": names, "description": description });
    let name = json!({ "type": "string", "minLength": 1, "maxLength": 256 });
    let claims =
        json!({ "type": "array", "items": choice(&["Send", "Listen", "Manage"], "A right.") });
    let key = json!({ "Name": name, "Key": name, "Claims": claims });
    let key = object(
        key,
        &["Name", "Key"],
        "A key. Its name belongs to one namespace of the process.",
    );
    let set = json!({
        "type": "object",
        "description": "A JSON web key set (RFC 7517): keys of type RSA, or EC on P-256 or P-384. Private parts are neither \
            needed nor kept.",
        "required": ["keys"],
        "properties": {
            "keys": { "type": "array", "maxItems": 100, "items": { "type": "object", "required": ["kty"] } },
        },
    });
    let signed = json!({ "Keys": set, "Audience": { "type": "string" } });
    let signed = object(
        signed,
        &["Keys"],
        "Tokens that one of these keys has signed.",
    );
    let tokens = choice(&["accept", "refuse"], "All tokens, or none.");
    let properties = json!({
        "Expiry": choice(&["eager", "on-receive"], "When expired messages leave."),
        "LocksOnDetach": choice(&["keep", "release"], "What becomes of the locks of a link that is closed."),
        "FailedForwards": choice(
            &["transfer-dead-letter", "dead-letter"],
            "Which dead-letter queue gets what cannot be forwarded.",
        ),
        "ForwardToDisabled": choice(
            &["refuse", "deliver"],
            "Whether an entity that takes no messages of clients takes forwarded ones.",
        ),
        "BatchLimit": choice(
            &["bytes", "messages"],
            "Whether a batch is bounded by its bytes alone, or has up to 4,500 messages in the basic and the standard tier.",
        ),
        "IdleTimeouts": choice(
            &["none", "service"],
            "What becomes of links and connections that are not used: they stay, or end as at the service.",
        ),
        "Tier": choice(&["basic", "standard", "premium"], "What limits and features there are."),
        "Keys": { "type": "array", "items": key },
        "TokenCheck": choice(&["signature", "none"], "Whether tokens are checked."),
        "Jwt": {
            "description": "Which JSON web tokens are accepted. A request names no file.",
            "oneOf": [tokens, signed],
        },
        "Address": {
            "type": "string",
            "description": "A loopback address or host name of its own, which no other namespace of the process has.",
        },
    });
    object(properties, &[], "Settings of this emulator.")
}

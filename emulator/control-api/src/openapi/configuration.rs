//! The official emulator's configuration, which declares namespaces and has the properties of entities. A separate parser
//! with positions reads it, so it has no types.

use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use servicebus_broker::{EntityDescription, EntityKind, EntityStatus, Property, PropertyType};

fn schema(property: &Property) -> Value {
    let mut schema = match property.value_type {
        PropertyType::Flag => json!({ "type": "boolean" }),
        PropertyType::Target | PropertyType::Text => json!({ "type": "string" }),
        PropertyType::Duration | PropertyType::Endless => {
            json!({ "type": "string", "pattern": "^P[0-9YMWDTHS.]+$" })
        }
        PropertyType::Number => {
            let (minimum, maximum) = property.bounds.unwrap_or((0, u64::MAX));
            json!({ "type": "integer", "minimum": minimum, "maximum": maximum })
        }
        PropertyType::Status => {
            json!({ "type": "string", "enum": EntityStatus::ALL.map(EntityStatus::name) })
        }
    };
    schema["description"] = property.about.into();
    schema
}

pub(crate) fn queue_settings(_: &mut SchemaGenerator) -> Schema {
    settings(EntityKind::Queue)
}

pub(crate) fn topic_settings(_: &mut SchemaGenerator) -> Schema {
    settings(EntityKind::Topic)
}

pub(crate) fn subscription_settings(_: &mut SchemaGenerator) -> Schema {
    settings(EntityKind::Subscription)
}

/// The rules of a subscription.
pub(crate) fn rules(_: &mut SchemaGenerator) -> Schema {
    let mut schema = Schema::default();
    schema.insert("type".into(), json!("array"));
    schema.insert("items".into(), reference("NamedRule"));
    schema
}

/// The settings in an answer: all properties except one that the tier may determine.
fn settings(kind: EntityKind) -> Schema {
    let usual = EntityDescription::default();
    let always = Property::of(kind).filter(|property| property.get(&usual).is_some());
    let mut required = Vec::from_iter(always.map(|property| property.name));
    required.sort_unstable();
    let reference = json!({ "$ref": format!("#/components/schemas/{kind}Properties") });
    let mut schema = Schema::default();
    schema.insert("allOf".into(), json!([reference]));
    schema.insert("required".into(), json!(required));
    schema
}

/// Returns the schemas without a type.
pub(crate) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for kind in [
        EntityKind::Queue,
        EntityKind::Topic,
        EntityKind::Subscription,
    ] {
        let members = Property::of(kind);
        let members = members.map(|property| (property.name.to_owned(), schema(property)));
        let description = format!("The settings of a {}.", kind.to_string().to_lowercase());
        let object = object(Value::Object(members.collect()), &[], &description);
        schemas.insert(format!("{kind}Properties"), object);
    }
    let expression =
        json!({ "SqlExpression": { "type": "string" }, "Parameters": { "type": "object" } });
    let expression = object(
        expression,
        &["SqlExpression"],
        "A filter or an action in SQL.",
    );
    schemas.insert("Expression".into(), expression);
    let selector = json!({ "Selector": { "type": "string", "maxLength": 1024 } });
    let description = "A filter as a JMS 2.0 client wrote it: a message selector.";
    let selector = object(selector, &["Selector"], description);
    schemas.insert("Selector".into(), selector);
    schemas.insert("Rule".into(), rule());
    let named = json!({ "Name": { "type": "string" }, "Properties": reference("Rule") });
    schemas.insert("NamedRule".into(), object(named, &["Name"], "A rule."));
    schemas.insert("DeclaredNamespace".into(), namespace());
    schemas.insert("Topology".into(), topology());
    schemas.insert("ShortTopology".into(), short_topology());
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
        "SqlFilter": { "anyOf": [reference("Expression"), reference("Selector")] },
        "Action": reference("Expression"),
    });
    object(properties, &["FilterType"], "The `Properties` of a rule.")
}

fn topology() -> Value {
    let namespaces = json!({ "type": "array", "items": reference("DeclaredNamespace") });
    let logging = object(
        json!({ "Type": { "type": "string" } }),
        &[],
        "Accepted and ignored.",
    );
    let config = json!({ "Namespaces": namespaces, "Logging": logging });
    let config = object(config, &["Namespaces"], "The configuration.");
    let properties = json!({ "$schema": { "type": "string" }, "UserConfig": config });
    let description =
        "The official emulator's configuration. In a request it may contain comments.";
    object(properties, &["UserConfig"], description)
}

/// A topology in the short form that packages for other languages use.
fn short_topology() -> Value {
    let list = json!({
        "type": "array",
        "items": { "anyOf": [{ "type": "string" }, { "type": "object" }] },
    });
    let description = "A topology in the short form. An entity is its name, or an object with \
        `name`, its properties in snake case or camel case, and `subscriptions` or `rules`; a \
        duration may be a number of seconds. A rule has `name`, `sql`, `correlation` and \
        `action`. An object with `Name` has the form of the configuration.";
    let settings = json!({ "type": ["object", "null"] });
    let properties = json!({ "queues": list, "topics": list, "settings": settings });
    object(properties, &[], description)
}

fn namespace() -> Value {
    let named = |mut members: Value, description: &str| {
        members["Name"] = json!({ "type": "string" });
        let object = object(members, &["Name"], description);
        json!({ "type": "array", "items": object })
    };
    let rules = json!({
        "type": ["array", "null"],
        "description": "Without rules, the subscription selects every message.",
        "items": reference("NamedRule"),
    });
    let subscriptions =
        json!({ "Properties": reference("SubscriptionProperties"), "Rules": rules });
    let subscriptions = named(subscriptions, "A subscription.");
    let topics =
        json!({ "Properties": reference("TopicProperties"), "Subscriptions": subscriptions });
    let properties = json!({
        "Name": {
            "type": "string",
            "description": "Ignored when a request creates one namespace: the path names it.",
        },
        "Queues": named(json!({ "Properties": reference("QueueProperties") }), "A queue."),
        "Topics": named(topics, "A topic."),
        "Emulator": emulator(),
    });
    object(properties, &["Name"], "The declaration of a namespace.")
}

/// The settings that only this emulator has.
fn emulator() -> Value {
    let choice = |names: &[&str], description: &str| json!({ "type": "string", "enum": names, "description": description });
    let name = json!({ "type": "string", "minLength": 1, "maxLength": 256 });
    let claims =
        json!({ "type": "array", "items": choice(&["Send", "Listen", "Manage"], "A claim.") });
    let key = json!({ "Name": name, "Key": name, "Claims": claims });
    let key = object(
        key,
        &["Name", "Key"],
        "A key. Its name is unique among the namespaces of the process.",
    );
    let set = json!({
        "type": "object",
        "description": "A JSON Web Key Set (RFC 7517) with keys of type RSA, or EC on P-256 or \
            P-384. The emulator neither needs nor keeps private parts.",
        "required": ["keys"],
        "properties": {
            "keys": { "type": "array", "maxItems": 100, "items": { "type": "object", "required": ["kty"] } },
        },
    });
    let signed = json!({ "Keys": set, "Audience": { "type": "string" } });
    let signed = object(
        signed,
        &["Keys"],
        "Accepts tokens that one of these keys has signed.",
    );
    let tokens = choice(&["accept", "refuse"], "Accepts all tokens, or none.");
    let properties = json!({
        "Expiry": choice(&["eager", "on-receive"], "When expired messages are removed or \
            dead-lettered."),
        "LocksOnDetach": choice(&["keep", "release"], "Whether message locks outlive their link."),
        "FailedForwards": choice(
            &["transfer-dead-letter", "dead-letter"],
            "The dead-letter queue for messages that cannot be forwarded.",
        ),
        "ForwardToDisabled": choice(
            &["refuse", "deliver"],
            "Whether an entity that is disabled for sends accepts forwarded messages.",
        ),
        "BatchLimit": choice(
            &["bytes", "messages"],
            "Whether only the bytes of a batch are limited, or also its messages: 4,500 in the \
                basic and the standard tier.",
        ),
        "IdleTimeouts": choice(
            &["none", "service"],
            "Whether the emulator closes idle links and connections as the service does.",
        ),
        "Tier": choice(&["basic", "standard", "premium"], "The tier, which determines limits and \
            features."),
        "Keys": { "type": "array", "items": key },
        "TokenCheck": choice(&["signature", "none"], "Whether the signatures of tokens are \
            checked."),
        "Arm": choice(&["on", "off"], "Whether clients of Azure Resource Manager can manage the \
            namespace."),
        "Jwt": {
            "description": "The accepted JSON Web Tokens. A request cannot name a file.",
            "oneOf": [tokens, signed],
        },
        "Address": {
            "type": "string",
            "description": "A loopback address or host name that no other namespace of the \
                process has.",
        },
    });
    object(properties, &[], "Settings that only this emulator has.")
}

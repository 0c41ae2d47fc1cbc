//! The schemas of the emulator's `openapi.json`: those of the types, and of the properties that entities have in a
//! configuration, which a separate parser with positions reads, so that they have no type.

use schemars::generate::{Contract, SchemaSettings};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use servicebus_broker::{EntityDescription, EntityKind, EntityStatus, Property, PropertyType};

use crate::{
    ActOnMessages, ActedOn, Advance, AssertionResult, Change, Clock, ClockHold, Connections,
    Counts, Due, EndCheck, EndTest, Entities, ErrorAnswer, Explanation, ExplorationReport,
    ExplorationRequest, ExplorationRun, FaultRequest, Faults, Health, HeldMessage, HoldClock,
    LoseSessionLock, Messages, NamespaceInfo, Operations, Queues, Receivers, RecordOperations,
    Released, Resubmit, RunResult, SendMessages, SentMessages, Sessions, Settle, Settled,
    StartedExploration, Subscriptions, TestReport, Timeline, Topics,
};

type Describe = fn(&mut SchemaGenerator) -> Schema;

/// Bodies of requests, in which members with defaults are optional.
const REQUESTS: [Describe; 12] = [
    SchemaGenerator::subschema_for::<ActOnMessages>,
    SchemaGenerator::subschema_for::<Advance>,
    SchemaGenerator::subschema_for::<EndTest>,
    SchemaGenerator::subschema_for::<ExplorationRequest>,
    SchemaGenerator::subschema_for::<FaultRequest>,
    SchemaGenerator::subschema_for::<HoldClock>,
    SchemaGenerator::subschema_for::<LoseSessionLock>,
    SchemaGenerator::subschema_for::<RecordOperations>,
    SchemaGenerator::subschema_for::<Resubmit>,
    SchemaGenerator::subschema_for::<RunResult>,
    SchemaGenerator::subschema_for::<SendMessages>,
    SchemaGenerator::subschema_for::<Settle>,
];

/// Bodies of answers, in which members that are always present are required.
const ANSWERS: [Describe; 31] = [
    SchemaGenerator::subschema_for::<ActedOn>,
    SchemaGenerator::subschema_for::<AssertionResult>,
    SchemaGenerator::subschema_for::<Change>,
    SchemaGenerator::subschema_for::<Clock>,
    SchemaGenerator::subschema_for::<ClockHold>,
    SchemaGenerator::subschema_for::<Connections>,
    SchemaGenerator::subschema_for::<Counts>,
    SchemaGenerator::subschema_for::<Due>,
    SchemaGenerator::subschema_for::<EndCheck>,
    SchemaGenerator::subschema_for::<Entities>,
    SchemaGenerator::subschema_for::<ErrorAnswer>,
    SchemaGenerator::subschema_for::<Explanation>,
    SchemaGenerator::subschema_for::<ExplorationReport>,
    SchemaGenerator::subschema_for::<ExplorationRun>,
    SchemaGenerator::subschema_for::<Faults>,
    SchemaGenerator::subschema_for::<Health>,
    SchemaGenerator::subschema_for::<HeldMessage>,
    SchemaGenerator::subschema_for::<Messages>,
    SchemaGenerator::subschema_for::<NamespaceInfo>,
    SchemaGenerator::subschema_for::<Operations>,
    SchemaGenerator::subschema_for::<Queues>,
    SchemaGenerator::subschema_for::<Receivers>,
    SchemaGenerator::subschema_for::<Released>,
    SchemaGenerator::subschema_for::<SentMessages>,
    SchemaGenerator::subschema_for::<Sessions>,
    SchemaGenerator::subschema_for::<Settled>,
    SchemaGenerator::subschema_for::<StartedExploration>,
    SchemaGenerator::subschema_for::<Subscriptions>,
    SchemaGenerator::subschema_for::<TestReport>,
    SchemaGenerator::subschema_for::<Timeline>,
    SchemaGenerator::subschema_for::<Topics>,
];

/// Returns the schemas by name.
pub fn schemas() -> Map<String, Value> {
    let mut schemas = of_types(&REQUESTS, Contract::Deserialize);
    schemas.extend(of_types(&ANSWERS, Contract::Serialize));
    for kind in [
        EntityKind::Queue,
        EntityKind::Topic,
        EntityKind::Subscription,
    ] {
        let properties =
            Property::of(kind).map(|property| (property.name.to_owned(), schema(property)));
        let schema = json!({
            "type": "object",
            "description": format!("The settings of a {}.", kind.to_string().to_lowercase()),
            "required": [],
            "properties": Map::from_iter(properties),
            "additionalProperties": false,
        });
        schemas.insert(format!("{kind}Properties"), schema);
    }
    schemas
}

fn of_types(types: &[Describe], contract: Contract) -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.contract = contract;
    let mut generator = settings.into_generator();
    for describe in types {
        describe(&mut generator);
    }
    let mut definitions = generator.take_definitions(true);
    // An object has no other members than those described.
    for definition in definitions.values_mut().filter_map(Value::as_object_mut) {
        if definition.contains_key("properties")
            && !definition.contains_key("unevaluatedProperties")
        {
            definition.insert("additionalProperties".to_owned(), false.into());
        }
    }
    definitions
}

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

/// The settings in an answer: all properties except one that the tier may determine.
fn settings(kind: EntityKind) -> Schema {
    let usual = EntityDescription::default();
    let always = Property::of(kind).filter(|property| property.get(&usual).is_some());
    let mut required = Vec::from_iter(always.map(|property| property.name));
    required.sort_unstable();
    let reference = format!("#/components/schemas/{kind}Properties");
    json_schema!({ "allOf": [{ "$ref": reference }], "required": required })
}

/// The rules of a subscription.
pub(crate) fn rules(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "$ref": "#/components/schemas/NamedRule" } })
}

//! The schema of effects, which accepts more forms than the emulator writes.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::{Effect, EffectKind, When};

impl JsonSchema for Effect {
    fn schema_name() -> Cow<'static, str> {
        "Effect".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = Vec::from_iter(EffectKind::all().map(EffectKind::name));
        let whens = Vec::from_iter(When::ALL.map(When::name));
        json_schema!({
            "description": "A name, or an object with the name as its only key and the details in it. The refusal \
                of an effect lists those that the operation can have.",
            "anyOf": [
                { "type": "string", "enum": names },
                {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 1,
                    "propertyNames": { "enum": names },
                    "additionalProperties": {
                        "type": "object",
                        "properties": {
                            "condition": { "type": "string", "minLength": 1, "maxLength": 128 },
                            "description": { "type": "string", "minLength": 1, "maxLength": 1024 },
                            "status": { "type": "integer", "minimum": 200, "maximum": 599 },
                            "when": { "type": "string", "enum": whens },
                            "seconds": { "type": "number", "exclusiveMinimum": 0 },
                            "clock": { "type": "string", "enum": ["virtual", "real"] },
                            "behind": { "type": "integer", "minimum": 1, "maximum": 1000 },
                        },
                        "additionalProperties": false,
                    },
                },
            ],
        })
    }
}

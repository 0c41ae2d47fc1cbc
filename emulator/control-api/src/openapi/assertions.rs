//! Assertions, whose fields depend on the kind.

use serde_json::{Map, Value, json};

use super::Description;
use crate::{AssertionKind, AssertionResult};

/// Every field with its type and its description.
const FIELDS: &str = "\
entity: string: A queue, topic or subscription, or a dead-letter queue of one, by its address.
within: wait: How long to wait, in seconds of real time; 5 by default.
message_id: text: Selects messages with this id.
body: text: Selects messages with this body, read as text.
body_json: any: Selects messages whose body is JSON that contains this; objects may have more members.
reason: text: Selects dead letters with this reason.
description: text: Selects dead letters with this description.
to: text: The client that receives, or the entity to which messages are forwarded.
count: number: Expects exactly this number; at least one by default.
times: number: Expects exactly this number of occurrences; at least one by default.
at_least: number: Expects at least this number.
at_most: number: Expects at most this number.
at: date-time: When a scheduled message is due, by a client's clock.
due_in: seconds: In how many seconds a scheduled message is due.
tolerance: seconds: By how many seconds the due time may differ; 10 by default.
active: number: The number of active messages, locked and deferred ones included.
dead_letter: number: The number of messages in the dead-letter queue.
transfer_dead_letter: number: The number of messages in the transfer dead-letter queue.
scheduled: number: The number of scheduled messages.
locked: number: The number of locked messages.
deferred: number: The number of deferred messages.
transfer: number: The number of messages that wait to be forwarded.
session: string: The id of a session.
bodies: texts: The bodies of all its messages, in order.
text: text: Expects this session state, as text.
bytes: base64: Expects this session state, as bytes.
json: any: Expects this session state, as JSON in any formatting.
set: boolean: Whether the session has a state.";

fn schema(of: &str) -> Value {
    let text = json!({ "$ref": "#/components/schemas/AssertedText" });
    match of {
        "any" => json!({}),
        "text" => text,
        "texts" => json!({ "type": "array", "items": text }),
        "number" => json!({ "type": "integer", "minimum": 0 }),
        "seconds" => json!({ "type": "number", "minimum": 0 }),
        "wait" => json!({ "type": "number", "minimum": 0, "maximum": 600 }),
        "date-time" => json!({ "type": "string", "format": "date-time" }),
        "base64" => json!({ "anyOf": [
            { "type": "string", "contentEncoding": "base64" },
            { "$ref": "#/components/schemas/Bytes" },
        ] }),
        plain => json!({ "type": plain }),
    }
}

pub(crate) fn describe(d: &mut Description) {
    d.group(
        "assertions",
        "Assertions of tests: the emulator waits for them and explains failures.",
    );
    let request = json!({ "$ref": "#/components/schemas/Assertion" });
    d.route("POST assertions", "assert").summary("Waits until an assertion holds; if it fails, \
        explains why.")
    .more(
        "A positive assertion waits until it holds; a negative one waits until the namespace is \
            idle. The text of a failure is that of the Rust harness. Assertions about the bodies \
            of messages that no longer exist need an emulator that was started with \
            `--record-messages`.",
    )
    .body(true, "application/json", request)
    .answers::<AssertionResult>(200, "Whether the assertion holds.")
    .refuses(400, "The kind does not exist, the kind does not take one of the fields, or a value \
        is not allowed.")
    .refuses(422, "The body is not an object with these fields.")
    .refuses(409, "The maximum number of concurrent assertions is reached.");
}

/// Returns the schemas of the request.
pub(crate) fn schemas() -> Map<String, Value> {
    let mut properties = Map::new();
    let kinds = AssertionKind::ALL.map(AssertionKind::name);
    properties.insert(
        "kind".into(),
        json!({ "enum": kinds, "description": "The kind of the assertion." }),
    );
    for line in FIELDS.lines() {
        if let [name, of, description] = line.splitn(3, ": ").collect::<Vec<_>>()[..] {
            let mut schema = schema(of);
            schema["description"] = description.into();
            properties.insert(name.into(), schema);
        }
    }
    let takes = AssertionKind::ALL.map(|kind| {
        let fields = kind.fields().replace(' ', ", ");
        format!("{}: {fields}.", kind.name())
    });
    let takes = takes.join(" ");
    let assertion = json!({
        "type": "object",
        "description": format!("An assertion about an entity. The kind determines the other \
            fields. {takes}"),
        "required": ["kind", "entity"],
        "properties": properties,
        "additionalProperties": false,
    });
    let bytes = json!({ "$ref": "#/components/schemas/Bytes" });
    let text = json!({
        "description": "A text that must be equal, or a text that must be contained; bytes are \
            UTF-8.",
        "anyOf": [
            { "type": "string" },
            bytes,
            {
                "type": "object",
                "required": ["contains"],
                "properties": { "contains": { "anyOf": [{ "type": "string" }, bytes] } },
                "additionalProperties": false,
            },
        ],
    });
    let bytes = json!({
        "type": "object",
        "description": "Bytes.",
        "required": ["$bytes"],
        "properties": { "$bytes": { "type": "string", "contentEncoding": "base64" } },
        "additionalProperties": false,
    });
    Map::from_iter([
        ("Assertion".into(), assertion),
        ("AssertedText".into(), text),
        ("Bytes".into(), bytes),
    ])
}

//! Assertions, whose fields depend on the kind.

use serde_json::{Map, Value, json};

use super::Description;
use crate::AssertionResult;

/// Every field with its type and its description.
const FIELDS: &str = "\
entity: string: A queue, topic or subscription, or a dead-letter queue of one, by its address.
within: wait: How many seconds of real time to wait; 5 unless set.
message_id: text: Means messages with this id only.
body: text: Means messages with this body only, read as text.
body_json: any: Means messages only whose body is JSON that has this in it; objects may have more.
reason: text: Means dead letters with this reason only.
description: text: Means dead letters with this description only.
to: text: The client or the entity to which something goes.
count: number: Exactly so many; one at least unless set.
times: number: Exactly so often; once at least unless set.
at_least: number: So many or so often, or more.
at_most: number: So many or fewer.
at: date-time: When a scheduled message is due, by a client's clock.
due_in: seconds: In how many seconds it is.
tolerance: seconds: By how many seconds that may differ; 10 unless set.
active: number: Active messages, locked and deferred ones included.
dead_letter: number: Messages in the dead-letter queue.
transfer_dead_letter: number: Messages in the transfer dead-letter queue.
scheduled: number: Messages that wait for their time.
locked: number: Locked messages.
deferred: number: Deferred messages.
transfer: number: Messages that wait to be forwarded.
session: string: The id of a session.
bodies: texts: The bodies of its messages in order, and no others.
text: text: Its state as text.
bytes: base64: Its state as bytes.
json: any: Its state as JSON, however it is written.
set: boolean: Whether it has a state.";

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

/// The kinds, with the fields that each takes beside the common ones.
pub const KINDS: [(&str, &str); 24] = [
    ("abandoned", "message_id body body_json times at_least"),
    ("attached", "to count"),
    ("completed", "message_id body body_json count"),
    (
        "dead_lettered",
        "reason description message_id body body_json count",
    ),
    ("deferred", "message_id body body_json count"),
    ("delivered", "message_id body body_json to times at_least"),
    ("empty", ""),
    ("expired", "message_id body body_json count"),
    ("forwarded", "message_id body body_json to count"),
    ("lock_not_renewed", "message_id body body_json"),
    ("lock_renewed", "message_id body body_json times at_least"),
    (
        "message_count",
        "active dead_letter transfer_dead_letter scheduled locked deferred transfer",
    ),
    ("not_abandoned", "message_id body body_json"),
    ("not_completed", "message_id body body_json"),
    (
        "not_dead_lettered",
        "reason description message_id body body_json",
    ),
    ("not_deferred", "message_id body body_json"),
    ("not_delivered", "message_id body body_json to"),
    ("not_expired", "message_id body body_json"),
    ("not_forwarded", "message_id body body_json to"),
    (
        "not_scheduled",
        "message_id body body_json at due_in tolerance",
    ),
    (
        "scheduled",
        "message_id body body_json count at due_in tolerance",
    ),
    ("session_order", "session bodies"),
    ("session_state", "session text bytes json set"),
    ("unsettled_sends", "count at_least at_most"),
];

pub(crate) fn describe(d: &mut Description) {
    d.group(
        "assertions",
        "What a test expects, waited for and explained.",
    );
    let request = json!({ "$ref": "#/components/schemas/Assertion" });
    d.route("POST assertions", "assert").summary("Waits until an assertion holds, and says why not.")
    .more(
        "What is expected is waited for; where nothing is, the namespace is to become idle first. The text of a failure is \
         that of the Rust harness. Assertions about bodies of messages that are gone need an emulator that was started with \
         `--record-messages`.",
    )
    .body(true, "application/json", request)
    .answers::<AssertionResult>(200, "Whether it holds.")
    .refuses(400, "There is no such kind, it does not take a field, or a field not its value.")
    .refuses(422, "The body is JSON of another form.")
    .refuses(409, "As many assertions wait as may at once.");
}

/// Returns the schemas of the request.
pub(crate) fn schemas() -> Map<String, Value> {
    let mut properties = Map::new();
    let kinds = KINDS.map(|(kind, _)| kind);
    properties.insert(
        "kind".into(),
        json!({ "enum": kinds, "description": "What is expected." }),
    );
    for line in FIELDS.lines() {
        if let [name, of, description] = line.splitn(3, ": ").collect::<Vec<_>>()[..] {
            let mut schema = schema(of);
            schema["description"] = description.into();
            properties.insert(name.into(), schema);
        }
    }
    let takes = KINDS.map(|(kind, fields)| format!("{kind}: {}.", fields.replace(' ', ", ")));
    let takes = takes.join(" ");
    let assertion = json!({
        "type": "object",
        "description": format!("What is expected of an entity. Each kind takes fields of its own. {takes}"),
        "required": ["kind", "entity"],
        "properties": properties,
        "additionalProperties": false,
    });
    let bytes = json!({ "$ref": "#/components/schemas/Bytes" });
    let text = json!({
        "description": "A text that is compared exactly, or one that is to be a part; bytes are its UTF-8.",
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

//! The routes of the messages that are held, and of the list of entities.

use serde_json::{Value, json};

use super::Description;
use super::routes::ADDRESS;
use crate::{
    ActOnMessages, ActedOn, Change, Connections, Entities, HeldMessage, Messages, Resubmit,
    SendMessages, SentMessages,
};

const ALL: &str = "/$emulator/v1/namespaces/{namespace}/messages";
const NUMBER: &str = "The sequence number of the message.";

pub(crate) fn describe(d: &mut Description) {
    let text = || json!({ "type": "string" });
    d.route(
        "GET /$emulator/v1/namespaces/{namespace}/entities",
        "listEntities",
        "Lists queues, topics and subscriptions with their counts.",
    )
    .query(
        "contains",
        false,
        text(),
        "Those with this in their paths, in any case.",
    )
    .query(
        "order",
        false,
        one_of(&["path", "dead-letter"]),
        "By path unless set, or those with most dead letters first.",
    )
    .query(
        "after",
        false,
        text(),
        "Those that come after the entity of this path.",
    )
    .query(
        "limit",
        false,
        limit(1000),
        "How many at most; 1,000 unless set.",
    )
    .answers::<Entities>(200, "The entities.");
    list(d);
    one(d);
    changes(d);
}

/// Who is connected, what changes, and numbers of it.
pub(crate) fn describe_live(d: &mut Description) {
    d.group("live", "Who is connected, and what changes.");
    d.route(
        "GET /$emulator/v1/namespaces/{namespace}/connections",
        "listConnections",
        "Lists the AMQP connections of a namespace with their links.",
    )
    .answers::<Connections>(200, "The connections.");
    let change = d.answer::<Change>();
    d.route(
        "GET /$emulator/v1/namespaces/{namespace}/changes",
        "followChanges",
        "Tells of changes for as long as the answer is read.",
    )
    .more(
        "The answer is a stream of server-sent events. The data of each says how things are now; one is sent when something \
         has changed and the reader takes it, at most five in a second, and a comment after 15 s without one. Its id is the \
         position of the latest event of the record: with `Last-Event-ID` the first one names the entities that have \
         changed since, else it says that everything is to be asked for.",
    )
    .answers_with(200, "A stream of events with such data.", "text/event-stream", change)
    .refuses(503, "16 clients follow changes already.");
    d.route(
        "GET /$emulator/v1/metrics",
        "readMetrics",
        "Answers with numbers for Prometheus.",
    )
    .more("They are at `/metrics` too, for requests without `Authorization` and `api-version`.")
    .answers_with(
        200,
        "The text format of Prometheus.",
        "text/plain",
        json!({ "type": "string" }),
    );
}

fn one_of(names: &[&str]) -> Value {
    json!({ "type": "string", "enum": names })
}

fn limit(most: u32) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": most })
}

fn list(d: &mut Description) {
    let text = || json!({ "type": "string" });
    let count = || json!({ "type": "integer", "minimum": 0 });
    d.route(
        &format!("GET {ALL}"),
        "listMessages",
        "Lists the messages of an entity, or looks for some of them.",
    )
    .more(
        "A request looks at 10,000 messages at most, and at 64 MiB of bodies; `next` tells where to go on, also where \
         nothing was found.",
    )
    .query("entity", true, text(), ADDRESS)
    .query(
        "state",
        false,
        one_of(&["active", "locked", "deferred", "scheduled", "transfer"]),
        "Those in this state.",
    )
    .query("session", false, text(), "Those of this session.")
    .query(
        "where",
        false,
        text(),
        "Those that this SQL filter selects, as it would in a rule; `sys.` has all properties that the broker knows.",
    )
    .query(
        "body_contains",
        false,
        json!({ "type": "string", "maxLength": 256 }),
        "Those with this text in their bodies, in the same case.",
    )
    .query("skip", false, count(), "How many messages to pass over, whichever these are.")
    .query("from", false, count(), "The sequence number to begin with.")
    .query(
        "order",
        false,
        one_of(&["oldest", "newest"]),
        "Which come first; the oldest unless set.",
    )
    .query("limit", false, limit(200), "How many at most; 50 unless set.")
    .answers::<Messages>(200, "The messages.");
}

fn one(d: &mut Description) {
    let text = || json!({ "type": "string" });
    d.route(
        &format!("GET {ALL}/{{number}}"),
        "showMessage",
        "Shows a message with everything that is known of it.",
    )
    .more("The body of a message of more than 1 MiB is left out.")
    .named("number", NUMBER)
    .query("entity", true, text(), ADDRESS)
    .answers::<HeldMessage>(200, "The message.")
    .refuses(404, "There is no such namespace, entity or message.");
    d.route(
        &format!("GET {ALL}/{{number}}/body"),
        "readBody",
        "Reads the body of a message as it was sent.",
    )
    .named("number", NUMBER)
    .query("entity", true, text(), ADDRESS)
    .answers_with(
        200,
        "The data; of a body that is a value its text, else its JSON.",
        "application/octet-stream",
        json!({}),
    )
    .refuses(404, "There is no such namespace, entity or message.");
}

fn changes(d: &mut Description) {
    let text = || json!({ "type": "string" });
    d.route(
        &format!("POST {ALL}"),
        "sendMessages",
        "Sends a message, or several of which all or none are accepted.",
    )
    .more(
        "What `showMessage` tells of a message makes the same message. One with `x-opt-scheduled-enqueue-time` is \
         scheduled. A subscription, which clients cannot send to, gets a message alone.",
    )
    .query("entity", true, text(), "A queue, a topic or a subscription.")
    .takes::<SendMessages>()
    .answers::<SentMessages>(201, "They are accepted.")
    .refuses(409, "The entity does not accept them.");
    d.route(
        &format!("POST {ALL}/resubmit"),
        "resubmitMessages",
        "Sends messages again that are held, such as dead letters.",
    )
    .more(
        "Each is sent and removed at once, or stays as it is. A message that a receiver has locked stays, and so does one \
         that would be a duplicate.",
    )
    .takes::<Resubmit>()
    .answers::<ActedOn>(200, "What became of them.");
    d.route(
        &format!("POST {ALL}/act"),
        "actOnMessages",
        "Deletes messages, dead-letters them, ends their locks or lets them be received.",
    )
    .takes::<ActOnMessages>()
    .answers::<ActedOn>(200, "What became of them.");
}

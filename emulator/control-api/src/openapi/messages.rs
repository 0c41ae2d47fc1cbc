//! The routes of messages, and of the list of entities.

use serde_json::json;

use super::Description;
use super::routes::ADDRESS;
use crate::{
    ActOnMessages, ActedOn, Change, Connections, Entities, HeldMessage, Messages, Resubmit,
    SendMessages, SentMessages,
};

const NUMBER: &str = "The sequence number of the message.";

pub(crate) fn describe(d: &mut Description) {
    d.route("GET entities", "listEntities")
        .summary("Lists queues, topics and subscriptions with their counts.")
        .text(
            "contains",
            "Returns only entities whose paths contain this text, in any case.",
        )
        .choice(
            "order",
            &["path", "dead-letter"],
            "The order: by path, the default, or by the number of dead letters, the largest \
                first.",
        )
        .text(
            "after",
            "Returns only entities after this one: the `next` of an answer in the same order.",
        )
        .limit(1000, "The maximum number of results; 1,000 by default.")
        .answers::<Entities>(200, "The entities.");
    list(d);
    one(d);
    changes(d);
}

/// Adds the routes of connections, changes and metrics.
pub(crate) fn describe_live(d: &mut Description) {
    d.group("live", "Connections, changes and metrics.");
    d.route("GET connections", "listConnections")
        .summary("Lists the AMQP connections of a namespace with their links.")
        .answers::<Connections>(200, "The connections.");
    let change = d.answer::<Change>();
    d.route("GET changes", "followChanges")
        .summary(
            "Streams changes until the client closes the \
        response.",
        )
        .more(
            "The response is a stream of server-sent events. The data of each event describes the \
            current state. The emulator sends an event after a change, at most five per second, \
            and a comment after 15 s without an event. With the id of an event as `Last-Event-ID`, \
            the first event names the entities that have changed since then. Without it, and \
            after a reset or a change of entities, rules or faults, the client has to request \
            everything.",
        )
        .answers_with(
            200,
            "A stream of events with this data.",
            "text/event-stream",
            change,
        )
        .refuses(503, "16 clients already follow changes.");
    d.route("GET /$emulator/v1/metrics", "readMetrics")
        .summary("Returns metrics for Prometheus.")
        .more(
            "They are also at `/metrics`, for requests without `Authorization` and \
            `api-version`.",
        )
        .answers_with(
            200,
            "The text format of Prometheus.",
            "text/plain",
            json!({ "type": "string" }),
        );
}

fn list(d: &mut Description) {
    d.route("GET messages", "listMessages").summary("Lists or searches the messages of an entity.")
    .more(
        "A request examines at most 10,000 messages and 64 MiB of bodies; `next` is the position \
            at which to continue, also if nothing was found.",
    )
    .entity(ADDRESS)
    .choice("state", &["active", "locked", "deferred", "scheduled", "transfer"], "Returns only \
        messages in this state.")
    .text("session", "Returns only messages of this session.")
    .text("where", "Returns only messages that this SQL filter selects, as in a rule; `sys.` has \
        all properties that the broker knows.")
    .query(
        "body_contains",
        false,
        json!({ "type": "string", "maxLength": 256 }),
        "Returns only messages whose bodies contain this text; case matters.",
    )
    .number("skip", 0, "The number of messages to skip, before any selection.")
    .number("from", 0, "The first sequence number to return.")
    .choice("order", &["oldest", "newest"], "The order; the oldest messages come first by \
        default.")
    .limit(200, "The maximum number of results; 50 by default.")
    .answers::<Messages>(200, "The messages.");
}

fn one(d: &mut Description) {
    d.route("GET messages/{number}", "showMessage")
        .summary("Returns a message with all its properties.")
        .more("The response omits the body of a message that is larger than 1 MiB.")
        .named("number", NUMBER)
        .entity(ADDRESS)
        .answers::<HeldMessage>(200, "The message.")
        .refuses(
            404,
            "The namespace, the entity or the message does not exist.",
        );
    d.route("GET messages/{number}/body", "readBody")
        .summary("Returns the body of a message as it was sent.")
        .named("number", NUMBER)
        .entity(ADDRESS)
        .answers_with(
            200,
            "The data; for an AMQP value its text, or its JSON.",
            "application/octet-stream",
            json!({}),
        )
        .refuses(
            404,
            "The namespace, the entity or the message does not exist.",
        );
}

fn changes(d: &mut Description) {
    d.route("POST messages", "sendMessages")
        .summary(
            "Sends messages; the emulator accepts all or \
        none.",
        )
        .more(
            "The response of `showMessage` is a valid message, which sends a copy. A message with \
            `x-opt-scheduled-enqueue-time` is scheduled. A message to a subscription, to which \
            clients cannot send, reaches no other subscription.",
        )
        .entity("A queue, a topic or a subscription.")
        .takes::<SendMessages>()
        .answers::<SentMessages>(201, "The messages were accepted.")
        .refuses(409, "The entity refuses the messages.");
    d.route("POST messages/resubmit", "resubmitMessages").summary("Resends stored messages, such \
        as dead letters.")
    .more(
        "The emulator sends and removes each message atomically, or leaves it unchanged. It does \
            not resend locked messages and duplicates.",
    )
    .takes::<Resubmit>()
    .answers::<ActedOn>(200, "The result for each message.");
    d.route("POST messages/act", "actOnMessages")
        .summary("Deletes messages, dead-letters them, ends their locks or makes them available.")
        .takes::<ActOnMessages>()
        .answers::<ActedOn>(200, "The result for each message.");
}

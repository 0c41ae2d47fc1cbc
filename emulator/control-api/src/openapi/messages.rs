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
        .text("contains", "Those with this in their paths, in any case.")
        .choice(
            "order",
            &["path", "dead-letter"],
            "By path unless set, or those with most dead letters first.",
        )
        .text("after", "Those that come after the entity of this path.")
        .limit(1000, "How many at most; 1,000 unless set.")
        .answers::<Entities>(200, "The entities.");
    list(d);
    one(d);
    changes(d);
}

/// Adds the routes of connections, changes and metrics.
pub(crate) fn describe_live(d: &mut Description) {
    d.group("live", "Who is connected, and what changes.");
    d.route("GET connections", "listConnections")
        .summary("Lists the AMQP connections of a namespace with their links.")
        .answers::<Connections>(200, "The connections.");
    let change = d.answer::<Change>();
    d.route("GET changes", "followChanges").summary("Tells of changes for as long as the answer is read.")
    .more(
        "The answer is a stream of server-sent events. The data of each says how things are now; one is sent when something \
         has changed and the reader takes it, at most five in a second, and a comment after 15 s without one. Its id is the \
         position of the latest event of the record: with `Last-Event-ID` the first one names the entities that have \
         changed since, else it says that everything is to be asked for.",
    )
    .answers_with(200, "A stream of events with such data.", "text/event-stream", change)
    .refuses(503, "16 clients follow changes already.");
    d.route("GET /$emulator/v1/metrics", "readMetrics")
        .summary("Answers with numbers for Prometheus.")
        .more("They are at `/metrics` too, for requests without `Authorization` and `api-version`.")
        .answers_with(
            200,
            "The text format of Prometheus.",
            "text/plain",
            json!({ "type": "string" }),
        );
}

fn list(d: &mut Description) {
    d.route("GET messages", "listMessages").summary("Lists the messages of an entity, or looks for some of them.")
    .more(
        "A request looks at 10,000 messages at most, and at 64 MiB of bodies; `next` tells where to go on, also where \
         nothing was found.",
    )
    .entity(ADDRESS)
    .choice("state", &["active", "locked", "deferred", "scheduled", "transfer"], "Those in this state.")
    .text("session", "Those of this session.")
    .text("where", "Those that this SQL filter selects, as it would in a rule; `sys.` has all properties that the broker knows.")
    .query(
        "body_contains",
        false,
        json!({ "type": "string", "maxLength": 256 }),
        "Those with this text in their bodies, in the same case.",
    )
    .number("skip", 0, "How many messages to pass over, whichever these are.")
    .number("from", 0, "The sequence number to begin with.")
    .choice("order", &["oldest", "newest"], "Which come first; the oldest unless set.")
    .limit(200, "How many at most; 50 unless set.")
    .answers::<Messages>(200, "The messages.");
}

fn one(d: &mut Description) {
    d.route("GET messages/{number}", "showMessage")
        .summary("Shows a message with everything that is known of it.")
        .more("The body of a message of more than 1 MiB is left out.")
        .named("number", NUMBER)
        .entity(ADDRESS)
        .answers::<HeldMessage>(200, "The message.")
        .refuses(404, "There is no such namespace, entity or message.");
    d.route("GET messages/{number}/body", "readBody")
        .summary("Reads the body of a message as it was sent.")
        .named("number", NUMBER)
        .entity(ADDRESS)
        .answers_with(
            200,
            "The data; of a body that is a value its text, else its JSON.",
            "application/octet-stream",
            json!({}),
        )
        .refuses(404, "There is no such namespace, entity or message.");
}

fn changes(d: &mut Description) {
    d.route("POST messages", "sendMessages").summary("Sends a message, or several of which all or none are accepted.")
    .more(
        "What `showMessage` tells of a message makes the same message. One with `x-opt-scheduled-enqueue-time` is \
         scheduled. A subscription, which clients cannot send to, gets a message alone.",
    )
    .entity("A queue, a topic or a subscription.")
    .takes::<SendMessages>()
    .answers::<SentMessages>(201, "They are accepted.")
    .refuses(409, "The entity does not accept them.");
    d.route("POST messages/resubmit", "resubmitMessages").summary("Sends messages again that are held, such as dead letters.")
    .more(
        "Each is sent and removed at once, or stays as it is. A message that a receiver has locked stays, and so does one \
         that would be a duplicate.",
    )
    .takes::<Resubmit>()
    .answers::<ActedOn>(200, "What became of them.");
    d.route("POST messages/act", "actOnMessages")
        .summary("Deletes messages, dead-letters them, ends their locks or lets them be received.")
        .takes::<ActOnMessages>()
        .answers::<ActedOn>(200, "What became of them.");
}

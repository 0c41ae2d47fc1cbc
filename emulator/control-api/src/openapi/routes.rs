//! Every route, in groups.

use schemars::JsonSchema;
use serde_json::json;

use super::Description;
use super::operation::NOT_ALLOWED;
use crate::{
    Advance, Clock, ClockHold, Counts, Due, EndCheck, EndTest, Explanation, FaultRequest, Faults,
    Health, HoldClock, LoseSessionLock, NamespaceInfo, Operations, Queue, Queues, Receivers,
    RecordOperations, Released, ScriptedFault, Sessions, Settle, Settled, Subscription,
    Subscriptions, TestReport, Timeline, Topic, Topics,
};

pub(crate) const ADDRESS: &str = "An address as clients write it: a queue, a topic, \
    `topic/Subscriptions/name`, or a dead-letter queue such as `orders/$DeadLetterQueue`.";

pub(crate) fn describe(d: &mut Description) {
    process(d);
    namespaces(d);
    clocks(d);
    messages(d);
    super::messages::describe(d);
    super::messages::describe_live(d);
    faults(d);
    operations(d);
    postponed(d);
    sessions(d);
    d.group("entities", "Queues, topics and subscriptions.");
    entities::<Queue, Queues>(d, "queue", "Queue");
    entities::<Topic, Topics>(d, "topic", "Topic");
    entities::<Subscription, Subscriptions>(d, "subscription", "Subscription");
}

fn process(d: &mut Description) {
    d.group("process", "The process of the emulator.");
    for (line, id) in [
        ("GET /health", "health"),
        ("GET /$emulator/v1/health", "controlHealth"),
    ] {
        d.route(line, id)
            .summary("Returns the health of the emulator.")
            .answers::<Health>(200, "The emulator is healthy.")
            .answers::<Health>(
                503,
                "The emulator had an internal failure. Entities that it broke answer with status \
                    500 until they are deleted or the namespace is reset.",
            );
    }
    let schema = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    d.route("GET /$emulator/v1/openapi.json", "describe")
        .summary("Returns this description.")
        .answers_with(200, "An OpenAPI document.", "application/json", schema);
    d.route("GET /$emulator/v1/hold", "hold")
        .summary("Keeps the emulator running while the response is open.")
        .done(200, "The emulator keeps running from now on.")
        .more(
            "An emulator that was started with `--exit-when-idle` ends when it has had no \
                connection for a while. This connection counts, and the emulator never closes it \
                for inactivity. The body is empty and ends when the emulator stops.",
        );
    let described = "The CA certificates in PEM: that of the user, which is constrained to \
        loopback, localhost and servicebus.windows.net, then that of this run, which issues \
        certificates for all other names.";
    let text = json!({ "type": "string" });
    d.route("GET /$emulator/v1/ca.pem", "caCertificate")
        .summary("Returns the CA certificates that TLS clients must trust.")
        .answers_with(200, described, "application/pem-certificate-chain", text)
        .refuses(
            404,
            "The emulator was started with a certificate: trust the issuer of that.",
        )
        .refuses(500, "TLS is not available; the message has the reason.");
}

fn namespaces(d: &mut Description) {
    d.group("namespaces", "Namespaces are created, listed and removed.");
    d.route("GET /$emulator/v1/namespaces", "listNamespaces")
        .summary("Lists the namespaces, oldest first.")
        .answers::<Vec<NamespaceInfo>>(200, "The namespaces, as in the ready line.");
    let topology = json!({ "anyOf": [
        { "$ref": "#/components/schemas/Topology" },
        { "$ref": "#/components/schemas/ShortTopology" },
    ] });
    d.route(
        "PUT /$emulator/v1/namespaces/{namespace}",
        "createNamespace",
    )
    .summary("Creates a namespace.")
    .more(
        "The body declares its contents; without a body it is empty. The body declares one \
            namespace, and the path names it. A connection belongs to the namespace at whose \
            address it arrived, else to the one whose host name the client requested, else to \
            the one whose key the client names first. A namespace that declares no keys gets one \
            with a unique name.",
    )
    .body(false, "application/json", topology.clone())
    .never(404)
    .answers::<NamespaceInfo>(201, "The namespace.")
    .refuses(403, "The maximum number is reached.")
    .refuses(
        409,
        "Another namespace has its name, its address or the name of one of its keys, or the \
            emulator cannot listen at the address.",
    );
    d.route("POST /$emulator/v1/namespaces", "beginTest")
        .summary("Creates a namespace for a test, with a unique name.")
        .more("The body declares its contents; without a body it has one queue, `queue.1`.")
        .body(false, "application/json", topology)
        .answers::<NamespaceInfo>(201, "The namespace.")
        .refuses(403, "The maximum number is reached.")
        .refuses(
            409,
            "Another namespace has its address or the name of one of its keys, or the emulator \
                cannot listen at the address.",
        );
    d.route(
        "DELETE /$emulator/v1/namespaces/{namespace}",
        "removeNamespace",
    )
    .summary("Removes a namespace with its entities and messages.")
    .done(
        204,
        "Removed; the emulator has closed its connections with a reason.",
    )
    .refuses(409, "It is the last namespace.");
    d.route("POST end", "endTest")
        .summary("Returns the report of a test, and removes its namespace.")
        .takes::<EndTest>()
        .answers::<TestReport>(200, "The report; the namespace was removed.")
        .refuses(409, "It is the last namespace.");
    let topology = json!({ "$ref": "#/components/schemas/Topology" });
    let described = "A configuration that declares the same entities.";
    d.route("GET topology", "exportTopology")
        .summary("Exports the current entities of a namespace as a configuration.")
        .answers_with(200, described, "application/json", topology);
    d.route("POST reset", "resetNamespace")
        .summary("Removes all messages, sessions and records, and restores the declared entities.")
        .done(204, "The namespace is reset.");
}

fn clocks(d: &mut Description) {
    d.group(
        "clock",
        "The clock of a namespace, and waiting until it is idle.",
    );
    for (root, of, whose) in [
        ("/$emulator/v1", "First", "the first namespace"),
        ("/$emulator/v1/namespaces/{namespace}", "", "a namespace"),
    ] {
        d.route(&format!("GET {root}/clock"), &format!("clock{of}"))
            .summary(&format!("Returns the clock of {whose}."))
            .answers::<Clock>(200, "The clock.");
        let described =
            "The clock, after everything that was due has happened and the namespace is idle.";
        let stopped = "The clock reached the maximum number of deadlines; the message has the \
            time at which it stopped.";
        d.route(
            &format!("POST {root}/clock/advance"),
            &format!("advanceClock{of}"),
        )
        .summary(&format!("Advances the clock of {whose}."))
        .takes::<Advance>()
        .answers::<Clock>(200, described)
        .refuses(408, stopped)
        .refuses(409, "Nothing is due, so there is no time to advance to.");
        for (verb, what) in [
            ("freeze", "Freezes the clock of"),
            ("resume", "Resumes the clock of"),
        ] {
            d.route(
                &format!("POST {root}/clock/{verb}"),
                &format!("{verb}Clock{of}"),
            )
            .summary(&format!("{what} {whose}."))
            .answers::<Clock>(200, "The clock.");
        }
        automatic_clock(d, &format!("{root}/clock"), of, whose);
    }
    d.route("GET due", "listDue")
        .summary("Lists what is due next.")
        .limit(100, "The maximum number of results; 100 by default.")
        .answers::<Due>(200, "What is due, the earliest first.");
    let busy = "The namespace did not become idle in time; the problems name what is busy.";
    d.route("POST settled", "waitIdle")
        .summary("Waits until nothing is due or in flight and no message is locked.")
        .takes::<Settle>()
        .answers::<Settled>(200, "The namespace is idle.")
        .refuses(408, busy);
}

fn automatic_clock(d: &mut Description, root: &str, of: &str, whose: &str) {
    let summary = format!(
        "Freezes the clock of {whose}, and advances it to the next deadline whenever the \
            namespace is idle."
    );
    d.route(&format!("POST {root}/auto"), &format!("automateClock{of}"))
        .summary(&summary)
    .more(
        "The clock advances when the namespace is idle, no connection has been active for 25 ms \
            and no hold exists; it waits for one second before it lets the lock of an attached \
            receiver expire. It does not advance for messages that only expire or entities that \
            are only deleted when idle. `freeze` and `resume` end this mode.",
    )
    .answers::<Clock>(200, "The clock.");
    d.route(&format!("POST {root}/hold"), &format!("holdClock{of}"))
        .summary(&format!(
            "Holds the automatic clock of {whose} until the hold is released."
        ))
        .takes::<HoldClock>()
        .refuses(409, "There are already 1,000 holds.")
        .answers::<ClockHold>(201, "The hold.");
    d.route(
        &format!("DELETE {root}/hold/{{id}}"),
        &format!("releaseClock{of}"),
    )
    .summary(&format!("Releases a hold of the clock of {whose}."))
    .named("id", "The number of the hold.")
    .refuses(404, "The hold or the namespace does not exist.")
    .done(204, "Ended.");
}

fn messages(d: &mut Description) {
    d.group("messages", "Messages, receivers and the record of events.");
    d.route("GET counts", "countMessages")
        .summary("Counts the messages of an entity.")
        .entity(ADDRESS)
        .answers::<Counts>(200, "The counts.");
    let described = "The receivers that have issued credit since they attached, and those that \
        wait for a session.";
    d.route("GET receivers", "listReceivers")
        .summary("Lists the receivers of an entity.")
        .entity(ADDRESS)
        .answers::<Receivers>(200, described);
    timeline(d);
    let of = "`{topic}/Subscriptions/{name}`.";
    d.route("POST explain", "explainRules")
        .summary(
            "Evaluates the rules of a subscription, or of all subscriptions of a topic, for a \
                message, without sending it.",
        )
        .more(
            "The body is an AMQP message; with `application/json` a message as `showMessage` \
                returns it, or a batch of one message as the REST API accepts it.",
        )
        .text("subscription", of)
        .text("topic", "A topic, instead of a subscription.")
        .body(true, "application/octet-stream", json!({}))
        .answers::<Explanation>(200, "The result of each rule.");
}

fn timeline(d: &mut Description) {
    let of_entity = format!("Returns only events of this entity. {ADDRESS}");
    d.route("GET timeline", "readTimeline")
        .summary("Returns the recorded events.")
        .text("entity", &of_entity)
        .text(
            "message_id",
            "Returns only events of the message with this id.",
        )
        .number(
            "sequence_number",
            1,
            "Returns only events of the message with this sequence number. Each entity and each \
                of its dead-letter queues has its own sequence numbers.",
        )
        .flag(
            "messages",
            "Whether to include the messages of the events; only an emulator that was started \
                with `--record-messages` keeps them.",
        )
        .flag(
            "lines",
            "Whether each event also has a line of text, as in the failures of assertions.",
        )
        .number(
            "after",
            0,
            "Returns only events after this position. The first event has position 1; events have \
                their positions if the request selects a range.",
        )
        .number("before", 0, "Returns only events before this position.")
        .limit(
            1000,
            "The maximum number of events; by default 1,000 if the request selects a range, else \
                all.",
        )
        .choice(
            "order",
            &["oldest", "newest"],
            "Whether to return the oldest events, the default, or the newest; the oldest of these \
                come first.",
        )
        .answers::<Timeline>(200, "The record.");
}

fn faults(d: &mut Description) {
    d.group("faults", "Scripted faults.");
    d.route("GET faults", "listFaults")
        .summary("Lists the faults.")
        .answers::<Faults>(200, "The scripted faults.");
    d.route("POST faults", "setFault")
        .summary("Scripts a fault.")
        .more("If two faults match an operation, the older one takes effect.")
        .takes::<FaultRequest>()
        .answers::<ScriptedFault>(201, "The fault with its id.")
        .refuses(409, "There are already 1,000 faults.");
    d.route("DELETE faults", "removeFaults")
        .summary("Removes all faults.")
        .done(204, "Removed.");
    let number = "The number of the fault.";
    d.route("GET faults/{id}", "showFault")
        .summary("Returns a fault.")
        .named("id", number)
        .answers::<ScriptedFault>(200, "The fault.");
    d.route("DELETE faults/{id}", "removeFault")
        .summary("Removes a fault.")
        .named("id", number)
        .done(204, "Removed.");
    d.route("GET problem", "findProblem")
        .summary("Returns the reason for which a passed test has to fail.")
        .more(
            "The reason is an internal failure of the emulator in this namespace, or a fault that \
                never fired and was scripted with its source text.",
        )
        .answers::<EndCheck>(200, "The failure message, if there is one.");
    d.route("POST service-update", "updateService")
        .summary("Simulates an update of the service.")
        .done(204, "Done.")
        .more(
            "All message and session locks are lost, and the emulator detaches all links but \
                those to `$cbs` with `amqp:link:detach-forced`.",
        );
}

fn operations(d: &mut Description) {
    d.group(
        "operations",
        "The operations of clients to which faults can apply.",
    );
    d.route("PUT operations", "recordOperations")
        .summary("Switches the operation log on or off.")
        .more("It is off by default; switching it discards its contents.")
        .takes::<RecordOperations>()
        .answers::<Operations>(200, "The log, without its operations.");
    d.route("GET operations", "listOperations")
        .summary("Lists the operations of clients since the log was switched on.")
        .more("The log keeps the last 16,384 of them.")
        .number("after", 0, "Returns only operations after this number.")
        .limit(1000, "The maximum number of results; 1,000 by default.")
        .answers::<Operations>(200, "The operations, the oldest first.");
}

fn postponed(d: &mut Description) {
    d.route("POST postponed/release", "releasePostponed")
        .summary("Releases the oldest postponed operation.")
        .answers::<Released>(
            200,
            "Whether an operation was released, and the number of those \
            that are still postponed.",
        );
}

fn sessions(d: &mut Description) {
    d.group("sessions", "Sessions and their receivers.");
    let of = "A queue or subscription with `RequiresSession`.";
    d.route("GET sessions", "listSessions")
        .summary("Lists the sessions of an entity.")
        .entity(of)
        .answers::<Sessions>(200, "The sessions.");
    d.route("POST sessions/lose", "loseSessionLock")
        .summary("Ends the lock of a session as if it had expired.")
        .takes::<LoseSessionLock>()
        .done(204, "Ended.")
        .refuses(404, "The session does not exist, or no client holds it.");
}

/// Adds the routes of one kind of entities: `T` is one of them, `All` their list.
fn entities<T: JsonSchema, All: JsonSchema>(d: &mut Description, kind: &str, title: &str) {
    let one = format!("{kind}s/{{{kind}}}");
    let path = match kind {
        "subscription" => "`{topic}/Subscriptions/{name}`".to_owned(),
        kind => format!("The path of the {kind}"),
    };
    let path = format!("{path}; a slash may be written as `%2F`.");
    d.route(&format!("GET {kind}s"), &format!("list{title}s"))
        .summary(&format!("Lists the {kind}s."))
        .answers::<All>(200, "The entities with their effective settings.");
    d.route(&format!("GET {one}"), &format!("show{title}"))
        .summary(&format!("Returns a {kind}."))
        .named(kind, &path)
        .refuses(400, NOT_ALLOWED)
        .answers::<T>(200, &format!("The {kind}."));
    let settings = json!({ "$ref": format!("#/components/schemas/{title}Properties") });
    let route = d
        .route(&format!("PUT {one}"), &format!("put{title}"))
        .summary(&format!("Creates or updates a {kind}."))
        .more("The body has the settings; an omitted one keeps its value, or gets its default.")
        .named(kind, &path)
        .body(false, "application/json", settings)
        .answers::<T>(200, "Updated.")
        .answers::<T>(201, "Created.")
        .refuses(403, "The maximum number is reached.");
    if kind != "subscription" {
        route.refuses(409, "An entity of another kind has this name.");
    }
    d.route(&format!("DELETE {one}"), &format!("delete{title}"))
        .summary(&format!(
            "Deletes a {kind} with its messages, and detaches its links."
        ))
        .named(kind, &path)
        .refuses(400, NOT_ALLOWED)
        .done(204, "Removed.");
}

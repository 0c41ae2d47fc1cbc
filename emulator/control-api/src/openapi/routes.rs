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

pub(crate) const ADDRESS: &str = "An address as clients write it: a queue, a topic, `topic/Subscriptions/name`, or one \
         of their dead-letter queues such as `orders/$DeadLetterQueue`.";

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
    d.group("process", "The emulator as a whole.");
    for (line, id) in [
        ("GET /health", "health"),
        ("GET /$emulator/v1/health", "controlHealth"),
    ] {
        d.route(line, id)
            .summary("Says whether everything serves.")
            .answers::<Health>(200, "It does.")
            .answers::<Health>(
                503,
                "Something failed inside, by a mistake of the emulator. Entities that are broken \
                 by it answer 500 until they are deleted or the namespace is reset.",
            );
    }
    let schema = json!({ "type": "object", "required": ["openapi", "info", "paths"] });
    d.route("GET /$emulator/v1/openapi.json", "describe")
        .summary("Answers with this description.")
        .answers_with(200, "An OpenAPI document.", "application/json", schema);
    d.route("GET /$emulator/v1/hold", "hold")
        .summary("Keeps the emulator for as long as the answer is read.")
        .done(200, "It is held from now on.")
        .more(
            "An emulator that was started with `--exit-when-idle` ends when it has no connection \
         for a while. This one counts, and is never closed for silence. The body is empty and \
         ends when the emulator stops.",
        );
    let described = "The certificates in PEM: of the user's authority, which is constrained to loopback, \
         localhost and servicebus.windows.net, then of that of this run, which vouches for all \
         other names.";
    let text = json!({ "type": "string" });
    d.route("GET /$emulator/v1/ca.pem", "caCertificate")
        .summary("Answers with the certificates that clients of TLS must trust.")
        .answers_with(200, described, "application/pem-certificate-chain", text)
        .refuses(
            404,
            "The emulator was given its certificate: trust its issuer.",
        )
        .refuses(500, "There is no TLS, for the reason that is told.");
}

fn namespaces(d: &mut Description) {
    d.group("namespaces", "Made, listed, removed.");
    d.route("GET /$emulator/v1/namespaces", "listNamespaces")
        .summary("Lists the namespaces, oldest first.")
        .answers::<Vec<NamespaceInfo>>(200, "Each as in the ready line.");
    let topology = json!({ "anyOf": [
        { "$ref": "#/components/schemas/Topology" },
        { "$ref": "#/components/schemas/ShortTopology" },
    ] });
    d.route(
        "PUT /$emulator/v1/namespaces/{namespace}",
        "createNamespace",
    )
    .summary("Makes a namespace.")
    .more(
        "The body is what it holds, nothing unless sent; it declares one namespace, whose name \
         is that of the path. A connection belongs to the namespace whose address it came to, \
         else whose host name it asked for, else whose key it names first. A namespace without \
         keys of its own gets one under a name that no other namespace has.",
    )
    .body(false, "application/json", topology.clone())
    .never(404)
    .answers::<NamespaceInfo>(201, "The namespace.")
    .refuses(403, "There are as many as there may be.")
    .refuses(
        409,
        "Its name, the name of a key or its address belongs to another namespace, or the \
         address cannot be listened at.",
    );
    d.route("POST /$emulator/v1/namespaces", "beginTest")
        .summary("Creates a namespace for a test, under a name that was never used before.")
        .more("The body declares its contents; without a body it has one queue, `queue.1`.")
        .body(false, "application/json", topology)
        .answers::<NamespaceInfo>(201, "The namespace.")
        .refuses(403, "There are as many as there may be.")
        .refuses(
            409,
            "The name of a key or its address belongs to another namespace, or the address \
             cannot be listened at.",
        );
    d.route(
        "DELETE /$emulator/v1/namespaces/{namespace}",
        "removeNamespace",
    )
    .summary("Removes a namespace with everything in it.")
    .done(204, "It is gone; its connections are closed with a reason.")
    .refuses(409, "It is the last one.");
    d.route("POST end", "endTest")
        .summary("Returns the report of a test, and removes its namespace.")
        .takes::<EndTest>()
        .answers::<TestReport>(200, "The report; the namespace was removed.")
        .refuses(409, "It is the last one.");
    let topology = json!({ "$ref": "#/components/schemas/Topology" });
    let described = "A configuration that declares the same.";
    d.route("GET topology", "exportTopology")
        .summary("Writes what a namespace holds now as it can be declared again.")
        .answers_with(200, described, "application/json", topology);
    d.route("POST reset", "resetNamespace")
        .summary("Removes all messages, sessions and records; entities are as they were declared.")
        .done(204, "It is empty.");
}

fn clocks(d: &mut Description) {
    d.group("clock", "Time, and waiting until a namespace is idle.");
    for (root, of, whose) in [
        ("/$emulator/v1", "First", "the first namespace"),
        ("/$emulator/v1/namespaces/{namespace}", "", "a namespace"),
    ] {
        d.route(&format!("GET {root}/clock"), &format!("clock{of}"))
            .summary(&format!("Reads the clock of {whose}."))
            .answers::<Clock>(200, "The clock.");
        let described =
            "The clock, after everything due on the way has happened and the namespace is idle.";
        let stopped = "It was stopped after as many deadlines as were allowed; the message says how far it \
         came.";
        d.route(
            &format!("POST {root}/clock/advance"),
            &format!("advanceClock{of}"),
        )
        .summary(&format!("Moves the time of {whose} forward."))
        .takes::<Advance>()
        .answers::<Clock>(200, described)
        .refuses(408, stopped)
        .refuses(409, "Nothing is due to which the clock could go.");
        for (verb, what) in [
            ("freeze", "Stops the time of"),
            ("resume", "Lets run on the time of"),
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
        .summary("Tells what time brings about next.")
        .limit(100, "How much at most; 100 unless set.")
        .answers::<Due>(200, "In order.");
    let busy = "It did not become idle in time; the problems are what is busy.";
    d.route("POST settled", "waitIdle")
        .summary("Waits until nothing is due or on its way and no message is locked.")
        .takes::<Settle>()
        .answers::<Settled>(200, "It is idle.")
        .refuses(408, busy);
}

fn automatic_clock(d: &mut Description, root: &str, of: &str, whose: &str) {
    let summary = format!(
        "Lets the clock of {whose} stand, and step to the next deadline when nothing moves."
    );
    d.route(&format!("POST {root}/auto"), &format!("automateClock{of}"))
        .summary(&summary)
    .more(
        "A step is taken when the namespace is idle, no connection has had a turn for 25 ms and \
         nothing holds the clock; it waits for a second where the lock of a receiver that is \
         attached would end. Messages that expire and entities that are deleted when idle are \
         no reason for a step. `freeze` and `resume` end it.",
    )
    .answers::<Clock>(200, "The clock.");
    d.route(&format!("POST {root}/hold"), &format!("holdClock{of}"))
        .summary(&format!(
            "Keeps an automatic clock of {whose} from stepping until it is released."
        ))
        .takes::<HoldClock>()
        .refuses(409, "There are 1,000 holds already.")
        .answers::<ClockHold>(201, "The hold.");
    d.route(
        &format!("DELETE {root}/hold/{{id}}"),
        &format!("releaseClock{of}"),
    )
    .summary(&format!("Ends a hold of the clock of {whose}."))
    .named("id", "The number of the hold.")
    .refuses(404, "There is no such hold, or no such namespace.")
    .done(204, "It is over.");
}

fn messages(d: &mut Description) {
    d.group("messages", "What is there and what happened.");
    d.route("GET counts", "countMessages")
        .summary("Counts the messages of an entity.")
        .entity(ADDRESS)
        .answers::<Counts>(200, "The counts.");
    let described = "Those that have asked for messages since they attached, and those that wait for a \
         session.";
    d.route("GET receivers", "listReceivers")
        .summary("Lists the receivers of an entity.")
        .entity(ADDRESS)
        .answers::<Receivers>(200, described);
    timeline(d);
    let of = "`{topic}/Subscriptions/{name}`.";
    d.route("POST explain", "explainRules")
        .summary(
            "Tells what each rule of a subscription, or of all subscriptions of a topic, says of a \
             message; nothing is sent.",
        )
        .more(
            "The body is a message as AMQP encodes it; with `application/json` one as `showMessage` \
             tells it, or a batch of one, as REST takes it.",
        )
    .text("subscription", of)
    .text("topic", "Instead of a subscription a topic.")
    .body(true, "application/octet-stream", json!({}))
    .answers::<Explanation>(200, "What the rules say.");
}

fn timeline(d: &mut Description) {
    let of_entity = format!("Of which entity; of all unless set. {ADDRESS}");
    d.route("GET timeline", "readTimeline")
        .summary("Tells what happened.")
        .text("entity", &of_entity)
        .text("message_id", "Of which message; of all unless set.")
        .number(
            "sequence_number",
            1,
            "Of the message with this number, and of nothing else; of all unless set. Each entity \
             and each of its dead-letter queues counts its own.",
        )
        .flag(
            "messages",
            "Whether the messages are told that the events are about; only an emulator that was \
             started with `--record-messages` keeps them.",
        )
        .flag(
            "lines",
            "Whether each event is told as a line of text, too, in the words of failed assertions.",
        )
        .number(
            "after",
            0,
            "Events behind this position. The first event ever has position 1; events tell theirs \
             where a part is asked for.",
        )
        .number("before", 0, "Events before this position.")
        .limit(
            1000,
            "How many events at most; 1,000 where a part is asked for, else all.",
        )
        .choice(
            "order",
            &["oldest", "newest"],
            "Which of them, the oldest unless set; they are told oldest first.",
        )
        .answers::<Timeline>(200, "The record.");
}

fn faults(d: &mut Description) {
    d.group("faults", "What goes wrong on purpose.");
    d.route("GET faults", "listFaults")
        .summary("Lists the faults.")
        .answers::<Faults>(200, "All that are set.");
    d.route("POST faults", "setFault")
        .summary("Scripts a fault.")
        .more("Of two that match the same operation the older takes effect.")
        .takes::<FaultRequest>()
        .answers::<ScriptedFault>(201, "The fault with its id.")
        .refuses(409, "There are 1,000 already.");
    d.route("DELETE faults", "removeFaults")
        .summary("Removes all faults.")
        .done(204, "There are none.");
    let number = "The number of the fault.";
    d.route("GET faults/{id}", "showFault")
        .summary("Shows a fault.")
        .named("id", number)
        .answers::<ScriptedFault>(200, "The fault.");
    d.route("DELETE faults/{id}", "removeFault")
        .summary("Removes a fault.")
        .named("id", number)
        .done(204, "It is gone.");
    d.route("GET problem", "findProblem")
        .summary("Tells what a test that has passed fails for nevertheless.")
        .more(
            "Something failed inside the emulator on behalf of this namespace, or faults have not \
             fired of which it was said how the test writes them.",
        )
        .answers::<EndCheck>(200, "The text to fail with, if there is one.");
    d.route("POST service-update", "updateService")
        .summary("Does what an update of the service does.")
        .done(204, "It is done.")
        .more(
            "All locks of messages and sessions are lost, and all links but those to `$cbs` are \
         detached with `amqp:link:detach-forced`.",
        );
}

fn operations(d: &mut Description) {
    d.group("operations", "What clients did, as faults see it.");
    d.route("PUT operations", "recordOperations")
        .summary("Switches the operation log on or off.")
        .more("It is off unless it was switched on; what it held is dropped.")
        .takes::<RecordOperations>()
        .answers::<Operations>(200, "The log, without its operations.");
    d.route("GET operations", "listOperations")
        .summary("Lists the operations of clients since the log was switched on.")
        .more("The log keeps the last 16,384 of them.")
        .number(
            "after",
            0,
            "Those that came after this number; all unless set.",
        )
        .limit(1000, "How many at most; 1,000 unless set.")
        .answers::<Operations>(200, "Oldest first.");
}

fn postponed(d: &mut Description) {
    d.route("POST postponed/release", "releasePostponed")
        .summary("Lets the oldest operation go on that a fault has postponed.")
        .answers::<Released>(200, "Whether there was one, and how many wait still.");
}

fn sessions(d: &mut Description) {
    d.group("sessions", "Which there are, and who holds them.");
    let of = "A queue or subscription with `RequiresSession`.";
    d.route("GET sessions", "listSessions")
        .summary("Lists the sessions of an entity.")
        .entity(of)
        .answers::<Sessions>(200, "The sessions.");
    d.route("POST sessions/lose", "loseSessionLock")
        .summary("Ends the lock of a session as if its time had run out.")
        .takes::<LoseSessionLock>()
        .done(204, "It is over.")
        .refuses(404, "There is none of this name, or no client holds it.");
}

/// Adds the routes of one kind of entities: `T` is one of them, `All` their list.
fn entities<T: JsonSchema, All: JsonSchema>(d: &mut Description, kind: &str, title: &str) {
    let one = format!("{kind}s/{{{kind}}}");
    let path = match kind {
        "subscription" => "`{topic}/Subscriptions/{name}`".to_owned(),
        kind => format!("The path of the {kind}"),
    };
    let path = format!("{path}; slashes stand as they are or as `%2F`.");
    d.route(&format!("GET {kind}s"), &format!("list{title}s"))
        .summary(&format!("Lists the {kind}s."))
        .answers::<All>(200, "Each with its effective settings.");
    d.route(&format!("GET {one}"), &format!("show{title}"))
        .summary(&format!("Shows a {kind}."))
        .named(kind, &path)
        .refuses(400, NOT_ALLOWED)
        .answers::<T>(200, &format!("The {kind}."));
    let settings = json!({ "$ref": format!("#/components/schemas/{title}Properties") });
    let route = d
        .route(&format!("PUT {one}"), &format!("put{title}"))
        .summary(&format!("Makes or changes a {kind}."))
        .more("The body is the settings; what is left out stays as it is, or has its default.")
        .named(kind, &path)
        .body(false, "application/json", settings)
        .answers::<T>(200, "It was there, and is changed.")
        .answers::<T>(201, "It is new.")
        .refuses(403, "There are as many as there may be.");
    if kind != "subscription" {
        route.refuses(409, "The name is that of another kind of entity.");
    }
    d.route(&format!("DELETE {one}"), &format!("delete{title}"))
        .summary(&format!(
            "Removes a {kind} with its messages; its links are detached."
        ))
        .named(kind, &path)
        .refuses(400, NOT_ALLOWED)
        .done(204, "It is gone.");
}

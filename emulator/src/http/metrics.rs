//! Metrics for Prometheus in its text format, from counters that exist anyway: messages cost nothing more.
//!
//! Metrics have the names of Azure Monitor in snake case. The first 1,000 entities have metrics of their own, and so has
//! every namespace.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::State;
use axum::http::Method;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::IntoResponse;
use servicebus_broker::{Counter, Counts, Entity, EntityId, SubQueue};
use tokio::task::yield_now;

use super::entities;
use crate::namespace::Namespace;
use crate::shared::Shared;

const TEXT: &str = "text/plain; version=0.0.4";
/// Entities that have metrics of their own.
const ENTITIES: usize = 1000;
/// Stores whose counters are copied while the record is locked.
const COPIED: usize = 256;
/// Entities that are visited before other tasks get their turn.
const AT_ONCE: usize = 64;

/// How often each kind of event happened.
type Tally = [u64; Counter::ALL.len()];

/// The values of an entity, or of a namespace as the sum of its entities.
#[derive(Default, Clone)]
struct Row {
    labels: String,
    counts: Counts,
    tally: Option<Box<Tally>>,
}

/// A metric: its name without the prefix, its description, and its value for an entity.
struct Metric {
    name: &'static str,
    help: &'static str,
    is_counter: bool,
    value: fn(&Row) -> u64,
}

const METRICS: [Metric; 16] = [
    gauge(
        "messages",
        "Messages in any state, dead letters included.",
        |row| {
            let Counts {
                active,
                dead_letter,
                transfer_dead_letter,
                scheduled,
                transfer,
                ..
            } = row.counts;
            (active + dead_letter + transfer_dead_letter + scheduled + transfer) as u64
        },
    ),
    gauge(
        "active_messages",
        "Messages that are neither scheduled nor dead-lettered.",
        |row| row.counts.active as u64,
    ),
    gauge("deadlettered_messages", "Dead letters.", |row| {
        row.counts.dead_letter as u64
    }),
    gauge(
        "scheduled_messages",
        "Messages that become active later.",
        |row| row.counts.scheduled as u64,
    ),
    gauge(
        "locked_messages",
        "Active messages that a receiver has locked.",
        |row| row.counts.locked as u64,
    ),
    gauge(
        "deferred_messages",
        "Active messages that are deferred.",
        |row| row.counts.deferred as u64,
    ),
    gauge(
        "transfer_messages",
        "Messages that wait to be forwarded.",
        |row| row.counts.transfer as u64,
    ),
    gauge(
        "transfer_deadlettered_messages",
        "Messages that could not be forwarded.",
        |row| row.counts.transfer_dead_letter as u64,
    ),
    gauge(
        "size_bytes",
        "Bytes of all messages; of a topic, with the copies of its subscriptions.",
        |row| row.counts.size,
    ),
    counter(
        "incoming_messages_total",
        "Messages that came in, or were scheduled.",
        |row| {
            let came = row.count(Counter::Enqueued) + row.count(Counter::Scheduled);
            came.saturating_sub(row.count(Counter::Activated))
        },
    ),
    counter(
        "outgoing_messages_total",
        "Deliveries of messages.",
        |row| row.count(Counter::Delivered) + row.count(Counter::ReceivedAndDeleted),
    ),
    counter(
        "complete_message_total",
        "Messages that were completed.",
        |row| row.count(Counter::Completed),
    ),
    counter(
        "abandon_message_total",
        "Deliveries that were abandoned.",
        |row| row.count(Counter::Abandoned),
    ),
    counter(
        "incoming_requests_total",
        "Requests of clients: sends, deliveries, settlements, renewals, and what was refused.",
        |row| row.done() + row.count(Counter::Refused),
    ),
    counter(
        "successful_requests_total",
        "Those of them that were not refused.",
        Row::done,
    ),
    counter(
        "user_errors_total",
        "Operations that were refused.",
        |row| row.count(Counter::Refused),
    ),
];

/// Refusals, which have no counts by entity.
const REFUSALS: [(&str, &str); 2] = [
    (
        "servicebus_throttled_requests_total",
        "Requests that were refused because the server was busy.",
    ),
    (
        "servicebus_server_errors_total",
        "Requests that were refused because the server failed.",
    ),
];

/// Events of client requests, each of which is one request. Dead letters include the broker's own.
const REQUESTS: [Counter; 19] = [
    Counter::Enqueued,
    Counter::Scheduled,
    Counter::SendEnlisted,
    Counter::DuplicateDropped,
    Counter::Cancelled,
    Counter::Delivered,
    Counter::ReceivedAndDeleted,
    Counter::Completed,
    Counter::Abandoned,
    Counter::Released,
    Counter::Deferred,
    Counter::DeadLettered,
    Counter::LockRenewed,
    Counter::SessionAccepted,
    Counter::SessionLockRenewed,
    Counter::SessionReleased,
    Counter::SessionStateSet,
    Counter::TransactionCommitted,
    Counter::TransactionRolledBack,
];

const fn gauge(name: &'static str, help: &'static str, value: fn(&Row) -> u64) -> Metric {
    Metric {
        name,
        help,
        is_counter: false,
        value,
    }
}

const fn counter(name: &'static str, help: &'static str, value: fn(&Row) -> u64) -> Metric {
    Metric {
        is_counter: true,
        ..gauge(name, help, value)
    }
}

/// Returns whether a request asks for metrics at the scrapers' path, and not for an entity of that name: administration
/// clients send a token and an `api-version`.
pub(crate) fn are_meant(request: &Parts) -> bool {
    let query = request.uri.query().unwrap_or_default();
    request.uri.path() == "/metrics"
        && [Method::GET, Method::HEAD].contains(&request.method)
        && !request.headers.contains_key(AUTHORIZATION)
        && !query.contains("api-version")
}

pub(crate) async fn show(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let (mut entities, mut namespaces, mut omitted) = (Vec::new(), Vec::new(), 0_u64);
    let (mut connections, mut refusals) = (Vec::new(), Vec::new());
    let namespaces_now = shared.namespaces.names().into_iter();
    for namespace in namespaces_now.filter_map(|name| shared.namespaces.named(&name)) {
        let sum = collect(&namespace, &mut entities, &mut omitted).await;
        connections.push((sum.labels.clone(), namespace.router.count() as u64));
        let counted = &namespace.refusals;
        refusals.push((sum.labels.clone(), [counted.throttled(), counted.failed()]));
        namespaces.push(sum);
    }
    let mut out = String::new();
    for metric in &METRICS {
        metric.write("servicebus", &entities, &mut out);
        metric.write("servicebus_namespace", &namespaces, &mut out);
        yield_now().await;
    }
    write_events("servicebus_events_total", &entities, &mut out);
    write_events("servicebus_namespace_events_total", &namespaces, &mut out);
    head(
        "servicebus_active_connections",
        "gauge",
        "AMQP connections.",
        &mut out,
    );
    for (labels, count) in connections {
        line("servicebus_active_connections", &labels, count, &mut out);
    }
    for (index, (name, help)) in REFUSALS.into_iter().enumerate() {
        head(name, "counter", help, &mut out);
        for (labels, counts) in &refusals {
            line(name, labels, counts[index], &mut out);
        }
    }
    let open = *shared.connections().borrow() as u64;
    let opened = shared.connections_opened();
    let mut process = vec![
        (
            "servicebus_connections_opened_total",
            "Connections of any protocol that were opened.",
            opened,
        ),
        (
            "servicebus_connections_closed_total",
            "Connections of any protocol that were closed.",
            opened.saturating_sub(open),
        ),
        (
            "servicebus_entities_omitted",
            "Entities beyond the first 1,000, which have no metrics of their own.",
            omitted,
        ),
    ];
    process.extend(shared.namespaces.traces.metrics());
    for (name, help, value) in process {
        let is_counter = name.ends_with("_total");
        let kind = if is_counter { "counter" } else { "gauge" };
        head(name, kind, help, &mut out);
        line(name, "", value, &mut out);
    }
    ([(CONTENT_TYPE, TEXT)], out)
}

/// Adds a row for each entity of a namespace; returns their sum.
async fn collect(namespace: &Namespace, rows: &mut Vec<Row>, omitted: &mut u64) -> Row {
    let mut tallies = tallies(namespace).await;
    let mut sum = Row {
        labels: format!("namespace=\"{}\"", namespace.name()),
        ..Row::default()
    };
    // The namespace's counts include deleted entities, and events of the namespace itself.
    let mut total = Box::new([0; Counter::ALL.len()]);
    tallies
        .values()
        .for_each(|tally| add(&mut total, tally.as_slice()));
    sum.tally = Some(total);
    for (index, entity) in namespace.entities().into_iter().enumerate() {
        let counts = |entity: &Entity| (entity.counts(SubQueue::Active), entity.whole_size());
        let (mut counts, whole_size) = namespace.read(&entity, counts);
        sum.add(&counts);
        // In the sum, what a topic's subscriptions hold counts once.
        counts.size = whole_size;
        match rows.len() < ENTITIES {
            true => rows.push(Row {
                labels: format!(
                    "namespace=\"{}\",entity=\"{}\",kind=\"{}\"",
                    namespace.name(),
                    entity.path,
                    entities::name(entity.kind)
                ),
                counts,
                tally: tallies.remove(&entity.id),
            }),
            false => *omitted += 1,
        }
        if index % AT_ONCE == AT_ONCE - 1 {
            yield_now().await;
        }
    }
    sum
}

/// Returns the counters of each entity over all its stores.
async fn tallies(namespace: &Namespace) -> BTreeMap<EntityId, Box<Tally>> {
    let mut all: BTreeMap<EntityId, Box<Tally>> = BTreeMap::new();
    let mut last = None;
    loop {
        let mut copied = 0;
        for (store, tally) in namespace.timeline().tallies(last, COPIED) {
            let own = all.entry(store.0);
            add(
                own.or_insert_with(|| Box::new([0; Counter::ALL.len()])),
                tally,
            );
            last = Some(*store);
            copied += 1;
        }
        if copied < COPIED {
            return all;
        }
        yield_now().await;
    }
}

fn add(sum: &mut Tally, tally: &[u64]) {
    let both = sum.iter_mut().zip(tally);
    both.for_each(|(sum, count)| *sum += count);
}

impl Row {
    fn count(&self, counter: Counter) -> u64 {
        let tally = self.tally.as_ref();
        tally.map_or(0, |tally| tally[counter as usize])
    }

    /// Returns the number of requests that were not refused. A scheduled message counts once, not again when it becomes
    /// active.
    fn done(&self) -> u64 {
        let done = REQUESTS.iter().map(|&request| self.count(request));
        done.sum::<u64>()
            .saturating_sub(self.count(Counter::Activated))
    }

    fn add(&mut self, counts: &Counts) {
        let sum = &mut self.counts;
        sum.active += counts.active;
        sum.dead_letter += counts.dead_letter;
        sum.transfer_dead_letter += counts.transfer_dead_letter;
        sum.scheduled += counts.scheduled;
        sum.transfer += counts.transfer;
        sum.locked += counts.locked;
        sum.deferred += counts.deferred;
        sum.size += counts.size;
    }
}

impl Metric {
    fn write(&self, prefix: &str, rows: &[Row], out: &mut String) {
        let name = format!("{prefix}_{}", self.name);
        let kind = if self.is_counter { "counter" } else { "gauge" };
        head(&name, kind, self.help, out);
        for row in rows {
            line(&name, &row.labels, (self.value)(row), out);
        }
    }
}

/// Writes the count of each kind of event that has happened.
fn write_events(name: &str, rows: &[Row], out: &mut String) {
    head(
        name,
        "counter",
        "What happened, by the names of the timeline.",
        out,
    );
    for row in rows {
        for &counter in Counter::ALL {
            match row.count(counter) {
                0 => {}
                count => {
                    let labels = format!("{},event=\"{}\"", row.labels, counter.name());
                    line(name, &labels, count, out);
                }
            }
        }
    }
}

fn head(name: &str, kind: &str, help: &str, out: &mut String) {
    // Writing to memory cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn line(name: &str, labels: &str, value: u64, out: &mut String) {
    let _ = match labels {
        "" => writeln!(out, "{name} {value}"),
        labels => writeln!(out, "{name}{{{labels}}} {value}"),
    };
}

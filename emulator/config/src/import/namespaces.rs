//! Converts the resources of a template to namespaces of a configuration.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use servicebus_broker::filter::{Parameters, SqlFilter};
use servicebus_broker::{
    Audience, EntityDescription, EntityKind, EntityPath, Property, PropertyValue, Tier, Timestamp,
    check_name,
};

use servicebus_arm_template::{Report, Resource, member, object, text};

use super::{properties, rule};
use crate::auth::{WELL_KNOWN_KEY, WELL_KNOWN_KEY_NAME};
use crate::config::words::{TIERS, word};
use crate::config::{
    NAMESPACE_NAMES, client_json, is_namespace_name, key_name, property_json, rule_json,
};
use crate::descriptions::{CLIENT_AFFINE_PROPERTIES, IS_CLIENT_AFFINE};

/// A namespace under construction.
#[derive(Debug, Default)]
struct Namespace {
    name: String,
    tier: Tier,
    keys: Vec<Value>,
    queues: Vec<Value>,
    topics: Vec<Topic>,
}

#[derive(Debug)]
struct Topic {
    name: String,
    document: Value,
    subscriptions: Vec<Subscription>,
}

#[derive(Debug)]
struct Subscription {
    name: String,
    document: Value,
    rules: Vec<Value>,
}

/// The properties that name a queue or topic.
const TARGETS: [&str; 2] = ["ForwardTo", "ForwardDeadLetteredMessagesTo"];

/// The kinds of resources that a configuration has, by depth, because a template may list them in any order: `dependsOn`
/// does not matter here.
const KINDS: [&str; 6] = [
    "namespaces",
    "namespaces/queues",
    "namespaces/topics",
    "namespaces/topics/subscriptions",
    "namespaces/topics/subscriptions/rules",
    "namespaces/authorizationrules",
];

/// Returns the `Namespaces` of a configuration.
pub(crate) fn of_resources(resources: &[Resource], report: &mut Report) -> Vec<Value> {
    let mut namespaces: Vec<Namespace> = Vec::new();
    for kind in KINDS {
        for resource in resources.iter().filter(|resource| resource.kind == kind) {
            add(&mut namespaces, resource, report);
        }
    }
    for resource in resources {
        note_left_out(resource, report);
    }
    for namespace in &mut namespaces {
        namespace.add_missing_targets(report);
    }
    let mut key_names = BTreeSet::new();
    let namespaces = namespaces.into_iter();
    namespaces
        .map(|namespace| namespace.document(&mut key_names, report))
        .collect()
}

/// Adds a note about a resource that a configuration cannot have.
fn note_left_out(resource: &Resource, report: &mut Report) {
    let (kind, name) = (&resource.kind, resource.names.join("/"));
    if KINDS.contains(&kind.as_str()) {
        return;
    }
    let why = match kind.as_str() {
        "namespaces/queues/authorizationrules" | "namespaces/topics/authorizationrules" => {
            "keys of a queue or topic are made over the administration API"
        }
        _ => "an emulator has nothing of the kind",
    };
    report.note(
        &resource.path,
        format!("Microsoft.ServiceBus/{kind} {name:?} is left out: {why}"),
    );
}

fn add(namespaces: &mut Vec<Namespace>, resource: &Resource, report: &mut Report) {
    let name = &resource.names[0];
    let known = namespaces
        .iter()
        .position(|own| own.name.eq_ignore_ascii_case(name));
    if resource.kind == "namespaces" {
        if known.is_none() {
            namespaces.push(Namespace::new(resource, report));
        }
        return;
    }
    let index = known.unwrap_or_else(|| {
        report.note(
            &resource.path,
            format!(
                "the namespace {name:?} is not in the template; it is one of the tier standard"
            ),
        );
        check_namespace(name, &resource.path, report);
        namespaces.push(Namespace {
            name: name.clone(),
            ..Namespace::default()
        });
        namespaces.len() - 1
    });
    let namespace = &mut namespaces[index];
    match resource.kind.as_str() {
        "namespaces/queues" => namespace.add_queue(resource, report),
        "namespaces/topics" => namespace.add_topic(resource, report),
        "namespaces/topics/subscriptions" => namespace.add_subscription(resource, report),
        "namespaces/topics/subscriptions/rules" => namespace.add_rule(resource, report),
        _ => namespace.add_key(resource, report),
    }
}

fn check_namespace(name: &str, path: &str, report: &mut Report) {
    if !is_namespace_name(name) {
        let message = format!("{name:?} is not a valid namespace name; allowed: {NAMESPACE_NAMES}");
        report.problem(format!("{path}.name"), message);
    }
}

impl Namespace {
    fn new(resource: &Resource, report: &mut Report) -> Self {
        let name = &resource.names[0];
        check_namespace(name, &resource.path, report);
        let sku = member(&resource.sku, "name").or_else(|| member(&resource.sku, "tier"));
        let sku = sku.map(text).unwrap_or_default();
        let tier = Tier::named(&sku);
        if tier.is_none() && !sku.is_empty() {
            let message = format!("{sku:?} is not allowed; allowed: Basic, Standard, Premium");
            report.problem(format!("{}.sku.name", resource.path), message);
        }
        Self {
            name: name.clone(),
            tier: tier.unwrap_or_default(),
            ..Self::default()
        }
    }

    fn add_queue(&mut self, resource: &Resource, report: &mut Report) {
        if let Some(document) = entity(EntityKind::Queue, resource, self.tier, report) {
            self.queues.push(document);
        }
    }

    fn add_topic(&mut self, resource: &Resource, report: &mut Report) {
        if let Some(document) = entity(EntityKind::Topic, resource, self.tier, report) {
            self.topics.push(Topic {
                name: path_of(&resource.names[1]),
                document,
                subscriptions: Vec::new(),
            });
        }
    }

    /// Returns the topic of a subscription or rule. One that the template does not deploy exists already.
    fn topic(&mut self, resource: &Resource, report: &mut Report) -> Option<&mut Topic> {
        let name = path_of(&resource.names[1]);
        let is_named = |topic: &Topic| topic.name.eq_ignore_ascii_case(&name);
        if !self.topics.iter().any(is_named) {
            let topic = with_defaults(&resource.names[..2], "topic", &resource.path, report);
            self.add_topic(&topic, report);
        }
        self.topics.iter_mut().find(|topic| is_named(topic))
    }

    fn add_subscription(&mut self, resource: &Resource, report: &mut Report) {
        let tier = self.tier;
        let Some(topic) = self.topic(resource, report) else {
            return;
        };
        if let Some(document) = entity(EntityKind::Subscription, resource, tier, report) {
            topic.subscriptions.push(Subscription {
                name: resource.names[2].clone(),
                document,
                rules: Vec::new(),
            });
        }
    }

    fn add_rule(&mut self, resource: &Resource, report: &mut Report) {
        let Some(topic) = self.topic(resource, report) else {
            return;
        };
        let (name, rule_name) = (&resource.names[2], &resource.names[3]);
        let mut subscriptions = topic.subscriptions.iter_mut();
        let Some(subscription) = subscriptions.find(|own| own.name.eq_ignore_ascii_case(name))
        else {
            let message = format!("the subscription {name:?} is not in the template");
            return report.problem(&resource.path, message);
        };
        // The filter of a JMS client's subscription is a selector, in whichever of the two languages it is written.
        let is_client_affine = subscription.document["Properties"][IS_CLIENT_AFFINE] == true;
        let sql = |text: &str| SqlFilter::parse(text, Parameters::new());
        let parse = |text: &str| match is_client_affine {
            true => SqlFilter::selector(text).or_else(|_| sql(text)),
            false => sql(text),
        };
        let properties = &resource.properties;
        if !properties.is_object() && !properties.is_null() {
            let message = format!("{properties} is not allowed; allowed: a JSON object");
            return report.problem(format!("{}.properties", resource.path), message);
        }
        note_unknown(rule::unknown(properties), resource, report);
        match rule::read(rule_name, properties, parse, Timestamp::from_millis(0)) {
            Ok(rule) => subscription.rules.push(object([
                ("Name", rule_name.as_str().into()),
                ("Properties", rule_json(&rule)),
            ])),
            Err((key, message)) => {
                report.problem(format!("{}.properties.{key}", resource.path), message)
            }
        }
    }

    /// Declares the queues to which entities forward, and which the template does not deploy: they exist already.
    fn add_missing_targets(&mut self, report: &mut Report) {
        let topics = self.topics.iter();
        let subscriptions = topics.clone().flat_map(|topic| &topic.subscriptions);
        let queues = self
            .queues
            .iter()
            .chain(topics.map(|topic| &topic.document));
        let mut names: Vec<String> = queues
            .clone()
            .map(|own| text(&own["Name"]).to_lowercase())
            .collect();
        let mut missing = Vec::new();
        for entity in queues.chain(subscriptions.map(|own| &own.document)) {
            for property in TARGETS {
                let Some(target) = entity["Properties"][property].as_str() else {
                    continue;
                };
                if !names.contains(&target.to_lowercase()) {
                    names.push(target.to_lowercase());
                    let kind = format!("{property} of {},", entity["Name"]);
                    missing.push((kind, [self.name.clone(), target.to_owned()]));
                }
            }
        }
        for (kind, names) in missing {
            let queue = with_defaults(&names, &kind, "resources", report);
            self.add_queue(&queue, report);
        }
    }

    fn add_key(&mut self, resource: &Resource, report: &mut Report) {
        let name = &resource.names[1];
        let rights = member(&resource.properties, "rights").and_then(Value::as_array);
        let rights: Vec<String> = rights.into_iter().flatten().map(text).collect();
        let is_held = |claim: &&str| rights.iter().any(|right| right.eq_ignore_ascii_case(claim));
        let claims: Vec<&str> = ["Send", "Listen", "Manage"]
            .iter()
            .filter(|claim| is_held(claim))
            .copied()
            .collect();
        if claims.is_empty() {
            let message = "no right is named; allowed: Send, Listen, Manage";
            return report.problem(format!("{}.properties.rights", resource.path), message);
        }
        if name != WELL_KNOWN_KEY_NAME {
            let message = format!("a template has no keys: that of {name:?} is {WELL_KNOWN_KEY}");
            report.note(&resource.path, message);
        }
        self.keys.push(object([
            ("Name", name.as_str().into()),
            ("Key", WELL_KNOWN_KEY.into()),
            ("Claims", claims.into()),
        ]));
    }

    /// `key_names` are those of the namespaces before it.
    fn document(self, key_names: &mut BTreeSet<String>, report: &mut Report) -> Value {
        let topics = self.topics.into_iter().map(|topic| {
            let subscriptions = topic.subscriptions.into_iter().map(|subscription| {
                let mut document = subscription.document;
                if !subscription.rules.is_empty() {
                    document["Rules"] = subscription.rules.into();
                }
                document
            });
            let mut document = topic.document;
            document["Subscriptions"] = subscriptions.collect();
            document
        });
        let topics: Vec<Value> = topics.collect();
        let mut emulator = Map::new();
        emulator.insert("Tier".to_owned(), word(&TIERS, &self.tier).into());
        let is_usual = |key: &Value| key["Name"] == WELL_KNOWN_KEY_NAME;
        if !self.keys.iter().all(is_usual) {
            let mut keys = self.keys;
            if !keys.iter().any(is_usual) {
                keys.insert(
                    0,
                    object([
                        ("Name", WELL_KNOWN_KEY_NAME.into()),
                        ("Key", WELL_KNOWN_KEY.into()),
                        ("Claims", ["Send", "Listen", "Manage"].as_slice().into()),
                    ]),
                );
            }
            for key in &mut keys {
                rename_if_taken(key, &self.name, key_names, report);
            }
            emulator.insert("Keys".to_owned(), keys.into());
        }
        object([
            ("Name", self.name.into()),
            ("Queues", self.queues.into()),
            ("Topics", topics.into()),
            ("Emulator", emulator.into()),
        ])
    }
}

/// Returns a queue, topic or subscription for a configuration, without default values.
fn entity(kind: EntityKind, resource: &Resource, tier: Tier, report: &mut Report) -> Option<Value> {
    let name = resource.names.last()?;
    let name = &match kind {
        EntityKind::Queue | EntityKind::Topic => path_of(name),
        EntityKind::Subscription => name.clone(),
    };
    report_illegal_name(kind, name, resource, report);
    let at = |key: &str| format!("{}.properties.{key}", resource.path);
    let empty = Map::new();
    let written = resource.properties.as_object().unwrap_or(&empty);
    let usual = EntityDescription::of_tier(tier);
    let read = properties::read(kind, written, usual.clone(), tier);
    for (key, message) in read.wrong {
        report.problem(at(&key), message);
    }
    note_unknown(read.unknown, resource, report);
    for key in read.unsupported {
        report.note(at(&key), "the emulator does not support it: it is left out");
    }
    if let Some(problem) = kind.problem(name, tier) {
        report.problem(
            &resource.path,
            format!(
                "{} is not allowed; allowed: {}",
                problem.value, problem.allowed
            ),
        );
    }
    let mut changed = Map::new();
    if let Some(client) = &read.description.client {
        changed.insert(IS_CLIENT_AFFINE.to_owned(), true.into());
        changed.insert(CLIENT_AFFINE_PROPERTIES.to_owned(), client_json(client));
    }
    for property in Property::all_of(kind) {
        let value = property.get(&read.description);
        let is_written = |value: &PropertyValue| {
            property.name != IS_CLIENT_AFFINE && property.get(&usual).as_ref() != Some(value)
        };
        let Some(value) = value.filter(is_written) else {
            continue;
        };
        match property.audience {
            Audience::Everyone => {
                let value = match TARGETS.contains(&property.name) {
                    true => path_of(&text(&property_json(value))).into(),
                    false => property_json(value),
                };
                changed.insert(property.name.to_owned(), value);
            }
            Audience::Administration | Audience::Unsupported => {
                report.note(
                    at(&properties::name(property)),
                    "a configuration does not have it, and messages do not feel it: it is left out",
                );
            }
        }
    }
    Some(match changed.is_empty() {
        true => object([("Name", name.as_str().into())]),
        false => object([
            ("Name", name.as_str().into()),
            ("Properties", changed.into()),
        ]),
    })
}

/// Returns the path of a queue or topic by its name in Resource Manager, which has `~` for `/`.
fn path_of(name: &str) -> String {
    name.replace('~', "/")
}

/// Renames a key if an earlier namespace has one of its name, because a key name may choose the namespace of a connection.
fn rename_if_taken(
    key: &mut Value,
    namespace: &str,
    key_names: &mut BTreeSet<String>,
    report: &mut Report,
) {
    let wanted = text(&key["Name"]);
    let name = key_name(&wanted, namespace, |name| key_names.contains(name));
    if name != wanted {
        let message = format!(
            "the key {wanted:?} of the namespace {namespace:?} is named {name:?}: key names are unique among namespaces"
        );
        report.note("resources", message);
        key["Name"] = name.as_str().into();
    }
    key_names.insert(name);
}

fn note_unknown(keys: Vec<String>, resource: &Resource, report: &mut Report) {
    for key in keys {
        report.note(
            format!("{}.properties.{key}", resource.path),
            "it is not a property that is known here, and is left out",
        );
    }
}

/// Validates names as the administration API does.
fn report_illegal_name(kind: EntityKind, name: &str, resource: &Resource, report: &mut Report) {
    let legal = match kind {
        EntityKind::Subscription => check_name(name).map_err(|error| error.to_string()),
        EntityKind::Queue | EntityKind::Topic => name
            .parse::<EntityPath>()
            .map(drop)
            .map_err(|error| error.to_string()),
    };
    if let Err(error) = legal {
        report.problem(
            format!("{}.name", resource.path),
            format!("{name:?} is not a valid name: {error}"),
        );
    }
}

/// Returns a resource without properties, which one at this path needs.
fn with_defaults(names: &[String], kind: &str, path: &str, report: &mut Report) -> Resource {
    let name = path_of(&names[1]);
    let message =
        format!("the {kind} {name:?} is not in the template; it is declared with default values");
    report.note(path, message);
    Resource {
        path: path.to_owned(),
        kind: String::new(),
        names: names.to_vec(),
        properties: Value::Null,
        sku: Value::Null,
    }
}

//! Collects the Service Bus resources that a template deploys: listed ones, nested ones and those of nested deployments,
//! each as often as it is copied.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::functions::{flag, text};
use crate::scope::{Given, Scope, declares};
use crate::{Report, member};

/// The provider whose resources are evaluated, in lower case.
const PROVIDER: &str = "microsoft.servicebus/";
const DEPLOYMENT: &str = "microsoft.resources/deployments";
/// The types of the provider that are not needed if they cannot be evaluated, because a configuration has nothing of the kind.
const OPTIONAL: [&str; 4] = [
    "networkrulesets",
    "privateendpointconnections",
    "disasterrecoveryconfigs",
    "migrationconfigurations",
];
/// The maximum number of Service Bus resources.
const MAX_RESOURCES: usize = 10_000;
/// The maximum nesting depth of deployments and resources.
const MAX_NESTING: usize = 16;

/// A resource whose expressions have been evaluated.
#[derive(Debug)]
pub struct Resource {
    /// Its path in the template.
    pub path: String,
    /// Its type in lower case, without the provider: `namespaces/queues`.
    pub kind: String,
    /// Its names, one for each part of the type.
    pub names: Vec<String>,
    /// Its `properties`, or null.
    pub properties: Value,
    /// Its `sku`, or null.
    pub sku: Value,
}

/// The parent of a nested resource.
#[derive(Debug, Clone, Default)]
struct Parent {
    kind: String,
    name: String,
    nesting: usize,
}

/// Collects the resources of a template with these parameter values.
pub(crate) fn of_template(
    template: &Value,
    parameters: &BTreeMap<String, String>,
    report: &mut Report,
) -> Vec<Resource> {
    let given = typed(template, parameters, report);
    let scope = Scope::new(template, given, 0);
    let mut found = Vec::new();
    Walk {
        report,
        found: &mut found,
    }
    .all(&scope, template, "", &Parent::default());
    found
}

/// Converts values to the types that the template declares.
fn typed(
    template: &Value,
    parameters: &BTreeMap<String, String>,
    report: &mut Report,
) -> BTreeMap<String, Given> {
    let mut given = BTreeMap::new();
    for (name, value) in parameters {
        let declared = member(template, "parameters").and_then(|all| member(all, name));
        let Some(declared) = declared else {
            report.problem("parameters", format!("there is no parameter {name:?}"));
            continue;
        };
        let kind = declares(template, declared, "type").and_then(Value::as_str);
        let kind = kind.unwrap_or_default();
        let typed = match kind.to_ascii_lowercase().as_str() {
            "string" | "securestring" => Some(value.as_str().into()),
            "bool" => flag(&value.as_str().into()).map(Value::from),
            _ => serde_json::from_str(value).ok(),
        };
        match typed {
            Some(typed) => {
                let given_value = Given {
                    value: Ok(typed),
                    stood_in: BTreeSet::new(),
                };
                given.insert(name.clone(), given_value);
            }
            None => report.problem(
                format!("parameters.{name}"),
                format!("{value:?} is not a value of its type {kind}"),
            ),
        }
    }
    given
}

struct Walk<'r> {
    report: &'r mut Report,
    found: &'r mut Vec<Resource>,
}

impl Walk<'_> {
    /// Collects the resources of a template or of a parent resource.
    fn all(&mut self, scope: &Scope<'_>, container: &Value, at: &str, parent: &Parent) {
        let at = match at {
            "" => "resources".to_owned(),
            at => format!("{at}.resources"),
        };
        match member(container, "resources") {
            // By symbolic names, as newer versions of Bicep write them.
            Some(Value::Object(members)) => {
                for (name, resource) in members {
                    self.copied(scope, resource, &format!("{at}.{name}"), parent);
                }
            }
            Some(Value::Array(elements)) => {
                for (index, resource) in elements.iter().enumerate() {
                    self.copied(scope, resource, &format!("{at}[{index}]"), parent);
                }
            }
            Some(_) | None => {}
        }
    }

    fn copied(&mut self, scope: &Scope<'_>, resource: &Value, at: &str, parent: &Parent) {
        let written = member(resource, "type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = written.to_ascii_lowercase();
        let kind = match (kind.contains('.'), parent.kind.as_str()) {
            (false, above) if !above.is_empty() => format!("{above}/{kind}"),
            _ => kind,
        };
        if !kind.starts_with(PROVIDER) && kind != DEPLOYMENT {
            self.report.note(
                at,
                format!("{written} is not a resource of Service Bus and is left out"),
            );
            return;
        }
        if member(resource, "existing").and_then(flag) == Some(true) {
            return;
        }
        let Some(copy) = member(resource, "copy") else {
            return self.conditional(
                scope,
                resource,
                at,
                &Parent {
                    kind,
                    ..parent.clone()
                },
            );
        };
        let name = member(copy, "name").map(text).unwrap_or_default();
        let count = match scope.count(copy, 0) {
            Ok(count) => count,
            Err(problem) => return self.refuse(&kind, format!("{at}.copy.count"), problem),
        };
        for index in 0..count {
            scope.copies.borrow_mut().push((name.clone(), index));
            let own = Parent {
                kind: kind.clone(),
                ..parent.clone()
            };
            self.conditional(scope, resource, at, &own);
            scope.copies.borrow_mut().pop();
        }
    }

    /// `own` has the resource's type, and what it inherits.
    fn conditional(&mut self, scope: &Scope<'_>, resource: &Value, at: &str, own: &Parent) {
        let condition = match member(resource, "condition") {
            None => Ok(true),
            Some(condition) => scope.evaluate(condition).and_then(|condition| {
                let message = format!("{condition} is not allowed; allowed: true or false");
                flag(&condition).ok_or(message)
            }),
        };
        let is_deployed = match condition {
            Ok(is_deployed) => is_deployed,
            Err(problem) => return self.refuse(&own.kind, format!("{at}.condition"), problem),
        };
        if !is_deployed {
            return;
        }
        if own.nesting >= MAX_NESTING || self.found.len() >= MAX_RESOURCES {
            let limits = format!("{MAX_RESOURCES} resources, and {MAX_NESTING} within one another");
            return self
                .report
                .problem(at, format!("a template may have at most {limits}"));
        }
        match own.kind.as_str() {
            DEPLOYMENT => self.deployment(scope, resource, at, own),
            _ => self.resource(scope, resource, at, own),
        }
    }

    fn resource(&mut self, scope: &Scope<'_>, resource: &Value, at: &str, own: &Parent) {
        scope.stood_in.borrow_mut().clear();
        let mut part = |name: &str| {
            let written = member(resource, name).unwrap_or(&Value::Null);
            let evaluated = scope.evaluate(written);
            evaluated.map_err(|problem| self.refuse(&own.kind, format!("{at}.{name}"), problem))
        };
        let (Ok(name), Ok(sku), Ok(properties)) = (part("name"), part("sku"), part("properties"))
        else {
            return;
        };
        let Value::String(name) = name else {
            let message = format!("{name} is not a name; allowed: a string");
            return self.report.problem(format!("{at}.name"), message);
        };
        let name = match own.name.as_str() {
            "" => name,
            above => format!("{above}/{name}"),
        };
        let names: Vec<String> = name.split('/').map(str::to_owned).collect();
        let kind = own.kind[PROVIDER.len()..].to_owned();
        if names.len() != kind.split('/').count() || names.iter().any(String::is_empty) {
            let message = format!(
                "{name:?} is not a name of a resource of the type {kind}: each part of the type has one"
            );
            return self.report.problem(format!("{at}.name"), message);
        }
        let stood_in: Vec<String> = scope.stood_in.borrow().iter().cloned().collect();
        if !stood_in.is_empty() {
            let message = format!(
                "{} is evaluated when a template is deployed; something that is always the same stands in for it",
                stood_in.join(" and ")
            );
            self.report.note(format!("{at}.name"), message);
        }
        self.found.push(Resource {
            path: at.to_owned(),
            kind,
            names,
            properties,
            sku,
        });
        let below = Parent {
            name,
            nesting: own.nesting + 1,
            kind: own.kind.clone(),
        };
        self.all(scope, resource, at, &below);
    }

    /// Reports an expression of a resource that cannot be evaluated.
    fn refuse(&mut self, kind: &str, at: String, problem: String) {
        let own = kind.rsplit('/').next().unwrap_or_default();
        match OPTIONAL.contains(&own) {
            true => self
                .report
                .note(at, format!("{kind} is left out: {problem}")),
            false => self.report.problem(at, problem),
        }
    }

    /// A nested deployment has its own parameters only with inner scope.
    fn deployment(&mut self, scope: &Scope<'_>, resource: &Value, at: &str, own: &Parent) {
        let properties = member(resource, "properties").unwrap_or(&Value::Null);
        let Some(template) = member(properties, "template") else {
            let message = "a deployment whose template is elsewhere is left out";
            return self.report.note(at, message);
        };
        let at = format!("{at}.properties.template");
        let below = Parent {
            nesting: own.nesting + 1,
            ..Parent::default()
        };
        let options = member(properties, "expressionEvaluationOptions");
        let inner = options
            .and_then(|options| member(options, "scope"))
            .map(text);
        if !inner.is_some_and(|scope| scope.eq_ignore_ascii_case("inner")) {
            return self.all(scope, template, &at, &below);
        }
        let given = member(properties, "parameters").and_then(Value::as_object);
        let mut values = BTreeMap::new();
        for (name, given) in given.into_iter().flatten() {
            scope.stood_in.borrow_mut().clear();
            let value =
                member(given, "value").ok_or_else(|| "only a deployment could read it".to_owned());
            let value = value.and_then(|value| scope.evaluate(value));
            let stood_in = scope.stood_in.take();
            values.insert(name.clone(), Given { value, stood_in });
        }
        let own = Scope::new(template, values, scope.steps.get());
        self.all(&own, template, &at, &below);
        scope.steps.set(own.steps.get());
    }
}

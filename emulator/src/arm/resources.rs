//! The table of resources: dispatches paths and methods.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use super::call::{Call, NAMESPACE};
use super::entities::{method_not_allowed, not_found};
use super::namespaces::PUBLIC_ACCESS;
use super::{Answer, Refusal};

/// The id of the only subscription.
const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
const GROUP: &str = "emulator";
pub(crate) const LOCATION: &str = "westeurope";
/// The kinds of resources that are served.
const KINDS: [&str; 8] = [
    "namespaces",
    "namespaces/authorizationRules",
    "namespaces/networkRuleSets",
    "namespaces/queues",
    "namespaces/queues/authorizationRules",
    "namespaces/topics",
    "namespaces/topics/subscriptions",
    "namespaces/topics/subscriptions/rules",
];
/// The listed versions; any full date is accepted.
const VERSIONS: [&str; 4] = [
    "2024-01-01",
    "2022-10-01-preview",
    "2021-11-01",
    "2017-04-01",
];

impl Call<'_> {
    pub(crate) async fn answer(&self) -> Result<Answer, Refusal> {
        let lower: Vec<&str> = self.lower.iter().map(String::as_str).collect();
        let locks = ["providers", "microsoft.authorization", "locks"];
        if let Some(at) = lower.windows(3).rposition(|parts| parts == locks) {
            return self.locks(at).await;
        }
        match &lower[..] {
            [
                "subscriptions",
                _,
                "resourcegroups",
                _,
                "providers",
                "microsoft.servicebus",
                "namespaces",
                rest @ ..,
            ] => match rest {
                [] if self.head.method == Method::GET => self.list_namespaces(),
                [] => Err(method_not_allowed(self.head.method.as_str(), "GET")),
                [_] => self.one_namespace().await,
                [_, below @ ..] => self.below(below).await,
            },
            ["subscriptions", _, "providers", rest @ ..] => self.of_provider(rest),
            other => self.of_subscription(other),
        }
    }

    /// Answers requests to the provider of a subscription: lists and checks without a group.
    fn of_provider(&self, rest: &[&str]) -> Result<Answer, Refusal> {
        match (self.head.method.as_str(), rest) {
            ("GET", []) => Ok(list(vec![provider()])),
            ("GET", ["microsoft.servicebus"]) => Ok(Answer::ok(provider())),
            ("GET", ["microsoft.servicebus", "namespaces"]) => self.list_namespaces(),
            ("POST", ["microsoft.servicebus", "checknameavailability"]) => self.check_name(),
            _ => Err(self.unsupported()),
        }
    }

    /// Answers requests for tenants, subscriptions and groups: there is one of each, and any other is accepted.
    fn of_subscription(&self, parts: &[&str]) -> Result<Answer, Refusal> {
        let tenant =
            || json!({ "id": format!("/tenants/{SUBSCRIPTION}"), "tenantId": SUBSCRIPTION });
        match (self.head.method.as_str(), parts) {
            ("GET", ["providers", "microsoft.servicebus", "operations"]) => Ok(list(operations())),
            ("GET", ["tenants"]) => Ok(list(vec![tenant()])),
            ("GET", ["subscriptions"]) => Ok(list(vec![subscription(SUBSCRIPTION)])),
            ("GET", ["subscriptions", _]) => Ok(Answer::ok(subscription(&self.path[1]))),
            ("GET", ["subscriptions", own, "resourcegroups"]) => Ok(list(vec![group(own, GROUP)])),
            ("GET", ["subscriptions", own, "resourcegroups", _]) => {
                Ok(Answer::ok(group(own, &self.path[3])))
            }
            ("HEAD", ["subscriptions", _, "resourcegroups", _]) => {
                Ok(Answer::empty(StatusCode::NO_CONTENT))
            }
            _ => Err(self.unsupported()),
        }
    }

    /// Answers requests below a namespace.
    async fn below(&self, below: &[&str]) -> Result<Answer, Refusal> {
        let (method, namespace) = (self.head.method.as_str(), self.namespace()?);
        let answer = match (method, below) {
            ("GET", ["queues" | "topics"] | ["topics", _, "subscriptions"]) => {
                self.list_entities(&namespace)
            }
            (_, ["queues" | "topics", _] | ["topics", _, "subscriptions", _]) => {
                self.entity(&namespace)
            }
            (_, ["topics", _, "subscriptions", _, "rules", ..]) if below.len() <= 6 => {
                self.rules(&namespace)
            }
            (_, ["authorizationrules", rest @ ..]) => self.authorization(&namespace, None, rest),
            (_, ["queues" | "topics", _, "authorizationrules", rest @ ..]) => {
                let entity = self.existing(&namespace, NAMESPACE + 3)?;
                self.authorization(&namespace, Some(&entity), rest)
            }
            ("GET", ["networkrulesets"]) => Ok(list(vec![self.network_rules()])),
            ("GET", ["networkrulesets", "default"]) => Ok(Answer::ok(self.network_rules())),
            (
                "GET",
                [
                    "disasterrecoveryconfigs"
                    | "privatelinkresources"
                    | "privateendpointconnections"
                    | "migrationconfigurations",
                ],
            ) => Ok(list(Vec::new())),
            _ => Err(self.unsupported()),
        }?;
        if method != "GET" {
            namespace.changes_written().await;
        }
        Ok(answer)
    }

    /// Returns the error for a path that is not supported.
    fn unsupported(&self) -> Refusal {
        let (method, path) = (&self.head.method, self.head.uri.path());
        let has = |part: &str| self.lower.iter().any(|own| own == part);
        let (status, code, why) = if has("deployments") || has("exporttemplate") {
            let why = "make a configuration of a template with `servicebus-emulator import`";
            (StatusCode::NOT_FOUND, "NotSupported", why)
        } else if has("microsoft.insights") {
            let why = "counts of messages are in countDetails of each entity";
            (StatusCode::NOT_FOUND, "NotSupported", why)
        } else if has("providers") && !has("microsoft.servicebus") {
            let why = "of all providers the emulator has Microsoft.ServiceBus alone";
            (StatusCode::NOT_FOUND, "InvalidResourceNamespace", why)
        } else if has("networkrulesets") {
            let why = "its network rules allow every address, and cannot be changed";
            (StatusCode::NOT_FOUND, "NotSupported", why)
        } else if has("microsoft.servicebus") {
            let why = "an emulator has no aliases, migrations, failovers, private endpoints, encryption, replicas, regions, event hubs or network rules but the default ones";
            (StatusCode::NOT_FOUND, "NotSupported", why)
        } else {
            let why = "paths begin with /subscriptions/{id}/resourceGroups/{name}/providers/Microsoft.ServiceBus/namespaces";
            (StatusCode::NOT_FOUND, "InvalidResourceType", why)
        };
        Refusal::new(
            status,
            code,
            format!("The emulator does not serve {method} {path}: {why}."),
        )
    }

    /// Answers requests for management locks of a scope, which the parts before `at` name.
    async fn locks(&self, at: usize) -> Result<Answer, Refusal> {
        let (scope, state) = (self.id_of(at), &self.shared.resources);
        let method = self.head.method.as_str();
        match (method, &self.path[at + 3..]) {
            ("GET", []) => Ok(list(state.locks(&scope))),
            ("GET", [name]) => {
                let missing = || {
                    let text = format!("The lock '{name}' could not be found.");
                    Refusal::new(StatusCode::NOT_FOUND, "LockNotFound", text)
                };
                state.lock(&scope, name).map(Answer::ok).ok_or_else(missing)
            }
            ("PUT", [name]) => {
                Box::pin(self.check_scope_exists(at)).await?;
                let shown = state.put_lock(&scope, name, &self.body)?;
                if self.shared.tie_locks(&scope) {
                    return Ok(Answer::ok(shown));
                }
                // The resource was removed meanwhile.
                state.delete_lock(&scope, name);
                Err(not_found(&scope))
            }
            ("DELETE", [name]) => Ok(Answer::deleted(state.delete_lock(&scope, name))),
            _ => Err(self.unsupported()),
        }
    }

    /// Fails if the scope before `at` does not exist.
    async fn check_scope_exists(&self, at: usize) -> Result<(), Refusal> {
        let mut head = self.head.clone();
        head.method = Method::GET;
        let scope = Call {
            shared: self.shared,
            head: &head,
            path: self.path[..at].to_vec(),
            lower: self.lower[..at].to_vec(),
            body: Value::Null,
        };
        scope.answer().await.map(drop)
    }
}

/// Returns a complete list.
pub(crate) fn list(value: Vec<Value>) -> Answer {
    Answer::ok(json!({ "value": value }))
}

fn subscription(id: &str) -> Value {
    json!({
        "id": format!("/subscriptions/{id}"),
        "subscriptionId": id,
        "tenantId": SUBSCRIPTION,
        "displayName": "Service Bus emulator",
        "state": "Enabled",
        "subscriptionPolicies": { "locationPlacementId": "", "quotaId": "", "spendingLimit": "Off" },
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    })
}

fn group(subscription: &str, name: &str) -> Value {
    json!({
        "id": format!("/subscriptions/{subscription}/resourceGroups/{name}"),
        "name": name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": LOCATION,
        "properties": { "provisioningState": "Succeeded" },
    })
}

fn provider() -> Value {
    let kind = |kind: &str| {
        json!({
            "resourceType": kind,
            "locations": [LOCATION],
            "apiVersions": VERSIONS,
        })
    };
    json!({
        "id": format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ServiceBus"),
        "namespace": "Microsoft.ServiceBus",
        "registrationState": "Registered",
        "resourceTypes": KINDS.map(kind),
    })
}

/// Returns the operations that roles in Azure can grant on the resources that are served, in the service's letter case.
fn operations() -> Vec<Value> {
    let operation = |kind: &str, verb: &str, does: &str| {
        let resource = kind.rsplit('/').next();
        json!({
            "name": format!("Microsoft.ServiceBus/{kind}{verb}"),
            "display": {
                "provider": "Microsoft Azure ServiceBus",
                "resource": resource,
                "operation": does,
            },
        })
    };
    let mut all = vec![operation(
        "",
        "checkNameAvailability/action",
        "Get namespace availability.",
    )];
    for kind in KINDS {
        let is_rules = kind.ends_with("authorizationRules");
        let delete = if is_rules { "/delete" } else { "/Delete" };
        all.push(operation(kind, "/write", "Create or update"));
        all.push(operation(kind, "/read", "Get"));
        all.push(operation(kind, delete, "Delete"));
        if is_rules {
            all.push(operation(kind, "/listkeys/action", "List keys"));
            all.push(operation(kind, "/regenerateKeys/action", "Regenerate keys"));
        }
    }
    all
}

impl Call<'_> {
    fn network_rules(&self) -> Value {
        let id = format!("{}/networkRuleSets/default", self.id_of(NAMESPACE + 1));
        let access = self.kept(&self.path[NAMESPACE], PUBLIC_ACCESS);
        let properties = json!({
            PUBLIC_ACCESS: access.unwrap_or_else(|| "Enabled".into()),
            "defaultAction": "Allow",
            "virtualNetworkRules": [],
            "ipRules": [],
            "trustedServiceAccessEnabled": false,
        });
        self.envelope(&id, "default", "networkRuleSets", properties)
    }
}

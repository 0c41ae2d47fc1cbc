//! Creates the entities of a topology in a namespace.

use std::time::Duration;

use servicebus_broker::{EntityDescription, NamespaceSettings, Tier, filter::Rule};
use servicebus_config::{
    auth::Jwt,
    config::{Config, NamespaceConfig, properties_json},
};

use super::{RemoteNamespace, config::WHERE, description::Description, namespace::Prefix};
use crate::{
    catalog::{EntityKind, broker_kind, subscription_path},
    error::{Error, control::ControlError},
    variables::CONNECTION_STRING_VARIABLE,
};

/// An entity to create, and the entities that must exist before.
#[derive(Debug)]
struct PlannedEntity {
    kind: EntityKind,
    path: String,
    description: Description,
    /// The rules of a subscription after the first.
    rules: Vec<Rule>,
    dependencies: Vec<String>,
}

/// Creates the entities of the topology, and returns the name of the namespace.
pub(crate) async fn create_entities(
    remote: &RemoteNamespace,
    config: &Config,
) -> Result<String, Error> {
    let refused = |source| {
        let host = remote.admin.authority();
        Error::namespace(format!(
            "cannot use the namespace at {host}: {source}; {CONNECTION_STRING_VARIABLE} {WHERE}"
        ))
    };
    let (name, tier) = remote.admin.namespace().await.map_err(refused)?;
    let [declared] = config.namespaces.as_slice() else {
        let count = config.namespaces.len();
        return Err(unsupported(&format!(
            "the topology declares {count} namespaces, and a connection string names one"
        )));
    };
    check_settings(&declared.settings, &tier)?;
    check_authorization(declared)?;
    for entity in in_dependency_order(planned_entities(
        declared,
        remote.admin.authority(),
        &remote.prefix,
        remote.max_real_wait,
    )) {
        entity.create(remote).await?;
    }
    Ok(name)
}

/// The namespace does not support what the topology requires.
fn unsupported(what: &str) -> Error {
    Error::namespace(format!("could not check: {what}"))
}

/// Rejects settings that only an emulator supports, and a different tier.
fn check_settings(declared: &NamespaceSettings, tier: &str) -> Result<(), Error> {
    let wanted = match declared.tier {
        Tier::Basic => "Basic",
        Tier::Standard => "Standard",
        Tier::Premium => "Premium",
    };
    let defaults = NamespaceSettings {
        tier: declared.tier,
        ..NamespaceSettings::default()
    };
    if *declared != defaults {
        return Err(unsupported(
            "the topology has settings that only an emulator has (Expiry, LocksOnDetach, FailedForwards and the like); a namespace of the service has none",
        ));
    }
    if declared.tier == Tier::Basic {
        return Err(unsupported(
            "the topology is of the tier Basic, in which the service deletes no idle entities: a killed test would leave its entities for ever",
        ));
    }
    // A premium namespace is expected to behave as a standard one.
    let fits = tier.eq_ignore_ascii_case(wanted) || (wanted == "Standard" && tier == "Premium");
    match fits {
        true => Ok(()),
        false => Err(unsupported(&format!(
            "the topology is of the tier {wanted}, the namespace is of the tier {tier}"
        ))),
    }
}

/// Rejects a configuration of authorization: a namespace has its own keys and token validation.
fn check_authorization(declared: &NamespaceConfig) -> Result<(), Error> {
    let defaults = NamespaceConfig::new(declared.name.clone());
    let is_default = declared.keys == defaults.keys
        && declared.token_check == defaults.token_check
        && matches!(declared.jwt, Jwt::Unset | Jwt::Accept)
        && declared.address == defaults.address;
    match is_default {
        true => Ok(()),
        false => Err(unsupported(
            "the topology declares keys, tokens or an address (Keys, TokenCheck, Jwt, Address), which only an emulator takes from it; a namespace has its own",
        )),
    }
}

/// Returns the entities to create, with the prefix before every name of a queue or topic.
fn planned_entities(
    declared: &NamespaceConfig,
    authority: &str,
    prefix: &Prefix,
    longest_wait: Duration,
) -> Vec<PlannedEntity> {
    let entity = |kind: EntityKind, path: String, is: &EntityDescription| {
        let mut properties = properties_json(broker_kind(kind), is);
        prefix.add_to_targets(&mut properties);
        let targets = is.targets();
        PlannedEntity {
            kind,
            path,
            description: Description::new(kind, &properties, authority, longest_wait),
            rules: Vec::new(),
            dependencies: targets
                .map(|(_, target)| prefix.prefixed(target.as_str()))
                .collect(),
        }
    };
    let mut entities = Vec::new();
    for (path, queue) in &declared.queues {
        let path = prefix.prefixed(path.as_str());
        entities.push(entity(EntityKind::Queue, path, queue));
    }
    for topic in &declared.topics {
        let name = prefix.prefixed(topic.path.as_str());
        entities.push(entity(EntityKind::Topic, name.clone(), &topic.description));
        for subscription in &topic.subscriptions {
            let path = subscription_path(&name, &subscription.name);
            let is = &subscription.description;
            let mut entity = entity(EntityKind::Subscription, path, is);
            entity.dependencies.push(name.clone());
            let mut rules = subscription.rules.iter().cloned();
            if let Some(first) = rules.next() {
                entity.description = entity.description.with_rule(first);
            }
            entity.rules = rules.collect();
            entities.push(entity);
        }
    }
    entities
}

/// Sorts steps by their needs; those with circular needs come last.
fn in_dependency_order(mut entities: Vec<PlannedEntity>) -> Vec<PlannedEntity> {
    let mut ordered = Vec::with_capacity(entities.len());
    while !entities.is_empty() {
        let missing: Vec<String> = entities
            .iter()
            .map(|entity| entity.path.to_lowercase())
            .collect();
        let ready = |entity: &PlannedEntity| {
            let mut dependencies = entity.dependencies.iter().map(|name| name.to_lowercase());
            !dependencies.any(|name| missing.contains(&name))
        };
        let (now, later): (Vec<_>, Vec<_>) = entities.into_iter().partition(ready);
        match now.is_empty() {
            true => {
                ordered.extend(later);
                break;
            }
            false => ordered.extend(now),
        }
        entities = later;
    }
    ordered
}

impl PlannedEntity {
    async fn create(&self, remote: &RemoteNamespace) -> Result<(), Error> {
        let create = || remote.create(self.kind, &self.path, &self.description);
        match create().await {
            Ok(()) => self.add_rules(remote).await,
            Err(error) if error.status() == Some(409) => {
                self.delete_leftover(remote).await?;
                create()
                    .await
                    .map_err(|source| self.creation_failed(source))?;
                self.add_rules(remote).await
            }
            Err(error) => Err(self.creation_failed(error)),
        }
    }

    async fn delete_leftover(&self, remote: &RemoteNamespace) -> Result<(), Error> {
        let deleted = remote.delete_leftover(self.kind, &self.path).await;
        match deleted.map_err(|source| self.creation_failed(source))? {
            None => Ok(()),
            Some(kind) => Err(Error::namespace(format!(
                "the namespace has a {kind} \"{}\" that no test created: delete it, or use a namespace only for tests",
                self.path
            ))),
        }
    }

    async fn add_rules(&self, remote: &RemoteNamespace) -> Result<(), Error> {
        for rule in &self.rules {
            let path = format!("{}/Rules/{}", self.path, rule.name);
            let created = remote.admin.create_rule(&path, rule).await;
            created.map_err(|source| self.creation_failed(source))?;
        }
        Ok(())
    }

    /// A namespace that rejects a setting is not wrong: tests that need the setting cannot be checked there.
    fn creation_failed(&self, source: ControlError) -> Error {
        let (kind, name) = (self.kind, &self.path);
        match source.status() {
            Some(400) => unsupported(&format!(
                "the namespace does not accept the {kind} \"{name}\": {source}"
            )),
            _ => Error::namespace(format!(
                "cannot create the {kind} \"{name}\" in the namespace: {source}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarding_targets_are_created_first() {
        let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n",
            "Queues":[{"Name":"a","Properties":{"ForwardTo":"t"}},
                {"Name":"b","Properties":{"ForwardTo":"a"}},{"Name":"c","Properties":{}}],
            "Topics":[{"Name":"t","Properties":{},"Subscriptions":[
                {"Name":"s","Properties":{"ForwardTo":"c"},"Rules":[]}]}]}]}}"#;
        let config = Config::parse(text).unwrap();
        let prefix = Prefix::unique();
        for prefix in [&Prefix::default(), &prefix] {
            let entities = in_dependency_order(planned_entities(
                &config.namespaces[0],
                "h",
                prefix,
                Duration::ZERO,
            ));
            let paths = entities.iter().map(|entity| entity.path.as_str());
            let expected = ["c", "t", "a", "t/Subscriptions/s", "b"].map(|it| prefix.prefixed(it));
            assert_eq!(Vec::from_iter(paths), expected);
        }
    }

    #[test]
    fn declared_keys_are_refused() {
        let mut declared = NamespaceConfig::new("n");
        assert!(check_authorization(&declared).is_ok());
        declared.keys.clear();
        let error = check_authorization(&declared).unwrap_err().to_string();
        assert!(
            error.starts_with("could not check: the topology declares keys"),
            "{error}"
        );
    }

    #[test]
    fn emulator_settings_are_refused() {
        let premium = NamespaceSettings {
            tier: Tier::Premium,
            ..NamespaceSettings::default()
        };
        assert!(check_settings(&premium, "Premium").is_ok());
        assert!(check_settings(&NamespaceSettings::default(), "Premium").is_ok());
        let error = check_settings(&premium, "Standard")
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "could not check: the topology is of the tier Premium, the namespace is of the tier Standard"
        );
    }
}

//! Creates the entities of a topology in a namespace.

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
struct Step {
    kind: EntityKind,
    path: String,
    description: Description,
    /// The rules of a subscription after the first.
    rules: Vec<Rule>,
    needs: Vec<String>,
}

/// Creates the entities of the topology, and returns the name of the namespace.
pub(crate) async fn carry_out(remote: &RemoteNamespace, config: &Config) -> Result<String, Error> {
    let refused = |source| {
        let host = remote.admin.authority();
        Error::namespace(format!(
            "cannot work in the namespace at {host}: {source}; {CONNECTION_STRING_VARIABLE} {WHERE}"
        ))
    };
    let (name, tier) = remote.admin.namespace().await.map_err(refused)?;
    let [declared] = config.namespaces.as_slice() else {
        let count = config.namespaces.len();
        return Err(uncheckable(&format!(
            "the topology declares {count} namespaces, and a connection string names one"
        )));
    };
    settings(&declared.settings, &tier)?;
    entrance(declared)?;
    for step in in_order(steps(declared, remote.admin.authority(), &remote.prefix)) {
        step.make(remote).await?;
    }
    Ok(name)
}

/// The namespace does not support what the topology requires.
fn uncheckable(what: &str) -> Error {
    Error::namespace(format!("could not check: {what}"))
}

/// Rejects settings that only an emulator supports, and a different tier.
fn settings(declared: &NamespaceSettings, tier: &str) -> Result<(), Error> {
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
        return Err(uncheckable(
            "the topology has settings that only an emulator has (Expiry, LocksOnDetach, FailedForwards and the like); a namespace has its own ways",
        ));
    }
    // A premium namespace is expected to behave as a standard one.
    let fits = tier.eq_ignore_ascii_case(wanted) || (wanted == "Standard" && tier == "Premium");
    match fits {
        true => Ok(()),
        false => Err(uncheckable(&format!(
            "the topology is of the tier {wanted}, the namespace is of the tier {tier}"
        ))),
    }
}

/// Rejects a configuration of authorization: a namespace has its own keys and token validation.
fn entrance(declared: &NamespaceConfig) -> Result<(), Error> {
    let usual = NamespaceConfig::new(declared.name.clone());
    let is_usual = declared.keys == usual.keys
        && declared.token_check == usual.token_check
        && matches!(declared.jwt, Jwt::Unset | Jwt::Accept)
        && declared.address == usual.address;
    match is_usual {
        true => Ok(()),
        false => Err(uncheckable(
            "the topology declares keys, tokens or an address (Keys, TokenCheck, Jwt, Address), which only an emulator takes from it; a namespace has its own",
        )),
    }
}

/// Returns the entities to create, with the prefix before every name of a queue or topic.
fn steps(declared: &NamespaceConfig, authority: &str, prefix: &Prefix) -> Vec<Step> {
    let step = |kind: EntityKind, path: String, is: &EntityDescription| {
        let mut properties = properties_json(broker_kind(kind), is);
        prefix.before_targets(&mut properties);
        let targets = is.targets();
        Step {
            kind,
            path,
            description: Description::new(kind, &properties, authority),
            rules: Vec::new(),
            needs: targets
                .map(|(_, target)| prefix.before(target.as_str()))
                .collect(),
        }
    };
    let mut steps = Vec::new();
    for (path, queue) in &declared.queues {
        let path = prefix.before(path.as_str());
        steps.push(step(EntityKind::Queue, path, queue));
    }
    for topic in &declared.topics {
        let name = prefix.before(topic.path.as_str());
        steps.push(step(EntityKind::Topic, name.clone(), &topic.description));
        for subscription in &topic.subscriptions {
            let path = subscription_path(&name, &subscription.name);
            let is = &subscription.description;
            let mut step = step(EntityKind::Subscription, path, is);
            step.needs.push(name.clone());
            let mut rules = subscription.rules.iter().cloned();
            if let Some(first) = rules.next() {
                step.description = step.description.with_rule(first);
            }
            step.rules = rules.collect();
            steps.push(step);
        }
    }
    steps
}

/// Sorts steps by their needs; those with circular needs come last.
fn in_order(mut steps: Vec<Step>) -> Vec<Step> {
    let mut ordered = Vec::with_capacity(steps.len());
    while !steps.is_empty() {
        let missing: Vec<String> = steps.iter().map(|step| step.path.to_lowercase()).collect();
        let ready = |step: &Step| {
            let mut needs = step.needs.iter().map(|name| name.to_lowercase());
            !needs.any(|name| missing.contains(&name))
        };
        let (now, later): (Vec<_>, Vec<_>) = steps.into_iter().partition(ready);
        match now.is_empty() {
            true => {
                ordered.extend(later);
                break;
            }
            false => ordered.extend(now),
        }
        steps = later;
    }
    ordered
}

impl Step {
    async fn make(&self, remote: &RemoteNamespace) -> Result<(), Error> {
        match self.made(remote).await {
            Ok(()) => self.add_rules(remote).await,
            Err(error) if error.status() == Some(409) => {
                self.clear(remote).await?;
                self.made(remote)
                    .await
                    .map_err(|source| self.failed(source))?;
                self.add_rules(remote).await
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn made(&self, remote: &RemoteNamespace) -> Result<(), ControlError> {
        remote.admin.make(&self.path, &self.description).await?;
        remote.remember(self.kind, &self.path);
        Ok(())
    }

    /// Deletes what a killed run left under this name, but no entity that a test did not create.
    async fn clear(&self, remote: &RemoteNamespace) -> Result<(), Error> {
        for kind in [EntityKind::Queue, EntityKind::Topic] {
            let found = remote.admin.find(kind, &self.path).await;
            let Some(found) = found.map_err(|source| self.failed(source))? else {
                continue;
            };
            if !Description::read(kind, &found).is_ours() {
                return Err(Error::namespace(format!(
                    "the namespace has a {kind} \"{}\" that no test made: remove it, or use a namespace for tests alone",
                    self.path
                )));
            }
            let deleted = remote.admin.delete(&self.path).await;
            deleted.map_err(|source| self.failed(source))?;
        }
        Ok(())
    }

    async fn add_rules(&self, remote: &RemoteNamespace) -> Result<(), Error> {
        for rule in &self.rules {
            let path = format!("{}/Rules/{}", self.path, rule.name);
            let made = remote.admin.make_rule(&path, rule).await;
            made.map_err(|source| self.failed(source))?;
        }
        Ok(())
    }

    /// A namespace that rejects a setting is not wrong: tests that need the setting cannot be checked there.
    fn failed(&self, source: ControlError) -> Error {
        let (kind, name) = (self.kind, &self.path);
        match source.status() {
            Some(400) => uncheckable(&format!(
                "the namespace does not take the {kind} \"{name}\": {source}"
            )),
            _ => Error::namespace(format!(
                "cannot make the {kind} \"{name}\" in the namespace: {source}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_made_before_what_forwards_to_them() {
        let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n",
            "Queues":[{"Name":"a","Properties":{"ForwardTo":"t"}},
                {"Name":"b","Properties":{"ForwardTo":"a"}},{"Name":"c","Properties":{}}],
            "Topics":[{"Name":"t","Properties":{},"Subscriptions":[
                {"Name":"s","Properties":{"ForwardTo":"c"},"Rules":[]}]}]}]}}"#;
        let config = Config::parse(text).unwrap();
        let prefix = Prefix::unique();
        for prefix in [&Prefix::default(), &prefix] {
            let steps = in_order(steps(&config.namespaces[0], "h", prefix));
            let paths = steps.iter().map(|step| step.path.as_str());
            let expected = ["c", "t", "a", "t/Subscriptions/s", "b"].map(|it| prefix.before(it));
            assert_eq!(Vec::from_iter(paths), expected);
        }
    }

    #[test]
    fn a_namespace_is_given_no_keys() {
        let mut declared = NamespaceConfig::new("n");
        assert!(entrance(&declared).is_ok());
        declared.keys.clear();
        let error = entrance(&declared).unwrap_err().to_string();
        assert!(
            error.starts_with("could not check: the topology declares keys"),
            "{error}"
        );
    }

    #[test]
    fn settings_of_an_emulator_cannot_be_checked() {
        let premium = NamespaceSettings {
            tier: Tier::Premium,
            ..NamespaceSettings::default()
        };
        assert!(settings(&premium, "Premium").is_ok());
        assert!(settings(&NamespaceSettings::default(), "Premium").is_ok());
        let error = settings(&premium, "Standard").unwrap_err().to_string();
        assert_eq!(
            error,
            "could not check: the topology is of the tier Premium, the namespace is of the tier Standard"
        );
    }
}

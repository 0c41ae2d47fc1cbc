//! Making in a namespace what a topology declares.

use serde_json::Value;
use servicebus_emulator::{
    auth::Jwt,
    broker::{NamespaceSettings, Tier},
    config::{Config, NamespaceConfig},
};

use super::{
    RemoteError, RemoteNamespace, description::Description, namespace::Prefix, rule::RuleXml,
};
use crate::{
    control::ControlError,
    kind::{EntityKind, subscription_path},
};

/// One entity that is to be made, and what has to be there before.
#[derive(Debug)]
struct Step {
    kind: EntityKind,
    path: String,
    description: Description,
    /// Rules beside the first, which a subscription is made with.
    rules: Vec<RuleXml>,
    needs: Vec<String>,
}

/// Makes what the topology declares; the name of the namespace.
pub(crate) async fn carry_out(
    remote: &RemoteNamespace,
    config: &Config,
) -> Result<String, RemoteError> {
    let refused = |source| RemoteError::Refused {
        host: remote.admin.authority().to_owned(),
        source,
    };
    let (name, tier) = remote.admin.namespace().await.map_err(refused)?;
    let [declared] = config.namespaces.as_slice() else {
        return Err(RemoteError::Uncheckable(format!(
            "the topology declares {} namespaces, and a connection string names one",
            config.namespaces.len()
        )));
    };
    settings(&declared.settings, &tier)?;
    entrance(declared)?;
    for step in in_order(steps(declared, remote.admin.authority(), &remote.prefix)?) {
        step.make(remote).await?;
    }
    Ok(name)
}

/// Refuses settings that only an emulator has, and a tier that the namespace is not of.
fn settings(declared: &NamespaceSettings, tier: &str) -> Result<(), RemoteError> {
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
        return Err(RemoteError::Uncheckable(
            "the topology has settings that only an emulator has (Expiry, LocksOnDetach, FailedForwards and the like); a namespace has its own ways"
                .to_owned(),
        ));
    }
    // What holds in a standard namespace is expected of a premium one too.
    let fits = tier.eq_ignore_ascii_case(wanted) || (wanted == "Standard" && tier == "Premium");
    match fits {
        true => Ok(()),
        false => Err(RemoteError::Uncheckable(format!(
            "the topology is of the tier {wanted}, the namespace is of the tier {tier}"
        ))),
    }
}

/// Refuses what configures authorization: a namespace has its own keys, and what it takes for a token.
fn entrance(declared: &NamespaceConfig) -> Result<(), RemoteError> {
    let usual = NamespaceConfig::new(declared.name.clone());
    let is_usual = declared.keys == usual.keys
        && declared.token_check == usual.token_check
        && matches!(declared.jwt, Jwt::Unset | Jwt::Accept)
        && declared.address == usual.address;
    match is_usual {
        true => Ok(()),
        false => Err(RemoteError::Uncheckable(
            "the topology declares keys, tokens or an address (Keys, TokenCheck, Jwt, Address), which only an emulator takes from it; a namespace has its own"
                .to_owned(),
        )),
    }
}

fn steps(
    declared: &NamespaceConfig,
    authority: &str,
    prefix: &Prefix,
) -> Result<Vec<Step>, RemoteError> {
    let mut entities = declared.declaration();
    put_before(&mut entities, prefix);
    let mut steps = Vec::new();
    for queue in elements(&entities["Queues"]) {
        let (path, properties) = (text(&queue["Name"]), &queue["Properties"]);
        steps.push(Step::new(EntityKind::Queue, path, properties, authority));
    }
    for topic in elements(&entities["Topics"]) {
        let (name, properties) = (text(&topic["Name"]), &topic["Properties"]);
        steps.push(Step::new(
            EntityKind::Topic,
            name.clone(),
            properties,
            authority,
        ));
        for subscription in elements(&topic["Subscriptions"]) {
            let path = subscription_path(&name, &text(&subscription["Name"]));
            let properties = &subscription["Properties"];
            let mut step = Step::new(EntityKind::Subscription, path, properties, authority);
            step.needs.push(name.clone());
            let rules = elements(&subscription["Rules"]).iter().map(RuleXml::of);
            let mut rules = rules.collect::<Result<Vec<_>, _>>()?.into_iter();
            if let Some(first) = rules.next() {
                step.description = step.description.with_rule(first.inner);
            }
            step.rules = rules.collect();
            steps.push(step);
        }
    }
    Ok(steps)
}

/// Puts the prefix before the name of every queue and topic, wherever one is named.
fn put_before(entities: &mut Value, prefix: &Prefix) {
    for kind in ["Queues", "Topics", "Subscriptions"] {
        for entity in entities[kind].as_array_mut().into_iter().flatten() {
            prefix.before_targets(&mut entity["Properties"]);
            // A subscription belongs to its topic and has its name for itself.
            if kind != "Subscriptions" {
                entity["Name"] = prefix.before(&text(&entity["Name"])).into();
                put_before(entity, prefix);
            }
        }
    }
}

/// Puts what others need before them; what needs itself, by whatever way, comes last as it stands.
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
    fn new(kind: EntityKind, path: String, properties: &Value, authority: &str) -> Self {
        let targets = ["ForwardTo", "ForwardDeadLetteredMessagesTo"];
        let targets = targets.map(|name| text(&properties[name]));
        Self {
            kind,
            path,
            description: Description::new(kind, properties, authority),
            rules: Vec::new(),
            needs: targets
                .into_iter()
                .filter(|name| !name.is_empty())
                .collect(),
        }
    }

    async fn make(&self, remote: &RemoteNamespace) -> Result<(), RemoteError> {
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

    /// Removes what a killed run left under this name, and nothing that others made.
    async fn clear(&self, remote: &RemoteNamespace) -> Result<(), RemoteError> {
        for kind in [EntityKind::Queue, EntityKind::Topic] {
            let found = remote.admin.find(kind, &self.path).await;
            let Some(found) = found.map_err(|source| self.failed(source))? else {
                continue;
            };
            if !Description::read(kind, &found).is_ours() {
                let name = self.path.clone();
                return Err(RemoteError::NotOurs { kind, name });
            }
            let deleted = remote.admin.delete(&self.path).await;
            deleted.map_err(|source| self.failed(source))?;
        }
        Ok(())
    }

    async fn add_rules(&self, remote: &RemoteNamespace) -> Result<(), RemoteError> {
        for rule in &self.rules {
            let path = format!("{}/Rules/{}", self.path, rule.name);
            let made = remote.admin.make_rule(&path, rule.document()).await;
            made.map_err(|source| self.failed(source))?;
        }
        Ok(())
    }

    /// A namespace that does not take a setting is not wrong: what needs it cannot be checked there.
    fn failed(&self, source: ControlError) -> RemoteError {
        let (kind, name) = (self.kind, self.path.clone());
        match source.status() {
            Some(400) => RemoteError::Uncheckable(format!(
                "the namespace does not take the {kind} \"{name}\": {source}"
            )),
            _ => RemoteError::Make { kind, name, source },
        }
    }
}

fn elements(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
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
            let steps = steps(&config.namespaces[0], "h", prefix).unwrap();
            let steps = in_order(steps);
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

//! Rules of subscriptions as resources. The first rule that is put here replaces `$Default`.

use std::sync::Arc;

use serde_json::Value;
use servicebus_broker::filter::{Filter, Parameters, Rule, SqlFilter};
use servicebus_broker::{ChangeRuleError, Entity, EntityPath, RuleChange};

use super::call::{Call, NAMESPACE};
use super::entities::{bad_request, method_not_allowed, not_found};
use super::{Answer, Refusal, member};
use crate::import::rule;
use crate::namespace::{Namespace, SharedEntity};

const DEFAULT: &str = "$Default";

impl Call<'_> {
    pub(crate) fn rules(&self, namespace: &Namespace) -> Result<Answer, Refusal> {
        let topic = self.existing(namespace, NAMESPACE + 3)?;
        let subscription = self.existing(namespace, NAMESPACE + 5)?;
        let path = &subscription.path;
        let all = || -> Vec<Arc<Rule>> {
            namespace.read(&topic, |topic| {
                let rules = topic.rules().into_iter();
                rules.flat_map(|set| set.of(path)).cloned().collect()
            })
        };
        let method = self.head.method.as_str();
        let Some(name) = self.path.get(NAMESPACE + 6) else {
            return match method {
                "GET" => self.page(&all(), |rule| {
                    self.show_rule(&format!("{}/{}", self.id(), rule.name), rule)
                }),
                other => Err(method_not_allowed(other, "GET")),
            };
        };
        match method {
            "GET" => {
                let all = all();
                let found = all.iter().find(|rule| rule.name.eq_ignore_ascii_case(name));
                let found = found.ok_or_else(|| not_found(&self.id()))?;
                Ok(Answer::ok(self.show_rule(&self.id(), found)))
            }
            "PUT" => {
                self.shared.resources.check(&self.id(), false)?;
                let _alone = namespace.administer();
                namespace.operate_as_broker(&subscription, Entity::touch);
                self.put_rule(namespace, &topic, path, name, &all())
            }
            "DELETE" => {
                self.shared.resources.check(&self.id(), true)?;
                let _alone = namespace.administer();
                let removal = RuleChange::Remove(name.clone());
                Ok(Answer::deleted(
                    namespace.change_rules(&topic, path, removal).is_ok(),
                ))
            }
            other => Err(method_not_allowed(other, "GET, PUT, DELETE")),
        }
    }

    fn put_rule(
        &self,
        namespace: &Namespace,
        topic: &SharedEntity,
        path: &EntityPath,
        name: &str,
        before: &[Arc<Rule>],
    ) -> Result<Answer, Refusal> {
        let properties = member(&self.body, "properties").unwrap_or(&Value::Null);
        let there = before
            .iter()
            .find(|rule| rule.name.eq_ignore_ascii_case(name));
        let name = there.map_or(name, |rule| &rule.name);
        let replaced = there.map(|rule| &rule.filter);
        let parse = |text: &str| SqlFilter::parse_replacing(replaced, text, Parameters::new());
        let rule = rule::read(name, properties, parse, namespace.clock.now());
        let rule = rule.map_err(|(key, message)| {
            bad_request(&format!("'{key}' of the rule '{name}': {message}."))
        })?;
        let change = match there {
            Some(_) => RuleChange::Replace(rule.clone()),
            None => RuleChange::Add(rule.clone()),
        };
        namespace
            .change_rules(topic, path, change)
            .map_err(|error| match error {
                ChangeRuleError::NotFound(_) => not_found(&self.id()),
                other @ (ChangeRuleError::Exists(_) | ChangeRuleError::LimitReached(_)) => {
                    bad_request(&format!("{other}."))
                }
            })?;
        if let [only] = before
            && there.is_none()
            && only.name.as_ref() == DEFAULT
            && matches!(only.filter, Filter::True)
        {
            // It may have been removed meanwhile, with the same result.
            let _ = namespace.change_rules(topic, path, RuleChange::Remove(DEFAULT.to_owned()));
        }
        Ok(Answer::ok(self.show_rule(&self.id(), &rule)))
    }

    fn show_rule(&self, id: &str, rule: &Rule) -> Value {
        let kind = "topics/subscriptions/rules";
        self.envelope(id, &rule.name, kind, rule::write(rule))
    }
}

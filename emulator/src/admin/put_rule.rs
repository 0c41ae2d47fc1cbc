//! Making and changing rules.

use axum::http::StatusCode;
use servicebus_broker::filter::Filter;
use servicebus_broker::{ChangeRuleError, Entity};

use super::call::{Answer, Call};
use super::describe::{RULE, read_rule};
use super::put::{content, no_description};
use super::refusal::ServiceError;

impl Call<'_> {
    /// The name is that of the path, whatever the description says.
    pub(super) fn put_rule(
        &self,
        topic: &str,
        subscription: &str,
        name: &str,
        body: &[u8],
    ) -> Result<Answer, ServiceError> {
        let content = content(body)?;
        let element = content.part(RULE).ok_or_else(|| no_description(RULE))?;
        let _alone = self.namespace.administer();
        let topic = self.topic(topic)?.ok_or_else(ServiceError::no_policy)?;
        let path = self.subscription(&topic, subscription)?;
        let entity = self.existing_subscription(&path)?;
        let path = entity.path.clone();
        let existing = self.rule(&topic, &path, name);
        let tag = existing.as_ref().map(|_| self.tag_of(&topic));
        let is_update = self.is_update(tag.as_deref())?;
        let tracker = self.tracker(&path, Some(name));
        match (is_update, &existing) {
            (false, Some(_)) => return Err(ServiceError::exists(&tracker)),
            (true, None) => return Err(ServiceError::no_entity(&tracker)),
            (true, Some(_)) | (false, None) => {}
        }
        // What is replaced keeps the spelling of its name.
        let name = existing.as_ref().map_or(name, |rule| &rule.name);
        let rule = read_rule(element, name, self.namespace.clock.now())?;
        // A rule that is put keeps its subscription (semantics §5).
        self.namespace.operate_as_broker(&entity, Entity::touch);
        let put = self
            .namespace
            .operate_as_broker(&topic, |entity, cx| match is_update {
                true => entity.replace_rule(cx, &path, rule.clone()),
                false => entity.add_rule(cx, &path, rule.clone()),
            });
        put.map_err(|error| match error {
            ChangeRuleError::Exists(_) => ServiceError::exists(&tracker),
            ChangeRuleError::NotFound(_) => ServiceError::no_entity(&tracker),
            ChangeRuleError::LimitReached(_) => {
                let code = match rule.filter {
                    Filter::Correlation(_) => 40502,
                    Filter::Sql(_) | Filter::True | Filter::False => 40501,
                };
                ServiceError::limit(code, format!("'{}': {error}", topic.path))
            }
        })?;
        let status = if is_update {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        Ok(self.show_rule(&topic, &path, &rule).with_status(status))
    }
}

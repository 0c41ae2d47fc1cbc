//! Making and changing rules.

use axum::http::StatusCode;
use servicebus_broker::filter::Filter;
use servicebus_broker::{ChangeRuleError, Mailbox};

use super::call::{Answer, Call};
use super::describe::{RULE, read_rule};
use super::put::{content, no_description};
use super::refusal::Refusal;

impl Call<'_> {
    /// The name is that of the path, whatever the description says.
    pub(super) fn put_rule(
        &self,
        topic: &str,
        subscription: &str,
        name: &str,
        body: &[u8],
    ) -> Result<Answer, Refusal> {
        let content = content(body)?;
        let element = content.part(RULE).ok_or_else(|| no_description(RULE))?;
        let _alone = self.namespace.administer();
        let topic = self.topic(topic)?.ok_or_else(Refusal::no_policy)?;
        let path = self.subscription(&topic, subscription)?;
        let entity = self.existing_subscription(&path)?;
        let path = entity.path.clone();
        let existing = self.rule(&topic, &path, name);
        let tag = existing.as_ref().map(|_| self.tag_of(&topic));
        let is_update = self.is_update(tag.as_deref())?;
        let tracker = self.tracker(&path, Some(name));
        match (is_update, &existing) {
            (false, Some(_)) => return Err(Refusal::exists(&tracker)),
            (true, None) => return Err(Refusal::no_entity(&tracker)),
            (true, Some(_)) | (false, None) => {}
        }
        // What is replaced keeps the spelling of its name.
        let name = existing.as_ref().map_or(name, |rule| &rule.name);
        let rule = read_rule(element, name, self.namespace.clock.now())?;
        // A rule that is put keeps its subscription (semantics §5).
        self.namespace.operate_as_broker(&entity, Mailbox::touch);
        let put = self
            .namespace
            .operate_as_broker(&topic, |mailbox, cx| match is_update {
                true => mailbox.replace_rule(cx, &path, rule.clone()),
                false => mailbox.add_rule(cx, &path, rule.clone()),
            });
        put.map_err(|error| match error {
            ChangeRuleError::Exists(_) => Refusal::exists(&tracker),
            ChangeRuleError::NotFound(_) => Refusal::no_entity(&tracker),
            ChangeRuleError::LimitReached(_) => {
                let code = match rule.filter {
                    Filter::Correlation(_) => 40502,
                    Filter::Sql(_) | Filter::True | Filter::False => 40501,
                };
                Refusal::limit(code, format!("'{}': {error}", topic.path))
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

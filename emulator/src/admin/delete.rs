//! Removing things, while messages flow.

use servicebus_broker::{EntityPath, RuleChange};

use super::call::{Answer, Call, Shape};
use super::refusal::ServiceError;
use super::route::Route;

impl Call<'_> {
    pub(crate) fn delete(&self, route: &Route) -> Result<Answer, ServiceError> {
        let _alone = self.namespace.administer();
        match route {
            Route::Entity(path) => self.delete_entity(&self.path(path)?),
            Route::Subscription { topic, name } => {
                let topic = self.topic(topic)?.ok_or_else(ServiceError::no_service)?;
                self.delete_entity(&self.subscription(&topic, name)?)
            }
            Route::Rule { topic, name, rule } => self.delete_rule(topic, name, rule),
            Route::Root
            | Route::NamespaceInfo
            | Route::Queues
            | Route::Topics
            | Route::Subscriptions { .. }
            | Route::Rules { .. }
            | Route::SubQueue { .. }
            | Route::UnknownResource(_) => Err(ServiceError::verb("DELETE")),
        }
    }

    fn delete_entity(&self, path: &EntityPath) -> Result<Answer, ServiceError> {
        let entity = self
            .namespace
            .entity(path)
            .ok_or_else(ServiceError::no_service)?;
        let tag = self.tag_of(&entity);
        self.is_update(Some(&tag))?;
        let deleted = self.namespace.delete_entity(path);
        deleted.map_err(|_| ServiceError::no_service())?;
        Ok(Answer::ok(Shape::Nothing).tagged(tag))
    }

    fn delete_rule(&self, topic: &str, name: &str, rule: &str) -> Result<Answer, ServiceError> {
        let topic = self.topic(topic)?.ok_or_else(ServiceError::no_service)?;
        let path = self.subscription(&topic, name)?;
        let tag = self.tag_of(&topic);
        self.is_update(Some(&tag))?;
        let removal = RuleChange::Remove(rule.to_owned());
        let removed = self.namespace.change_rules(&topic, &path, removal);
        removed.map_err(|_| ServiceError::no_service())?;
        Ok(Answer::ok(Shape::Nothing).tagged(tag))
    }
}

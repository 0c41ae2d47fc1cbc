//! Removing things, while messages flow.

use servicebus_broker::EntityPath;

use super::call::{Answer, Call, Shape};
use super::refusal::Refusal;
use super::route::Route;

impl Call<'_> {
    pub(super) fn delete(&self, route: &Route) -> Result<Answer, Refusal> {
        let _alone = self.namespace.administer();
        match route {
            Route::Entity(path) => self.delete_entity(&self.path(path)?),
            Route::Subscription { topic, name } => {
                let topic = self.topic(topic)?.ok_or_else(Refusal::no_service)?;
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
            | Route::UnknownResource(_) => Err(Refusal::verb("DELETE")),
        }
    }

    fn delete_entity(&self, path: &EntityPath) -> Result<Answer, Refusal> {
        let entity = self
            .namespace
            .entity(path)
            .ok_or_else(Refusal::no_service)?;
        let tag = self.tag_of(&entity);
        self.is_update(Some(&tag))?;
        let deleted = self.namespace.delete(path);
        deleted.ok_or_else(Refusal::no_service)?;
        Ok(Answer::ok(Shape::Nothing).tagged(tag))
    }

    fn delete_rule(&self, topic: &str, name: &str, rule: &str) -> Result<Answer, Refusal> {
        let topic = self.topic(topic)?.ok_or_else(Refusal::no_service)?;
        let path = self.subscription(&topic, name)?;
        let tag = self.tag_of(&topic);
        self.is_update(Some(&tag))?;
        let removed = self
            .namespace
            .operate_as_broker(&topic, |mailbox, cx| mailbox.remove_rule(cx, &path, rule));
        removed.map_err(|_| Refusal::no_service())?;
        Ok(Answer::ok(Shape::Nothing).tagged(tag))
    }
}

//! A queue, a queue with sessions and a topic with a subscription, without anything around them.

use servicebus_broker::filter::Rule;
use servicebus_broker::{
    ClientId, Context, Effects, Entity, EntityDescription, EntityId, EntityKind, EntityPath,
    Events, IdSource, Message, NamespaceSettings, Timestamp,
};

/// When everything happens, in milliseconds since the Unix epoch.
pub(crate) const NOW: i64 = 1_800_000_000_000;

/// Ids that count.
#[derive(Debug, Default)]
pub(crate) struct Ids(u64);

impl IdSource for Ids {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// The entities, and what operations leave behind.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) queue: Entity,
    pub(crate) sessions: Entity,
    pub(crate) topic: Entity,
    pub(crate) subscription: EntityPath,
    ids: Ids,
    effects: Effects,
    events: Events,
}

impl World {
    /// Entities whose stores are empty; the subscription has these rules.
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let now = Timestamp::from_millis(NOW);
        let settings = NamespaceSettings::default();
        let path = |name: &str| EntityPath::of_address(name).expect("a legal name");
        let with_sessions = EntityDescription {
            requires_session: true,
            ..EntityDescription::default()
        };
        let entity = |kind, id, name, description| {
            Entity::new(kind, EntityId(id), path(name), description, &settings, now)
        };
        let plain = EntityDescription::default;
        let mut world = Self {
            queue: entity(EntityKind::Queue, 1, "q", plain()),
            sessions: entity(EntityKind::Queue, 2, "s", with_sessions),
            topic: entity(EntityKind::Topic, 3, "t", plain()),
            subscription: path("t/Subscriptions/a"),
            ids: Ids::default(),
            effects: Effects::new(),
            events: Events::new(),
        };
        let subscription = world.subscription.clone();
        world.operate(|world, cx| world.topic.subscribe(cx, &subscription, rules));
        world
    }

    /// One operation on the entities.
    pub(crate) fn operate<T>(
        &mut self,
        work: impl FnOnce(&mut Entities<'_>, &mut Context<'_>) -> T,
    ) -> T {
        let mut entities = Entities {
            queue: &mut self.queue,
            sessions: &mut self.sessions,
            topic: &mut self.topic,
        };
        let mut cx = Context {
            now: Timestamp::from_millis(NOW),
            has_room: true,
            client: ClientId(7),
            ids: &mut self.ids,
            effects: &mut self.effects,
            events: &mut self.events,
        };
        work(&mut entities, &mut cx)
    }

    /// Sends a message to every entity; those that refuse it do so.
    pub(crate) fn send_everywhere(&mut self, message: &Message) {
        self.operate(|entities, cx| {
            for entity in [
                &mut *entities.queue,
                &mut *entities.sessions,
                &mut *entities.topic,
            ] {
                let _ = entity.send(cx, message.clone());
            }
        });
    }
}

/// The entities as an operation sees them.
#[derive(Debug)]
pub(crate) struct Entities<'a> {
    pub(crate) queue: &'a mut Entity,
    pub(crate) sessions: &'a mut Entity,
    pub(crate) topic: &'a mut Entity,
}

//! The table of entity properties: which there are, which kind of entity has which, of what type, within what bounds.
//!
//! Everything that reads, judges, changes or shows an entity walks this table: the configuration file, the administration
//! API, the control API, exports and `check`. What a property does stands with the operations that ask for it; bounds
//! are those of semantics §1 and decisions D15 and D21.

use std::fmt;
use std::time::Duration;

use super::description::{EntityDescription, EntityStatus, Problem};
use crate::{EntityKind, EntityPath, Tier};

use EntityKind::{Queue, Subscription, Topic};

/// Where a description has a property.
macro_rules! field {
    ($name:ident) => {
        Field {
            get: |description| description.$name.get(),
            set: |description, value| description.$name.set(value),
        }
    };
}

const DAY: u64 = 86_400;
/// The bound of durations that have none.
const ENDLESS: Duration = Duration::from_secs(u64::MAX);
/// Longest default time to live in the basic tier (semantics §4).
pub(crate) const BASIC_TIME_TO_LIVE: Duration = Duration::from_secs(14 * DAY);

const ALL: &[EntityKind] = &[Queue, Topic, Subscription];
/// Kinds that messages are sent to.
const SENT_TO: &[EntityKind] = &[Queue, Topic];
/// Kinds that messages are received from.
const RECEIVED_FROM: &[EntityKind] = &[Queue, Subscription];

/// Every property of an entity that changes what becomes of messages, in the order in which problems are told.
pub static PROPERTIES: [Property; 15] = [
    Property::duration("LockDuration", RECEIVED_FROM, field!(lock_duration), 5, 300),
    // The service sells 1, 2, 3, 4, 5 and 80 GiB; smaller sizes are for tests that fill an entity.
    Property::number(
        "MaxSizeInMegabytes",
        SENT_TO,
        field!(max_size_in_megabytes),
        1,
        80 * 1024,
    ),
    Property::flag(
        "RequiresDuplicateDetection",
        SENT_TO,
        field!(requires_duplicate_detection),
    )
    .fixed()
    .not_in(
        &[Tier::Basic],
        "false: the basic tier has no duplicate detection",
    ),
    Property::flag("RequiresSession", RECEIVED_FROM, field!(requires_session))
        .fixed()
        .not_in(&[Tier::Basic], "false: the basic tier has no sessions"),
    Property::endless(
        "DefaultMessageTimeToLive",
        ALL,
        field!(default_message_time_to_live),
        1,
    )
    .at_most_in_basic(BASIC_TIME_TO_LIVE),
    Property::flag(
        "DeadLetteringOnMessageExpiration",
        RECEIVED_FROM,
        field!(dead_lettering_on_message_expiration),
    ),
    Property::flag(
        "DeadLetteringOnFilterEvaluationExceptions",
        &[Subscription],
        field!(dead_lettering_on_filter_evaluation_exceptions),
    ),
    // The official schema goes down to 5 s (decision D15).
    Property::duration(
        "DuplicateDetectionHistoryTimeWindow",
        SENT_TO,
        field!(duplicate_detection_history_time_window),
        5,
        7 * DAY,
    ),
    Property::number(
        "MaxDeliveryCount",
        RECEIVED_FROM,
        field!(max_delivery_count),
        1,
        i32::MAX as u64,
    ),
    Property::status("Status", ALL, field!(status)),
    Property::target("ForwardTo", RECEIVED_FROM, field!(forward_to))
        .not_in(&[Tier::Basic], "none: the basic tier does not forward"),
    Property::target(
        "ForwardDeadLetteredMessagesTo",
        RECEIVED_FROM,
        field!(forward_dead_lettered_messages_to),
    )
    .not_in(&[Tier::Basic], "none: the basic tier does not forward"),
    Property::endless("AutoDeleteOnIdle", ALL, field!(auto_delete_on_idle), 300)
        .never()
        .not_in(
            &[Tier::Basic],
            "never: the basic tier does not delete idle entities",
        ),
    Property::flag("EnablePartitioning", SENT_TO, field!(enable_partitioning)).fixed(),
    Property::number(
        "MaxMessageSizeInKilobytes",
        SENT_TO,
        field!(max_message_size_in_kilobytes),
        1024,
        102_400,
    )
    .not_in(
        &[Tier::Basic, Tier::Standard],
        "none: only the premium tier has large messages",
    ),
];

/// One property of entities.
#[derive(Debug)]
pub struct Property {
    /// Its official name.
    pub name: &'static str,
    /// What its values are.
    pub value_type: PropertyType,
    /// Whether it is fixed when the entity is created.
    pub is_fixed: bool,
    kinds: &'static [EntityKind],
    field: Field,
    /// The least and the greatest number, or the shortest and the longest duration in seconds.
    pub bounds: Option<(u64, u64)>,
    /// How a duration without an end is told.
    pub endless: &'static str,
    /// The longest duration in the basic tier.
    basic: Option<Duration>,
    /// Tiers in which it has its default, and how that is told.
    absent: Option<(&'static [Tier], &'static str)>,
}

/// What the values of a property are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyType {
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// A duration.
    Duration,
    /// A duration, or none for "for ever".
    Endless,
    /// One of the statuses that the kind of entity can have.
    Status,
    /// The name of a queue or topic, or none.
    Target,
}

/// A value of a property, for whoever reads and writes all of them alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PropertyValue {
    /// Of a [`PropertyType::Flag`].
    Flag(bool),
    /// Of a [`PropertyType::Number`].
    Number(u64),
    /// Of a [`PropertyType::Duration`].
    Duration(Duration),
    /// Of a [`PropertyType::Endless`].
    Endless(Option<Duration>),
    /// Of a [`PropertyType::Status`].
    Status(EntityStatus),
    /// Of a [`PropertyType::Target`].
    Target(Option<EntityPath>),
}

/// Where a description has the property.
#[derive(Debug, Clone, Copy)]
struct Field {
    get: fn(&EntityDescription) -> Option<PropertyValue>,
    set: fn(&mut EntityDescription, PropertyValue),
}

/// A field of a description as a value and back; a value of another type changes nothing.
trait Stored {
    fn get(&self) -> Option<PropertyValue>;
    fn set(&mut self, value: PropertyValue);
}

impl Property {
    /// The properties that entities of a kind have.
    pub fn of(kind: EntityKind) -> impl Iterator<Item = &'static Self> {
        PROPERTIES
            .iter()
            .filter(move |property| property.kinds.contains(&kind))
    }

    /// The property of this name, if entities of the kind have it.
    pub fn named(kind: EntityKind, name: &str) -> Option<&'static Self> {
        Self::of(kind).find(|property| property.name == name)
    }

    /// What a description says; none where the tier of the namespace decides.
    pub fn get(&self, description: &EntityDescription) -> Option<PropertyValue> {
        (self.field.get)(description)
    }

    /// Changes a description; a value of another type than the property's changes nothing.
    pub fn set(&self, description: &mut EntityDescription, value: PropertyValue) {
        (self.field.set)(description, value);
    }

    /// Whether every entity of a namespace of this tier has its default.
    pub fn is_absent_in(&self, tier: Tier) -> bool {
        self.absent.is_some_and(|(tiers, _)| tiers.contains(&tier))
    }

    /// A value as people say it.
    pub fn text(&self, value: &PropertyValue) -> String {
        match value {
            PropertyValue::Flag(flag) => flag.to_string(),
            PropertyValue::Number(number) => number.to_string(),
            PropertyValue::Duration(duration) | PropertyValue::Endless(Some(duration)) => {
                match is_days(*duration) {
                    true => format!("{} days", duration.as_secs() / DAY),
                    false => format!("{} s", duration.as_secs_f64()),
                }
            }
            PropertyValue::Endless(None) => self.endless.to_owned(),
            PropertyValue::Status(status) => status.name().to_owned(),
            PropertyValue::Target(Some(target)) => target.to_string(),
            PropertyValue::Target(None) => "none".to_owned(),
        }
    }

    /// What is not legal about a description's value; none where it is.
    pub(crate) fn problem(
        &self,
        description: &EntityDescription,
        kind: EntityKind,
        tier: Tier,
    ) -> Option<Problem> {
        let value = self.get(description)?;
        let allowed = self.not_allowed(&value, kind, tier)?;
        Some(Problem::new(self.name, self.text(&value), allowed))
    }

    /// What would be allowed in the place of a value that is not.
    fn not_allowed(&self, value: &PropertyValue, kind: EntityKind, tier: Tier) -> Option<String> {
        if let Some((tiers, allowed)) = self.absent
            && tiers.contains(&tier)
            && self.get(&EntityDescription::default()).as_ref() != Some(value)
        {
            return Some(allowed.to_owned());
        }
        let (least, most) = self.bounds.unwrap_or((0, u64::MAX));
        match value {
            PropertyValue::Number(number) if !(least..=most).contains(number) => {
                Some(format!("{least} to {most}"))
            }
            PropertyValue::Duration(duration) => self.not_within(*duration, tier),
            PropertyValue::Endless(duration) => {
                self.not_within(duration.unwrap_or(Duration::MAX), tier)
            }
            PropertyValue::Status(status) if !EntityStatus::of(kind).contains(status) => {
                let names: Vec<&str> = EntityStatus::of(kind).iter().map(|s| s.name()).collect();
                let (last, first) = names.split_last()?;
                Some(format!("{} or {last}", first.join(", ")))
            }
            PropertyValue::Flag(_)
            | PropertyValue::Number(_)
            | PropertyValue::Status(_)
            | PropertyValue::Target(_) => None,
        }
    }

    /// What a duration may be, where it is too short or too long.
    fn not_within(&self, duration: Duration, tier: Tier) -> Option<String> {
        let (shortest, longest) = self.bounds?;
        let (shortest, longest) = (Duration::from_secs(shortest), Duration::from_secs(longest));
        let basic = self.basic.filter(|_| tier == Tier::Basic);
        let place = if basic.is_some() {
            " in the basic tier"
        } else {
            ""
        };
        let (least, most) = (Span(shortest), Span(basic.unwrap_or(longest)));
        let is_endless = longest == ENDLESS && basic.is_none();
        if duration < shortest || (duration > most.0 && !is_endless) {
            return Some(match is_endless {
                true => format!("{least} or longer"),
                false => format!("{least} to {most}{place}"),
            });
        }
        None
    }

    const fn new(
        name: &'static str,
        value_type: PropertyType,
        kinds: &'static [EntityKind],
        field: Field,
        bounds: Option<(u64, u64)>,
    ) -> Self {
        Self {
            name,
            value_type,
            is_fixed: false,
            kinds,
            field,
            bounds,
            basic: None,
            endless: "for ever",
            absent: None,
        }
    }

    const fn flag(name: &'static str, kinds: &'static [EntityKind], field: Field) -> Self {
        Self::new(name, PropertyType::Flag, kinds, field, None)
    }

    const fn status(name: &'static str, kinds: &'static [EntityKind], field: Field) -> Self {
        Self::new(name, PropertyType::Status, kinds, field, None)
    }

    const fn target(name: &'static str, kinds: &'static [EntityKind], field: Field) -> Self {
        Self::new(name, PropertyType::Target, kinds, field, None)
    }

    const fn number(
        name: &'static str,
        kinds: &'static [EntityKind],
        field: Field,
        least: u64,
        most: u64,
    ) -> Self {
        Self::new(
            name,
            PropertyType::Number,
            kinds,
            field,
            Some((least, most)),
        )
    }

    /// Bounds are in seconds.
    const fn duration(
        name: &'static str,
        kinds: &'static [EntityKind],
        field: Field,
        shortest: u64,
        longest: u64,
    ) -> Self {
        Self::new(
            name,
            PropertyType::Duration,
            kinds,
            field,
            Some((shortest, longest)),
        )
    }

    /// The bound is in seconds.
    const fn endless(
        name: &'static str,
        kinds: &'static [EntityKind],
        field: Field,
        shortest: u64,
    ) -> Self {
        Self::new(
            name,
            PropertyType::Endless,
            kinds,
            field,
            Some((shortest, u64::MAX)),
        )
    }

    const fn fixed(self) -> Self {
        Self {
            is_fixed: true,
            ..self
        }
    }

    const fn never(self) -> Self {
        Self {
            endless: "never",
            ..self
        }
    }

    const fn at_most_in_basic(self, longest: Duration) -> Self {
        Self {
            basic: Some(longest),
            ..self
        }
    }

    const fn not_in(self, tiers: &'static [Tier], allowed: &'static str) -> Self {
        Self {
            absent: Some((tiers, allowed)),
            ..self
        }
    }
}

/// The type of a field, its value, and the field from a value.
macro_rules! stored {
    ($($stored:ty: |$own:ident| $get:expr, $variant:ident($value:ident) => $set:expr;)*) => {$(
        impl Stored for $stored {
            fn get(&self) -> Option<PropertyValue> {
                let $own = self;
                $get
            }

            fn set(&mut self, value: PropertyValue) {
                if let PropertyValue::$variant($value) = value {
                    *self = $set;
                }
            }
        }
    )*};
}

stored! {
    bool: |own| Some(PropertyValue::Flag(*own)), Flag(flag) => flag;
    u64: |own| Some(PropertyValue::Number(*own)), Number(number) => number;
    // A number that does not fit becomes the greatest, which is out of bounds as well.
    u32: |own| Some(PropertyValue::Number(u64::from(*own))),
        Number(number) => Self::try_from(number).unwrap_or(Self::MAX);
    Option<u64>: |own| own.map(PropertyValue::Number), Number(number) => Some(number);
    Duration: |own| Some(PropertyValue::Duration(*own)), Duration(duration) => duration;
    Option<Duration>: |own| Some(PropertyValue::Endless(*own)), Endless(duration) => duration;
    EntityStatus: |own| Some(PropertyValue::Status(*own)), Status(status) => status;
    Option<EntityPath>: |own| Some(PropertyValue::Target(own.clone())), Target(target) => target;
}

/// A bound as problems tell it: `5 min (PT5M)`.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        if is_days(self.0) {
            let days = seconds / DAY;
            write!(formatter, "{days} days (P{days}D)")
        } else if seconds.is_multiple_of(60) {
            let minutes = seconds / 60;
            write!(formatter, "{minutes} min (PT{minutes}M)")
        } else {
            write!(formatter, "{seconds} s (PT{seconds}S)")
        }
    }
}

fn is_days(duration: Duration) -> bool {
    let seconds = duration.as_secs();
    seconds >= DAY && seconds.is_multiple_of(DAY) && duration.subsec_nanos() == 0
}

//! The properties of entities: how each is read from a description, validated, changed and rendered.
//!
//! The configuration file, the administration API, the control API with its description, exports and `check` all walk the
//! table of properties. The effect of a property is in the operations that read it.

mod table;

use std::fmt;
use std::time::Duration;

use crate::description::{EntityDescription, EntityKind, EntityStatus, Problem};
use crate::ids::EntityPath;
use crate::settings::Tier;

pub use table::PROPERTIES;

const DAY: u64 = 86_400;
/// The upper bound of durations without one.
const ENDLESS: Duration = Duration::from_secs(u64::MAX);

/// One property of entities.
#[derive(Debug)]
pub struct Property {
    /// The official name.
    pub name: &'static str,
    /// The type of its values.
    pub value_type: PropertyType,
    /// Which clients set it.
    pub audience: Audience,
    /// Its meaning, for the description of the control API.
    pub about: &'static str,
    /// Whether it is fixed when the entity is created.
    pub is_fixed: bool,
    /// Whether an update by the administration API that does not name the property leaves it unchanged.
    pub is_kept: bool,
    /// The first version of the administration API that returns it.
    pub since: Option<&'static str>,
    /// Positions of the element in the XML of a queue, a topic and a subscription; 0 where such an entity does not have it.
    positions: [u16; 3],
    field: Field,
    /// Minimum and maximum of a number, of a duration in seconds, or of a text's length in characters.
    pub bounds: Option<(u64, u64)>,
    /// The text for an infinite duration.
    pub endless: &'static str,
    /// The longest duration in the basic tier.
    basic: Option<Duration>,
    /// Tiers in which only the default is allowed, and the text for that.
    absent: Option<(&'static [Tier], &'static str)>,
}

/// Which clients set a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Users of configurations and of every API.
    Everyone,
    /// Clients of the administration API; no effect on messages.
    Administration,
    /// Clients of the administration API; must stay false, because the emulator does not support it.
    Unsupported,
}

/// The type of a property's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyType {
    /// True or false.
    Flag,
    /// A whole number.
    Number,
    /// A duration.
    Duration,
    /// A duration, or `None` for an infinite one.
    Endless,
    /// A status that the kind of entity can have.
    Status,
    /// The name of a queue or topic, or `None`.
    Target,
    /// Any text, or `None`.
    Text,
}

/// A value of a property, for code that handles all properties alike.
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
    /// Of a [`PropertyType::Text`].
    Text(Option<Box<str>>),
}

/// The field of a description that has the property.
#[derive(Debug, Clone, Copy)]
struct Field {
    get: fn(&EntityDescription) -> Option<PropertyValue>,
    set: fn(&mut EntityDescription, PropertyValue),
}

/// Converts a field of a description into a value and back; a value of another type changes nothing.
trait Stored {
    fn get(&self) -> Option<PropertyValue>;
    fn set(&mut self, value: PropertyValue);
}

impl Property {
    /// Returns the properties of a kind of entity that configurations and all APIs have.
    pub fn of(kind: EntityKind) -> impl Iterator<Item = &'static Self> {
        Self::all_of(kind).filter(|property| property.audience == Audience::Everyone)
    }

    /// Returns the properties of a kind of entity that only the administration API has, unless a value is unsupported.
    pub fn of_administration(kind: EntityKind) -> impl Iterator<Item = &'static Self> {
        Self::all_of(kind).filter(|property| property.audience == Audience::Administration)
    }

    /// Returns all properties of a kind of entity, including those of the administration API only.
    pub fn all_of(kind: EntityKind) -> impl Iterator<Item = &'static Self> {
        PROPERTIES
            .iter()
            .filter(move |property| property.position(kind) != 0)
    }

    /// Returns the property of this name, if entities of the kind have it.
    pub fn named(kind: EntityKind, name: &str) -> Option<&'static Self> {
        Self::all_of(kind).find(|property| property.name == name)
    }

    /// Returns the position of the element in the XML of such an entity; 0 where the entity does not have it.
    pub fn position(&self, kind: EntityKind) -> u16 {
        self.positions[kind as usize]
    }

    /// Returns the value in a description; `None` where the tier of the namespace decides.
    pub fn get(&self, description: &EntityDescription) -> Option<PropertyValue> {
        (self.field.get)(description)
    }

    /// Changes a description; a value of another type changes nothing.
    pub fn set(&self, description: &mut EntityDescription, value: PropertyValue) {
        (self.field.set)(description, value);
    }

    /// Returns whether every entity in a namespace of this tier has the default.
    pub fn is_absent_in(&self, tier: Tier) -> bool {
        self.absent.is_some_and(|(tiers, _)| tiers.contains(&tier))
    }

    /// Renders a value for messages.
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
            PropertyValue::Text(Some(text)) => text.to_string(),
            PropertyValue::Target(None) | PropertyValue::Text(None) => "none".to_owned(),
        }
    }

    /// Returns why a description's value is invalid; `None` if it is valid.
    pub(crate) fn problem(
        &self,
        description: &EntityDescription,
        kind: EntityKind,
        tier: Tier,
    ) -> Option<Problem> {
        let value = self.get(description)?;
        let allowed = self.not_allowed(&value, kind, tier)?;
        let shown = if let PropertyValue::Text(Some(text)) = &value {
            format!("{} characters", text.encode_utf16().count())
        } else {
            self.text(&value)
        };
        Some(Problem::new(self.name, shown, allowed))
    }

    /// Returns the allowed values if this value is not allowed.
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
            PropertyValue::Text(Some(text)) if text.encode_utf16().count() as u64 > most => {
                Some(format!("at most {most} characters"))
            }
            PropertyValue::Flag(_)
            | PropertyValue::Number(_)
            | PropertyValue::Status(_)
            | PropertyValue::Target(_)
            | PropertyValue::Text(_) => None,
        }
    }

    /// Returns the allowed durations if this one is too short or too long.
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
}

impl EntityDescription {
    /// Returns all invalid properties of an entity of this kind.
    pub fn problems(&self, kind: EntityKind, tier: Tier) -> Vec<Problem> {
        let properties = Property::all_of(kind);
        properties
            .filter_map(|property| property.problem(self, kind, tier))
            .collect()
    }

    /// Returns the properties that `changed` would change although they are fixed at creation.
    pub fn fixed_problems(&self, changed: &Self) -> Vec<Problem> {
        let fixed = PROPERTIES.iter().filter(|property| property.is_fixed);
        let differ = fixed.filter_map(|property| {
            let (before, after) = (property.get(self)?, property.get(changed)?);
            let allowed = || format!("{}, as it was created", property.text(&before));
            (before != after).then(|| Problem::new(property.name, property.text(&after), allowed()))
        });
        differ.collect()
    }

    /// Returns the entities to which messages and dead letters are forwarded, with the names of the properties.
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, EntityPath)> {
        let targets = PROPERTIES
            .iter()
            .filter_map(|property| match property.get(self)? {
                PropertyValue::Target(target) => Some((property.name, target?)),
                PropertyValue::Flag(_)
                | PropertyValue::Number(_)
                | PropertyValue::Duration(_)
                | PropertyValue::Endless(_)
                | PropertyValue::Status(_)
                | PropertyValue::Text(_) => None,
            });
        targets.collect::<Vec<_>>().into_iter()
    }
}

/// Implements [`Stored`] for the types of fields.
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
    // A number that does not fit becomes the maximum, which is out of bounds as well.
    u32: |own| Some(PropertyValue::Number(u64::from(*own))),
        Number(number) => Self::try_from(number).unwrap_or(Self::MAX);
    Option<u32>: |own| own.map(|number| PropertyValue::Number(u64::from(number))),
        Number(number) => Some(u32::try_from(number).unwrap_or(u32::MAX));
    Duration: |own| Some(PropertyValue::Duration(*own)), Duration(duration) => duration;
    Option<Duration>: |own| Some(PropertyValue::Endless(*own)), Endless(duration) => duration;
    EntityStatus: |own| Some(PropertyValue::Status(*own)), Status(status) => status;
    Option<EntityPath>: |own| Some(PropertyValue::Target(own.clone())), Target(target) => target;
    Option<Box<str>>: |own| Some(PropertyValue::Text(own.clone())), Text(text) => text;
}

/// A bound in the form of error texts: `5 min (PT5M)`.
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

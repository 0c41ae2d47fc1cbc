//! The properties of an entity in JSON: `Properties` of a configuration file, and what the control API takes and shows.
//!
//! Both are read by the same code, so that the same mistake has the same words. Which properties there are, and their
//! bounds, is in the broker's table; its problems are led back to the places in the text. Only a target that is not
//! declared is not found here: that takes the names of the namespace, see [`super::missing_targets`].

use serde_json::{Map, Value as Json};
use servicebus_broker::{
    EntityDescription, EntityKind, EntityPath, EntityStatus, Property, PropertyType, PropertyValue,
    Tier,
};

use super::duration::FOREVER;
use super::reader::{Located, Object, Places, Report};
use super::{ConfigError, duration, reader};

/// What is written of an entity's properties.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    /// Where they stand.
    pub(crate) places: Places,
    values: Vec<(&'static Property, PropertyValue)>,
}

impl Properties {
    /// Reads those that entities of a kind have; what is not of its type is reported and left out.
    pub(crate) fn read(mut object: Object<'_, '_>, kind: EntityKind) -> Self {
        let places = object.places();
        let properties = Property::of(kind);
        let values = properties.filter_map(|own| Some((own, value(&mut object, own, kind)?)));
        let values = values.collect();
        object.finish();
        Self { places, values }
    }

    /// A description with what is written instead of what it says; what is not legal is reported.
    pub(crate) fn apply(
        &self,
        report: &Report<'_>,
        kind: EntityKind,
        mut description: EntityDescription,
        tier: Tier,
    ) -> EntityDescription {
        for (property, value) in &self.values {
            property.set(&mut description, value.clone());
        }
        for problem in description.problems(kind, tier) {
            report.setting(&self.places, problem);
        }
        description
    }
}

/// The properties of the entity that is there, with those in `text` instead; of a new one, what the tier gives it. What is
/// fixed at creation must stay.
pub fn read_properties(
    text: &str,
    kind: EntityKind,
    path: &EntityPath,
    current: Option<&EntityDescription>,
    tier: Tier,
) -> Result<EntityDescription, ConfigError> {
    let report = Report::new(text);
    let usual = || EntityDescription::of_tier(tier);
    let mut description = current.cloned().unwrap_or_else(usual);
    let tree = reader::parse(&report);
    let object = tree
        .as_ref()
        .and_then(|tree| Object::of(&report, tree, String::new()));
    if let Some(object) = object {
        let properties = Properties::read(object, kind);
        description = properties.apply(&report, kind, description, tier);
        let fixed = current.map(|current| current.fixed_problems(&description));
        let of_kind = kind.problem(path.as_str(), tier);
        for problem in fixed.into_iter().flatten().chain(of_kind) {
            report.setting(&properties.places, problem);
        }
    }
    report.finish().map(|()| description)
}

/// The effective properties as the official format has them. A largest message that the tier decides is left out.
pub fn properties_json(kind: EntityKind, description: &EntityDescription) -> Json {
    let properties = Property::of(kind);
    let shown = properties.filter_map(|property| {
        let value = property.get(description)?;
        Some((property.name.to_owned(), json(value)))
    });
    shown.collect::<Map<_, _>>().into()
}

/// A name in the text as the name of an entity.
pub(crate) fn path(report: &Report<'_>, written: &Located<String>) -> Option<EntityPath> {
    let Located { place, value } = written;
    let path = value.parse();
    if let Err(error) = &path {
        report.wrong_value(place, format!("is no legal name: {error}"), None);
    }
    path.ok()
}

fn value(
    object: &mut Object<'_, '_>,
    property: &'static Property,
    kind: EntityKind,
) -> Option<PropertyValue> {
    let name = property.name;
    Some(match property.value_type {
        PropertyType::Flag => PropertyValue::Flag(object.boolean(name)?.value),
        PropertyType::Number => {
            let number = object.integer(name)?.value;
            // A negative one becomes 0, which is out of bounds as well.
            PropertyValue::Number(u64::try_from(number).unwrap_or(0))
        }
        PropertyType::Duration => PropertyValue::Duration(object.duration(name)?.value),
        PropertyType::Endless => {
            let duration = object.duration(name)?.value;
            PropertyValue::Endless((duration < FOREVER).then_some(duration))
        }
        PropertyType::Status => {
            let words = EntityStatus::of(kind).iter();
            let words: Vec<_> = words.map(|status| (status.name(), *status)).collect();
            PropertyValue::Status(object.choice(name, &words)?.value)
        }
        PropertyType::Target => {
            let written = object.string(name)?;
            // An empty name says that there is no target.
            let target = (!written.value.is_empty()).then(|| path(object.report(), &written));
            PropertyValue::Target(target.flatten())
        }
        PropertyType::Text => PropertyValue::Text(Some(object.string(name)?.value.into())),
    })
}

/// A value as it is written; an empty name says that there is no target.
pub fn json(value: PropertyValue) -> Json {
    match value {
        PropertyValue::Flag(flag) => flag.into(),
        PropertyValue::Number(number) => number.into(),
        PropertyValue::Duration(duration) => duration::format(duration).into(),
        PropertyValue::Endless(duration) => duration::format(duration.unwrap_or(FOREVER)).into(),
        PropertyValue::Status(status) => status.name().into(),
        PropertyValue::Target(target) => target.as_ref().map_or("", EntityPath::as_str).into(),
        PropertyValue::Text(text) => text.as_deref().into(),
    }
}

//! The properties of an entity in JSON: `Properties` of a configuration file, and the settings of the control API.
//!
//! The same code parses both, so that the same error has the same text. The broker's table defines the properties and their
//! bounds; its problems are mapped to positions in the text. Only missing targets are not detected here, because that needs
//! the entities of the namespace, see [`super::missing_targets`].

use serde_json::Value as Json;
use servicebus_arm_template::collected;
use servicebus_broker::{
    EntityDescription, EntityKind, EntityPath, EntityStatus, Property, PropertyType, PropertyValue,
    Tier,
};

use super::duration::FOREVER;
use super::reader::{Located, Locations, Object, Report};
use super::{ConfigError, duration, reader};

/// The properties in a text.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    /// Their positions.
    pub(crate) locations: Locations,
    values: Vec<(&'static Property, PropertyValue)>,
}

impl Properties {
    /// Reads the properties of a kind of entity; values of other types are reported and left out.
    pub(crate) fn read(mut object: Object<'_, '_>, kind: EntityKind) -> Self {
        let locations = object.locations();
        let properties = Property::of(kind);
        let values = properties.filter_map(|own| Some((own, value(&mut object, own, kind)?)));
        let values = values.collect();
        object.finish();
        Self { locations, values }
    }

    /// Returns a description with these properties; invalid ones are reported.
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
            report.setting(&self.locations, problem);
        }
        description
    }
}

/// Returns the properties of an existing entity with changes from `text`, or of a new one with the defaults of the tier.
/// Properties that are fixed at creation must not change.
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
        if current.is_some() {
            object.refuse_nulls();
        }
        let properties = Properties::read(object, kind);
        description = properties.apply(&report, kind, description, tier);
        let fixed = current.map(|current| current.fixed_problems(&description));
        let of_kind = kind.problem(path.as_str(), tier);
        for problem in fixed.into_iter().flatten().chain(of_kind) {
            report.setting(&properties.locations, problem);
        }
    }
    report.finish().map(|()| description)
}

/// Returns the effective properties in the official format. The maximum message size is left out if the tier determines it.
pub fn properties_json(kind: EntityKind, description: &EntityDescription) -> Json {
    let properties = Property::of(kind);
    let shown = properties.filter_map(|property| {
        let value = property.get(description)?;
        Some((property.name.to_owned(), json(value)))
    });
    collected(shown).into()
}

/// Parses the name of an entity.
pub(crate) fn path(report: &Report<'_>, written: &Located<String>) -> Option<EntityPath> {
    let Located { location, value } = written;
    let path = value.parse();
    if let Err(error) = &path {
        report.wrong_value(location, format!("is not a valid name: {error}"), None);
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
            // Negative numbers become 0, which is out of bounds as well.
            PropertyValue::Number(u64::try_from(number).unwrap_or(0))
        }
        PropertyType::Duration => PropertyValue::Duration(object.duration(name)?.value),
        PropertyType::Endless => {
            PropertyValue::Endless(duration::ending(object.duration(name)?.value))
        }
        PropertyType::Status => {
            let words = EntityStatus::of(kind).iter();
            let words: Vec<_> = words.map(|status| (status.name(), *status)).collect();
            PropertyValue::Status(object.choice(name, &words)?.value)
        }
        PropertyType::Target => {
            let written = object.string(name)?;
            // An empty name removes the target.
            let target = (!written.value.is_empty()).then(|| path(object.report(), &written));
            PropertyValue::Target(target.flatten())
        }
        PropertyType::Text => PropertyValue::Text(Some(object.string(name)?.value.into())),
    })
}

/// Returns a value in JSON; an empty name means no target.
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

//! Every property of the broker's table: both APIs and the export return it as given, and both APIs refuse values out of
//! bounds.

use std::time::Duration;

use serde_json::{Value, json};
use servicebus_emulator::broker::{
    Audience, EntityDescription, EntityKind, PROPERTIES, Property, PropertyType, PropertyValue,
};
use servicebus_emulator::config::duration;

use crate::support::*;

/// An entity that is created with one property.
struct Made {
    property: &'static Property,
    kind: EntityKind,
    path: String,
}

/// One of each kind for each property that the kind has and these clients set.
fn all(audience: Audience) -> Vec<Made> {
    let mut all = Vec::new();
    let properties = PROPERTIES.iter().enumerate();
    for (at, property) in properties.filter(|(_, property)| property.audience == audience) {
        for kind in [
            EntityKind::Queue,
            EntityKind::Topic,
            EntityKind::Subscription,
        ] {
            let path = match kind {
                EntityKind::Queue | EntityKind::Topic => format!("{kind}-{at}"),
                EntityKind::Subscription => format!("t/Subscriptions/s-{at}"),
            };
            if Property::named(kind, property.name).is_some() {
                all.push(Made {
                    property,
                    kind,
                    path,
                });
            }
        }
    }
    all
}

impl Made {
    /// A legal value that is not the default, in JSON.
    fn value(&self) -> Value {
        match self.property.value_type {
            PropertyType::Flag => {
                let usual = self.property.get(&EntityDescription::default());
                json!(usual == Some(PropertyValue::Flag(false)))
            }
            PropertyType::Number => json!(2048),
            PropertyType::Duration => json!("PT2M"),
            PropertyType::Endless => json!("P1D"),
            PropertyType::Status => json!("Disabled"),
            PropertyType::Target => json!("other"),
            PropertyType::Text => json!("a remark"),
        }
    }

    /// Values out of bounds, in JSON.
    fn illegal(&self) -> Vec<Value> {
        let Some((least, most)) = self.property.bounds else {
            return Vec::new();
        };
        let beyond = [least.checked_sub(1), most.checked_add(1)];
        let is_number = self.property.value_type == PropertyType::Number;
        let value = |beyond: u64| match is_number {
            true => json!(beyond),
            false => json!(duration::format(Duration::from_secs(beyond))),
        };
        beyond.into_iter().flatten().map(value).collect()
    }

    fn description(&self, value: &Value) -> String {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let name = self.property.name;
        entry(
            &format!("{}Description", self.kind),
            &format!("<{name}>{text}</{name}>"),
        )
    }

    /// Where the administration API has it, in a version that knows every property.
    fn address(&self) -> String {
        format!("/{}?api-version=2021-05", self.path)
    }

    /// What the control API is asked.
    fn control(&self, bus: &Bus, properties: Option<Value>) -> Answer {
        let plural = format!("{}s", self.kind.to_string().to_lowercase());
        let path = self.path.replace('/', "%2F");
        let path = format!("~/{plural}/{path}");
        match properties {
            Some(properties) => bus.http.put(&path, &properties),
            None => bus.http.get(&path),
        }
    }
}

fn bus() -> Bus {
    let bus = Bus::configured(&queues(r#""Tier":"premium""#, &[("other", "")]));
    bus.admin().put("/t", &topic_entry("")).expect(201);
    bus
}

#[test]
fn every_set_property_is_shown_and_exported() {
    let (bus, admin) = bus().with_admin();
    for made in all(Audience::Everyone) {
        let (name, value) = (made.property.name, made.value());
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let created = admin.put(&made.address(), &made.description(&value));
        assert_eq!(created.expect(201).value(name), text, "{}", made.path);
        // Clients write back what they read.
        let read = admin.get(&made.address()).expect(200);
        let again = admin.change(&made.address(), &read.body).expect(200);
        assert_eq!(again.value(name), text, "{}", made.path);
        let shown = made.control(&bus, None).ok();
        assert_eq!(shown["properties"][name], value, "{}", made.path);
        let same = made.control(&bus, Some(shown["properties"].clone())).ok();
        assert_eq!(same, shown, "{}", made.path);
        let exported = bus.http.get("~/topology").ok();
        let exported = exported.to_string();
        assert!(
            exported.contains(&format!("\"{name}\":{value}")),
            "{name}: {exported}"
        );
        admin.delete(&made.address()).expect(200);
    }
}

#[test]
fn properties_of_the_administration_api_are_shown_only_there() {
    let (bus, admin) = bus().with_admin();
    for made in all(Audience::Administration) {
        let (name, value) = (made.property.name, made.value());
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let created = admin.put(&made.address(), &made.description(&value));
        assert_eq!(created.expect(201).value(name), text, "{}", made.path);
        let shown = made.control(&bus, None).ok();
        assert_eq!(shown["properties"].get(name), None, "{}", made.path);
        let same = made.control(&bus, Some(shown["properties"].clone())).ok();
        assert_eq!(same, shown, "{}", made.path);
        let read = admin.get(&made.address()).expect(200);
        assert_eq!(read.value(name), text, "{}", made.path);
        let refused = made.control(&bus, Some(json!({ name: value })));
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    for made in all(Audience::Unsupported) {
        let name = made.property.name;
        let refused = admin.put(&made.address(), &made.description(&json!(true)));
        let refused = refused.expect(400);
        let detail = refused.value("Detail");
        assert!(detail.contains(name), "{}: {detail}", made.path);
        let created = admin.put(&made.address(), &made.description(&json!(false)));
        assert_eq!(created.expect(201).value(name), "false", "{}", made.path);
    }
}

#[test]
fn every_out_of_range_property_is_refused() {
    let (bus, admin) = bus().with_admin();
    for made in all(Audience::Everyone) {
        let name = made.property.name;
        for value in made.illegal() {
            let refused = admin
                .put(&made.address(), &made.description(&value))
                .expect(400);
            let detail = refused.value("Detail");
            assert!(detail.contains(name), "{}: {detail}", made.path);
            let refused = made.control(&bus, Some(json!({ name: value })));
            assert_eq!(refused.status, 400, "{refused:?}");
            let problem = &refused.body["error"]["problems"][0];
            assert_eq!(problem["path"], name, "{problem}");
            let reported = problem["value"].as_str().unwrap_or_default();
            assert_eq!(reported, value.to_string(), "{problem}");
            assert!(!problem["allowed"].as_str().unwrap_or_default().is_empty());
            let kept = made.control(&bus, None);
            assert_eq!(kept.status, 404, "{}", made.path);
        }
    }
}

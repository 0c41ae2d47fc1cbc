//! A JSON object that is read key by key.

use std::time::Duration;

use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use serde_json::Value as Json;
use servicebus_arm_template::collected;

use super::{Located, Location, Locations, Report};
use crate::config::{duration, problem};

/// An object, with the keys that were read.
#[derive(Debug)]
pub(crate) struct Object<'r, 'a> {
    pub(crate) location: Location,
    report: &'r Report<'a>,
    members: Vec<&'r ObjectProp<'a>>,
    known: Vec<&'static str>,
}

impl<'r, 'a> Object<'r, 'a> {
    /// Returns the value as an object; `None`, with a reported problem, if it is not one.
    pub(crate) fn of(report: &'r Report<'a>, value: &'r Value<'a>, path: String) -> Option<Self> {
        Self::at(report, value, Location::of(value, path))
    }

    fn at(report: &'r Report<'a>, value: &'r Value<'a>, location: Location) -> Option<Self> {
        let Some(object) = value.as_object() else {
            wrong_type(report, &location, value, "an object");
            return None;
        };
        let mut members: Vec<&ObjectProp<'_>> = object.properties.iter().collect();
        members.sort_by_key(|member| (member.name.as_str(), member.range.start));
        let object = Self {
            location,
            report,
            members,
            known: Vec::new(),
        };
        object.report_repeated();
        Some(object)
    }

    pub(crate) fn string(&mut self, key: &'static str) -> Option<Located<String>> {
        self.typed(key, "a string", |value| {
            value
                .as_string_lit()
                .map(|literal| literal.value.to_string())
        })
    }

    pub(crate) fn required_string(&mut self, key: &'static str) -> Option<Located<String>> {
        self.require(key);
        self.string(key)
    }

    /// Reads a string that no problem quotes.
    pub(crate) fn required_secret(&mut self, key: &'static str) -> Option<Located<String>> {
        let Located { location, value } = self.required_any(key)?;
        let location = location.secret();
        let Some(text) = value.as_string_lit() else {
            wrong_type(self.report, &location, value, "a string");
            return None;
        };
        let value = text.value.to_string();
        Some(Located { location, value })
    }

    pub(crate) fn boolean(&mut self, key: &'static str) -> Option<Located<bool>> {
        self.typed(key, "true or false", |value| {
            value.as_boolean_lit().map(|literal| literal.value)
        })
    }

    /// Reads an integer; one beyond 64 bits becomes the nearest that fits, which no bound allows.
    pub(crate) fn integer(&mut self, key: &'static str) -> Option<Located<i64>> {
        self.typed(key, "a whole number", |value| {
            let digits = value.as_number_lit()?.value;
            let whole = digits
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_digit());
            let beyond = if digits.starts_with('-') {
                i64::MIN
            } else {
                i64::MAX
            };
            whole.then(|| digits.parse().unwrap_or(beyond))
        })
    }

    /// Reads an ISO 8601 duration.
    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Located<Duration>> {
        let Located { location, value } = self.string(key)?;
        let read = duration::parse(&value);
        if let Err(error) = read {
            let allowed = "durations such as PT30S, PT5M or P14D".to_owned();
            let what = format!("is {error}");
            self.report.wrong_value(&location, what, Some(allowed));
        }
        read.ok().map(|value| Located { location, value })
    }

    /// Reads one of several strings.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<Located<T>> {
        let word = self.string(key)?;
        let value = choose(self.report, &word, choices)?;
        Some(Located {
            location: word.location,
            value,
        })
    }

    pub(crate) fn required_choice<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<Located<T>> {
        self.require(key);
        self.choice(key, choices)
    }

    pub(crate) fn object(&mut self, key: &'static str) -> Option<Self> {
        let value = self.value(key)?;
        Self::of(self.report, value, self.location.key(key))
    }

    pub(crate) fn required_object(&mut self, key: &'static str) -> Option<Self> {
        self.object_if(true, key)
    }

    /// Reads an object, whose key is required if `is_required`.
    pub(crate) fn object_if(&mut self, is_required: bool, key: &'static str) -> Option<Self> {
        if is_required {
            self.require(key);
        }
        self.object(key)
    }

    pub(crate) fn array(&mut self, key: &'static str) -> Option<Located<&'r [Value<'a>]>> {
        self.typed(key, "an array", |value| {
            value.as_array().map(|array| array.elements.as_slice())
        })
    }

    /// Reads an array of objects; other elements are reported and left out.
    pub(crate) fn objects(&mut self, key: &'static str) -> Option<Located<Vec<Self>>> {
        let array = self.array(key)?;
        let items = array.value.iter().enumerate();
        let objects = items
            .filter_map(|(index, value)| Self::of(self.report, value, array.location.index(index)));
        Some(Located {
            value: objects.collect(),
            location: array.location,
        })
    }

    /// As [`Self::objects`], without quoting values, because they contain secrets.
    pub(crate) fn secret_objects(&mut self, key: &'static str) -> Option<Located<Vec<Self>>> {
        let found = self.any(key)?;
        let location = found.location.secret();
        let Some(array) = found.value.as_array() else {
            wrong_type(self.report, &location, found.value, "an array");
            return None;
        };
        let objects = array
            .elements
            .iter()
            .enumerate()
            .filter_map(|(index, value)| {
                let location = Location::of(value, location.index(index)).secret();
                Self::at(self.report, value, location)
            });
        Some(Located {
            value: objects.collect(),
            location,
        })
    }

    /// Reads an array of objects with `read`; empty if the key is missing.
    pub(crate) fn list<T>(&mut self, key: &'static str, read: impl FnMut(Self) -> T) -> Vec<T> {
        let objects = self.objects(key).map(|found| found.value);
        objects.unwrap_or_default().into_iter().map(read).collect()
    }

    pub(crate) fn required_objects(&mut self, key: &'static str) -> Option<Located<Vec<Self>>> {
        self.require(key);
        self.objects(key)
    }

    /// Reads an array of strings from a fixed set; others are reported and left out.
    pub(crate) fn choices<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<Located<Vec<T>>> {
        let array = self.array(key)?;
        let items = array.value.iter().enumerate();
        let chosen = items.filter_map(|(index, value)| {
            let location = Location::of(value, array.location.index(index));
            let Some(word) = value.as_string_lit() else {
                wrong_type(self.report, &location, value, "a string");
                return None;
            };
            let value = word.value.to_string();
            choose(self.report, &Located { location, value }, choices)
        });
        Some(Located {
            value: chosen.collect(),
            location: array.location,
        })
    }

    /// Reads any value, with its position.
    pub(crate) fn any(&mut self, key: &'static str) -> Option<Located<&'r Value<'a>>> {
        let value = self.value(key)?;
        Some(Located {
            location: Location::of(value, self.location.key(key)),
            value,
        })
    }

    pub(crate) fn required_any(&mut self, key: &'static str) -> Option<Located<&'r Value<'a>>> {
        self.require(key);
        self.any(key)
    }

    /// Returns every key with its value in the order of the text, for an object with arbitrary keys.
    pub(crate) fn entries(self) -> Vec<(&'r str, Located<&'r Value<'a>>)> {
        let mut members = self.members;
        members.sort_by_key(|member| member.range.start);
        let entries = members.into_iter().map(|member| {
            let key = member.name.as_str();
            let location = Location::of(&member.value, self.location.key(key));
            let value = &member.value;
            (key, Located { location, value })
        });
        entries.collect()
    }

    /// Returns the number of keys that have a value.
    pub(crate) fn len(&self) -> usize {
        let values = self.members.iter().filter(|member| !is_null(member));
        values.count()
    }

    /// Returns whether it has no keys at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Reports every key with the value null, where an absent key keeps a value that null may be meant to remove.
    pub(crate) fn refuse_nulls(&self) {
        for member in self.members.iter().filter(|member| is_null(member)) {
            let location = Location::of(&member.value, self.location.key(member.name.as_str()));
            wrong_type(self.report, &location, &member.value, "a value");
        }
    }

    /// Returns the report for its problems.
    pub(crate) fn report(&self) -> &'r Report<'a> {
        self.report
    }

    /// Returns the positions of the object and its values.
    pub(crate) fn locations(&self) -> Locations {
        // The first of repeated keys counts, so it is inserted last.
        let members = self.members.iter().rev().map(|member| {
            let key = member.name.as_str();
            let location = Location::of(&member.value, self.location.key(key));
            (key.to_owned(), location)
        });
        Locations {
            members: members.collect(),
            object: self.location.clone(),
        }
    }

    /// Reports the keys that were not read, and returns the position of the object.
    pub(crate) fn finish(self) -> Location {
        let unknown = |member: &&&ObjectProp<'_>| !self.known.contains(&member.name.as_str());
        let mut unknown: Vec<_> = self.members.iter().filter(unknown).collect();
        // In the order of the text, because texts are only created for reported problems.
        unknown.sort_by_key(|member| member.range.start);
        for member in unknown {
            let key = member.name.as_str();
            if !self.report.reports(member.name.range().start) {
                self.report.count();
                continue;
            }
            let message = match problem::probable(key, self.known.iter().copied()) {
                Some(near) => format!("unknown key; did you mean {near:?}?"),
                None => format!("unknown key; known here: {}", self.known.join(", ")),
            };
            self.report.problem(&self.key_place(member), message, None);
        }
        self.location
    }

    fn typed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        read: impl FnOnce(&'r Value<'a>) -> Option<T>,
    ) -> Option<Located<T>> {
        let Located { location, value } = self.any(key)?;
        let Some(value) = read(value) else {
            wrong_type(self.report, &location, value, expected);
            return None;
        };
        Some(Located { location, value })
    }

    /// Returns the value of a key. Null counts as absent: many serializers write it for what is not set.
    fn value(&mut self, key: &'static str) -> Option<&'r Value<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let found = self.find(key).filter(|member| !is_null(member));
        found.map(|member| &member.value)
    }

    fn require(&self, key: &'static str) {
        let found = self.find(key);
        if let Some(null) = found.filter(|member| is_null(member)) {
            let location = Location::of(&null.value, self.location.key(key));
            wrong_type(self.report, &location, &null.value, "a value");
        }
        if found.is_none() {
            let start = self.location.range.start;
            let location = Location {
                path: self.location.path.clone(),
                range: Range::from_byte_index(start),
                is_secret: false,
            };
            self.report
                .problem(&location, format!("the key {key:?} is missing"), None);
        }
    }

    fn find(&self, key: &str) -> Option<&'r ObjectProp<'a>> {
        let index = self
            .members
            .partition_point(|member| member.name.as_str() < key);
        let member = self.members.get(index)?;
        (member.name.as_str() == key).then_some(member)
    }

    fn report_repeated(&self) {
        for pair in self.members.windows(2) {
            if pair[0].name.as_str() == pair[1].name.as_str() {
                let location = self.key_place(pair[1]);
                self.report
                    .problem(&location, "the key stands here a second time", None);
            }
        }
    }

    fn key_place(&self, member: &ObjectProp<'_>) -> Location {
        Location {
            path: self.location.key(member.name.as_str()),
            range: member.name.range(),
            is_secret: false,
        }
    }
}

fn is_null(member: &ObjectProp<'_>) -> bool {
    matches!(member.value, Value::NullKeyword(_))
}

/// Converts a value without its comments. The parser limits its depth.
pub(crate) fn json(value: &Value<'_>) -> Json {
    match value {
        Value::StringLit(text) => Json::String(text.value.to_string()),
        Value::NumberLit(number) => number.value.parse().map_or(Json::Null, Json::Number),
        Value::BooleanLit(flag) => Json::Bool(flag.value),
        Value::Object(object) => {
            let members = object.properties.iter();
            let members =
                members.map(|member| (member.name.as_str().to_owned(), json(&member.value)));
            Json::Object(collected(members))
        }
        Value::Array(array) => array.elements.iter().map(json).collect(),
        Value::NullKeyword(_) => Json::Null,
    }
}

fn choose<T: Copy>(
    report: &Report<'_>,
    word: &Located<String>,
    choices: &[(&str, T)],
) -> Option<T> {
    let found = choices.iter().find(|(name, _)| *name == word.value);
    if found.is_none() {
        let names = choices.iter().map(|(name, _)| format!("{name:?}"));
        let mut allowed = names.collect::<Vec<_>>().join(", ");
        if let Some(near) = problem::probable(&word.value, choices.iter().map(|(name, _)| *name)) {
            allowed.push_str(&format!("; the nearest is {near:?}"));
        }
        report.wrong_value(&word.location, "is not allowed", Some(allowed));
    }
    found.map(|&(_, value)| value)
}

pub(crate) fn wrong_type(
    report: &Report<'_>,
    location: &Location,
    value: &Value<'_>,
    expected: &str,
) {
    let excerpt = report.excerpt(location);
    let message = match value {
        Value::StringLit(_) => format!("{excerpt} is a string"),
        Value::NumberLit(_) if expected == "a whole number" => format!("{excerpt} is not whole"),
        Value::NumberLit(_) => format!("{excerpt} is a number"),
        Value::BooleanLit(_) => format!("{excerpt} is a boolean"),
        Value::Object(_) => "this is an object".to_owned(),
        Value::Array(_) => "this is an array".to_owned(),
        Value::NullKeyword(_) => "this is null".to_owned(),
    };
    report.problem(location, message, Some(expected.to_owned()));
}

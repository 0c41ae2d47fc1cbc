//! The template functions that need only their arguments. What Resource Manager does not evaluate is an error here too,
//! because a substitute would become part of a configuration.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::arguments::Arguments;

/// The maximum length of a text, and number of elements, that a function returns.
pub(crate) const MAX_LENGTH: usize = 64 * 1024;
/// The maximum number of elements of a range.
const MAX_RANGE: usize = 10_000;

/// Evaluates a function; `None` if it is unknown.
pub(crate) fn call(function: &str, values: &[Value]) -> Option<Result<Value, String>> {
    let name = function.to_ascii_lowercase();
    let counts = counts(&name)?;
    if !counts.contains(&values.len()) {
        return Some(Err(wrong_count(function, values.len(), &counts)));
    }
    let arguments = Arguments { function, values };
    let given = of_texts(&name, arguments);
    Some(given.and_then(|value| match length(&value) > MAX_LENGTH {
        true => Err(arguments.too_long()),
        false => Ok(value),
    }))
}

/// Returns the allowed numbers of arguments; `None` if the function is unknown.
fn counts(name: &str) -> Option<RangeInclusive<usize>> {
    Some(match name {
        "true" | "false" | "null" => 0..=0,
        "array" | "bool" | "empty" | "first" | "flatten" | "int" | "items" | "json" | "last"
        | "length" | "not" | "objectkeys" | "shallowmerge" | "string" | "tolower" | "toupper"
        | "trim" => 1..=1,
        "add" | "contains" | "div" | "endswith" | "equals" | "greater" | "greaterorequals"
        | "indexof" | "join" | "less" | "lessorequals" | "mod" | "mul" | "range" | "skip"
        | "split" | "startswith" | "sub" | "take" => 2..=2,
        "padleft" | "substring" => 2..=3,
        "tryget" => 2..=usize::MAX,
        "replace" => 3..=3,
        "createarray" | "createobject" => 0..=usize::MAX,
        "and" | "coalesce" | "concat" | "format" | "max" | "min" | "or" | "union" => 1..=usize::MAX,
        _ => return None,
    })
}

fn wrong_count(function: &str, found: usize, allowed: &RangeInclusive<usize>) -> String {
    let (fewest, most) = (allowed.start(), allowed.end());
    let allowed = match (*most == usize::MAX, fewest == most) {
        (true, _) => format!("{fewest} or more"),
        (false, true) => fewest.to_string(),
        (false, false) => format!("{fewest} to {most}"),
    };
    format!("{found} arguments are not allowed in {function}; allowed: {allowed}")
}

fn of_texts(name: &str, arguments: Arguments<'_>) -> Result<Value, String> {
    let own = |index| arguments.text(index);
    let lower = |index| own(index).map(str::to_lowercase);
    Ok(match name {
        "tolower" => lower(0)?.into(),
        "toupper" => own(0)?.to_uppercase().into(),
        "trim" => own(0)?.trim().into(),
        "string" if arguments.at(0).is_null() => {
            return Err(arguments.refused(&Value::Null, "a value"));
        }
        "string" => text(arguments.at(0)).into(),
        "replace" => {
            let (whole, old, new) = (own(0)?, own(1)?, own(2)?);
            if old.is_empty() {
                return Err(arguments.refused(arguments.at(1), "a string that is not empty"));
            }
            arguments.check_length(whole.matches(old).count().saturating_mul(new.len()))?;
            whole.replace(old, new).into()
        }
        "split" => split(arguments)?,
        "join" => {
            let (elements, between) = (arguments.array(0)?, own(1)?);
            arguments.check_length(elements.len().saturating_mul(between.len()))?;
            let parts = elements.iter().map(|element| arguments.part(element));
            parts.collect::<Result<Vec<_>, _>>()?.join(between).into()
        }
        "substring" => {
            let whole: Vec<u16> = own(0)?.encode_utf16().collect();
            let start = arguments.size(1, whole.len())?;
            let rest = &whole[start..];
            let length = match arguments.values.len() {
                2 => rest.len(),
                _ => arguments.size(2, rest.len())?,
            };
            String::from_utf16_lossy(&rest[..length]).into()
        }
        "padleft" => {
            let (text, width) = (
                arguments.part(arguments.at(0))?,
                arguments.size(1, MAX_LENGTH)?,
            );
            let fill = if arguments.values.len() == 3 {
                own(2)?
            } else {
                " "
            };
            let missing = width.saturating_sub(text.chars().count());
            arguments.check_length(missing.saturating_mul(fill.len()))?;
            (fill.repeat(missing) + &text).into()
        }
        "json" => serde_json::from_str(own(0)?)
            .map_err(|_| arguments.refused(arguments.at(0), "a text that is JSON"))?,
        "startswith" => lower(0)?.starts_with(&lower(1)?).into(),
        "endswith" => lower(0)?.ends_with(&lower(1)?).into(),
        "format" => crate::format::format(arguments)?,
        "concat" => concat(arguments)?,
        _ => return of_collections(name, arguments),
    })
}

fn of_collections(name: &str, arguments: Arguments<'_>) -> Result<Value, String> {
    let first = arguments.at(0);
    let of_a_text = |found: Option<char>| Value::from(found.map(String::from).unwrap_or_default());
    Ok(match (name, first) {
        ("length", Value::String(_) | Value::Array(_) | Value::Object(_)) => length(first).into(),
        ("length", _) => return Err(arguments.refused(first, "a string, an array or an object")),
        ("empty", Value::Bool(_) | Value::Number(_)) => {
            return Err(arguments.refused(first, "a string, an array, an object or null"));
        }
        ("empty", _) => (length(first) == 0).into(),
        ("contains", _) => contains(arguments)?.into(),
        ("first", Value::String(text)) => of_a_text(text.chars().next()),
        ("last", Value::String(text)) => of_a_text(text.chars().next_back()),
        ("first", Value::Array(elements)) => elements.first().cloned().unwrap_or_default(),
        ("last", Value::Array(elements)) => elements.last().cloned().unwrap_or_default(),
        ("first" | "last", _) => return Err(arguments.refused(first, "a string or an array")),
        ("take" | "skip", _) => {
            let count = usize::try_from(arguments.number(1)?.max(0)).unwrap_or(usize::MAX);
            let at = count.min(length(first));
            let range = if name == "take" {
                0..at
            } else {
                at..length(first)
            };
            if let Some(elements) = first.as_array() {
                return Ok(elements[range].into());
            }
            let units: Vec<u16> = arguments.text(0)?.encode_utf16().collect();
            String::from_utf16_lossy(&units[range]).into()
        }
        ("indexof", Value::Array(elements)) => {
            index(elements.iter().position(|own| own == arguments.at(1)))
        }
        ("indexof", _) => {
            let whole = arguments.text(0)?.to_lowercase();
            let found = whole.find(&arguments.text(1)?.to_lowercase());
            index(found.map(|at| whole[..at].encode_utf16().count()))
        }
        ("items" | "objectkeys", Value::Object(members)) => items(name, members),
        ("items" | "objectkeys", _) => return Err(arguments.refused(first, "an object")),
        ("flatten", _) => arrays(Arguments {
            values: arguments.array(0)?,
            ..arguments
        })?,
        ("shallowmerge", _) => shallow_merge(arguments)?,
        ("array", Value::Array(_)) => first.clone(),
        ("array", _) => vec![first.clone()].into(),
        ("tryget", _) => {
            let steps = arguments.values[1..].iter();
            steps.fold(first.clone(), |at, step| {
                get(&at, step).cloned().unwrap_or_default()
            })
        }
        ("union", _) => union(arguments)?,
        ("createarray", _) => arguments.values.into(),
        ("createobject", _) => create_object(arguments)?,
        ("range", _) => {
            let (from, count) = (arguments.number(0)?, arguments.size(1, MAX_RANGE)?);
            let end = i64::try_from(count)
                .ok()
                .and_then(|count| from.checked_add(count));
            let end = end.ok_or_else(|| arguments.overflow())?;
            (from..end).map(Value::from).collect()
        }
        _ => return of_conditions(name, arguments),
    })
}

/// Returns the members of an object in the order of their names, or with `objectkeys` only the names.
fn items(name: &str, members: &Map<String, Value>) -> Value {
    let pairs = members.iter().map(|(own, value)| match name {
        "items" => crate::object([("key", own.as_str().into()), ("value", value.clone())]),
        _ => own.as_str().into(),
    });
    pairs.collect()
}

fn shallow_merge(arguments: Arguments<'_>) -> Result<Value, String> {
    let mut whole = Map::new();
    for own in arguments.array(0)? {
        let members = own.as_object();
        for (name, value) in members.ok_or_else(|| arguments.refused(own, "an object"))? {
            whole.insert(name.clone(), value.clone());
        }
    }
    Ok(whole.into())
}

fn of_conditions(name: &str, arguments: Arguments<'_>) -> Result<Value, String> {
    let first = arguments.at(0);
    Ok(match name {
        "equals" => (first == arguments.at(1)).into(),
        "not" => (!arguments.flag(first)?).into(),
        "and" => arguments.flags()?.iter().all(|flag| *flag).into(),
        "or" => arguments.flags()?.contains(&true).into(),
        "coalesce" => {
            let mut given = arguments.values.iter().filter(|value| !value.is_null());
            given.next().cloned().unwrap_or_default()
        }
        "bool" => match (flag(first), first.as_i64()) {
            (Some(flag), _) => flag.into(),
            (None, Some(number)) => (number != 0).into(),
            (None, None) => return Err(arguments.refused(first, "true, false or a whole number")),
        },
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        _ => return of_numbers(name, arguments),
    })
}

fn of_numbers(name: &str, arguments: Arguments<'_>) -> Result<Value, String> {
    match name {
        "int" => {
            let written = arguments.at(0);
            let number = written.as_i64();
            let number = number.or_else(|| written.as_str()?.trim().parse().ok());
            let allowed = "a whole number of 64 bits";
            let number = number.ok_or_else(|| arguments.refused(written, allowed))?;
            return Ok(number.into());
        }
        "min" | "max" => {
            let numbers = arguments.numbers()?.into_iter();
            let found = if name == "min" {
                numbers.min()
            } else {
                numbers.max()
            };
            let none = || arguments.refused(arguments.at(0), "at least one number");
            return found.map(Value::from).ok_or_else(none);
        }
        "greater" | "greaterorequals" | "less" | "lessorequals" => {
            let order = match (arguments.at(0), arguments.at(1)) {
                (Value::String(one), Value::String(other)) => one.cmp(other),
                (Value::String(_), other) => return Err(arguments.refused(other, "a string")),
                _ => arguments.number(0)?.cmp(&arguments.number(1)?),
            };
            return Ok(match name {
                "greater" => order.is_gt(),
                "greaterorequals" => order.is_ge(),
                "less" => order.is_lt(),
                _ => order.is_le(),
            }
            .into());
        }
        _ => {}
    }
    let (one, other) = (arguments.number(0)?, arguments.number(1)?);
    let result = match name {
        "add" => one.checked_add(other),
        "sub" => one.checked_sub(other),
        "mul" => one.checked_mul(other),
        _ if other == 0 => return Err(arguments.refused(&other.into(), "a divisor other than 0")),
        "div" => one.checked_div(other),
        _ => one.checked_rem(other),
    };
    result.map(Value::from).ok_or_else(|| arguments.overflow())
}

/// Returns a value as text: a string unchanged, other values as JSON.
#[inline(never)]
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Returns a condition, which templates may write as a string; `None` if it is neither true nor false.
pub(crate) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
        Value::String(_) | Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

/// Returns a substitute for a value of these texts that only a deployment knows: 13 letters and digits, always the same
/// ones.
pub(crate) fn unique(texts: &[Value]) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    // FNV-1a.
    let seed: String = texts.iter().map(text).collect::<Vec<_>>().join("-");
    let mut hash = seed.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut letters = String::new();
    for _ in 0..13 {
        letters.push(char::from(LETTERS[(hash % 32) as usize]));
        hash = hash.rotate_right(5).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    letters
}

/// Joins texts, or arrays.
fn concat(arguments: Arguments<'_>) -> Result<Value, String> {
    if arguments.at(0).is_array() {
        return arrays(arguments);
    }
    let mut made = String::new();
    for value in arguments.values {
        made.push_str(&arguments.part(value)?);
        arguments.check_length(made.len())?;
    }
    Ok(made.into())
}

fn arrays(arguments: Arguments<'_>) -> Result<Value, String> {
    let arrays = 0..arguments.values.len();
    let arrays = arrays.map(|index| arguments.array(index));
    let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
    Ok(arrays.concat().into())
}

/// Splits by a delimiter, or by each of several.
fn split(arguments: Arguments<'_>) -> Result<Value, String> {
    let given = arguments.at(1);
    let several = given
        .as_array()
        .map_or_else(|| std::slice::from_ref(given), Vec::as_slice);
    let delimiter = |value: &Value| {
        let text = value.as_str().filter(|text| !text.is_empty());
        let allowed = "a string that is not empty, or an array of such";
        text.map(str::to_owned)
            .ok_or_else(|| arguments.refused(value, allowed))
    };
    let delimiters = several
        .iter()
        .map(delimiter)
        .collect::<Result<Vec<_>, _>>()?;
    let mut parts = vec![arguments.text(0)?];
    for delimiter in &delimiters {
        parts = parts
            .iter()
            .flat_map(|part| part.split(delimiter.as_str()))
            .collect();
    }
    Ok(parts.into())
}

fn create_object(arguments: Arguments<'_>) -> Result<Value, String> {
    let (pairs, rest) = arguments.values.as_chunks::<2>();
    if let [odd] = rest {
        return Err(arguments.refused(odd, "a value for each name"));
    }
    let mut members = Map::new();
    for [name, value] in pairs {
        let text = name
            .as_str()
            .ok_or_else(|| arguments.refused(name, "a string"))?;
        members.insert(text.to_owned(), value.clone());
    }
    Ok(members.into())
}

fn index(found: Option<usize>) -> Value {
    found.map_or_else(|| (-1).into(), Value::from)
}

/// Returns an element of an array or a member of an object.
pub(crate) fn get<'a>(value: &'a Value, index: &Value) -> Option<&'a Value> {
    match index.as_u64() {
        Some(index) => value.get(usize::try_from(index).ok()?),
        None => crate::member(value, index.as_str()?),
    }
}

/// Returns arrays as one without repetitions, or objects as one with the last value of each member.
fn union(arguments: Arguments<'_>) -> Result<Value, String> {
    if arguments.at(0).is_object() {
        let mut whole = Value::Null;
        for value in arguments.values {
            if !value.is_object() {
                return Err(arguments.refused(value, "an object"));
            }
            merge(&mut whole, value);
        }
        return Ok(whole);
    }
    let mut whole = Vec::new();
    for index in 0..arguments.values.len() {
        for element in arguments.array(index)? {
            if !whole.contains(element) {
                whole.push(element.clone());
            }
        }
    }
    Ok(whole.into())
}

/// Merges objects, and the objects in them.
fn merge(whole: &mut Value, other: &Value) {
    match (whole, other) {
        (Value::Object(members), Value::Object(others)) => {
            for (name, other) in others {
                merge(members.entry(name.as_str()).or_insert(Value::Null), other);
            }
        }
        (whole, other) => *whole = other.clone(),
    }
}

pub(crate) fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.encode_utf16().count(),
        Value::Array(elements) => elements.len(),
        Value::Object(members) => members.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn contains(arguments: Arguments<'_>) -> Result<bool, String> {
    let (container, wanted) = (arguments.at(0), arguments.at(1));
    let wanted = || arguments.part(wanted);
    Ok(match container {
        Value::Array(elements) => elements.contains(arguments.at(1)),
        Value::Object(members) => {
            let wanted = wanted()?;
            members
                .keys()
                .any(|name| name.eq_ignore_ascii_case(&wanted))
        }
        Value::String(text) => text.contains(&wanted()?),
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            return Err(arguments.refused(container, "a string, an array or an object"));
        }
    })
}

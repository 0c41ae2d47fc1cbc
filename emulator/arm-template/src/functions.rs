//! The functions of templates that need nothing but their arguments.

use serde_json::{Map, Value};

/// Longest text and most elements that a function makes.
const MAX_LENGTH: usize = 64 * 1024;

/// What a function gives; none where it is not known.
pub(crate) fn call(name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
    let given = match name {
        "format" => format(arguments),
        "int" => {
            let number = at(arguments, 0);
            let read = text(number).trim().parse::<i64>();
            read.map(Value::from)
                .map_err(|_| format!("int({number}) is no number"))
        }
        _ => {
            let value = of_texts(name, arguments);
            let value = value.or_else(|| of_collections(name, arguments));
            let value = value.or_else(|| of_conditions(name, arguments));
            Ok(value.or_else(|| of_numbers(name, arguments))?)
        }
    };
    let too_long = |value: &Value| length(value) > MAX_LENGTH;
    Some(match given {
        Ok(value) if too_long(&value) => Err(format!(
            "{name} makes more than {MAX_LENGTH} characters or elements"
        )),
        given => given,
    })
}

#[inline(never)]
fn at(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Null)
}

fn of_texts(name: &str, arguments: &[Value]) -> Option<Value> {
    let own = |index| text(at(arguments, index));
    let lower = |index| own(index).to_lowercase();
    Some(match name {
        "tolower" => lower(0).into(),
        "toupper" => own(0).to_uppercase().into(),
        "trim" => own(0).trim().into(),
        "string" => own(0).into(),
        "replace" => own(0).replace(&own(1), &own(2)).into(),
        "split" => own(0).split(&own(1)).map(Value::from).collect(),
        "join" => {
            let parts: Vec<String> = elements(at(arguments, 0)).map(text).collect();
            parts.join(&own(1)).into()
        }
        "substring" => {
            let size = |index, usual| {
                let written = at(arguments, index).as_u64();
                written
                    .and_then(|size| usize::try_from(size).ok())
                    .unwrap_or(usize::MAX)
                    .min(usual)
            };
            let part = own(0)
                .chars()
                .skip(size(1, MAX_LENGTH))
                .take(size(2, MAX_LENGTH))
                .collect::<String>();
            part.into()
        }
        "startswith" => lower(0).starts_with(&lower(1)).into(),
        "endswith" => lower(0).ends_with(&lower(1)).into(),
        _ => return None,
    })
}

fn of_collections(name: &str, arguments: &[Value]) -> Option<Value> {
    let first = at(arguments, 0);
    Some(match name {
        "concat" => concat(arguments),
        "length" => length(first).into(),
        "empty" => (first.is_null() || length(first) == 0).into(),
        "contains" => contains(first, at(arguments, 1)).into(),
        "first" => elements(first).next().cloned().unwrap_or_default(),
        "last" => elements(first).last().cloned().unwrap_or_default(),
        "createarray" => arguments.into(),
        "createobject" => {
            let mut members = Map::new();
            for pair in arguments.chunks_exact(2) {
                members.insert(text(&pair[0]), pair[1].clone());
            }
            members.into()
        }
        "range" => {
            let (from, count) = (number(first), number(at(arguments, 1)).clamp(0, 10_000));
            let numbers = from..from.saturating_add(count);
            numbers.map(Value::from).collect()
        }
        _ => return None,
    })
}

fn of_conditions(name: &str, arguments: &[Value]) -> Option<Value> {
    let first = at(arguments, 0);
    Some(match name {
        "equals" => (first == at(arguments, 1)).into(),
        "not" => (!is_true(first)).into(),
        "and" => arguments.iter().all(is_true).into(),
        "or" => arguments.iter().any(is_true).into(),
        "coalesce" => {
            let mut given = arguments.iter().filter(|value| !value.is_null());
            given.next().cloned().unwrap_or_default()
        }
        "bool" => is_true(first).into(),
        "true" => true.into(),
        "false" => false.into(),
        "null" => Value::Null,
        _ => return None,
    })
}

fn of_numbers(name: &str, arguments: &[Value]) -> Option<Value> {
    let (one, other) = (number(at(arguments, 0)), number(at(arguments, 1)));
    Some(match name {
        "add" => one.saturating_add(other).into(),
        "sub" => one.saturating_sub(other).into(),
        "mul" => one.saturating_mul(other).into(),
        "div" => one.checked_div(other).into(),
        "mod" => one.checked_rem(other).into(),
        "min" => arguments.iter().filter_map(Value::as_i64).min().into(),
        "max" => arguments.iter().filter_map(Value::as_i64).max().into(),
        "greater" => (one > other).into(),
        "less" => (one < other).into(),
        _ => return None,
    })
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// A value as a text: a text as it is, all else as JSON.
#[inline(never)]
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Whether a condition holds.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(word) => word.eq_ignore_ascii_case("true"),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// What stands in for something of these texts that only a deployment knows: 13 letters and digits, always the same ones.
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

fn concat(arguments: &[Value]) -> Value {
    if arguments.first().is_some_and(Value::is_array) {
        return arguments.iter().flat_map(elements).cloned().collect();
    }
    arguments.iter().map(text).collect::<String>().into()
}

/// A text with the arguments in the places of their numbers in braces; what is said of their form is not heeded.
fn format(arguments: &[Value]) -> Result<Value, String> {
    let (pattern, arguments) = arguments.split_first().ok_or("format has no arguments")?;
    let pattern = text(pattern);
    let mut made = String::new();
    let mut rest = pattern.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        made.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            made.push_str(brace);
            rest = after;
            continue;
        }
        let (place, after) = rest
            .split_once('}')
            .ok_or("format has a brace without an end")?;
        let number = place.split([',', ':']).next().unwrap_or_default();
        let argument = number
            .trim()
            .parse()
            .ok()
            .and_then(|index: usize| arguments.get(index));
        let argument = argument.ok_or_else(|| format!("format has no argument {{{place}}}"))?;
        made.push_str(&text(argument));
        if made.len() > MAX_LENGTH {
            return Err(format!("format makes more than {MAX_LENGTH} characters"));
        }
        rest = after;
    }
    made.push_str(rest);
    Ok(made.into())
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(elements) => elements.len(),
        Value::Object(members) => members.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn contains(container: &Value, wanted: &Value) -> bool {
    match container {
        Value::Array(elements) => elements.contains(wanted),
        Value::Object(members) => {
            let wanted = text(wanted);
            members
                .keys()
                .any(|name| name.eq_ignore_ascii_case(&wanted))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text(container).contains(&text(wanted))
        }
    }
}

//! Compares a JSON value with what a test expects.
//!
//! Objects may have more members than expected, at every depth. Arrays and other values must be equal, because order and
//! length of an array have a meaning. Numbers are equal by value: 1 equals 1.0.

use serde_json::{Number, Value};

/// Returns the first place where `found` differs from `expected`, with its value; `None` if there is no difference.
pub(crate) fn difference(expected: &Value, found: &Value) -> Option<String> {
    differing(expected, found, "")
}

fn differing(expected: &Value, found: &Value, path: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            expected.iter().find_map(|(name, expected)| {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                match found.get(name) {
                    Some(found) => differing(expected, found, &path),
                    None => Some(format!("{path} is missing")),
                }
            })
        }
        (Value::Array(wanted), Value::Array(items)) if wanted.len() == items.len() => {
            let mut pairs = wanted.iter().zip(items).enumerate();
            pairs.find_map(|(index, (wanted, item))| {
                differing(wanted, item, &format!("{path}[{index}]"))
            })
        }
        (Value::Number(expected), Value::Number(found)) if are_equal(expected, found) => None,
        _ if expected == found => None,
        _ => Some(match path {
            "" => format!("it is {found}"),
            path => format!("{path} is {found}"),
        }),
    }
}

/// Compares two integers exactly, because different ones beyond 2^53 are the same float.
fn are_equal(expected: &Number, found: &Number) -> bool {
    let has_float = expected.is_f64() || found.is_f64();
    expected == found || has_float && expected.as_f64() == found.as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn additional_json_members_are_allowed() {
        let found = json!({"id": 7, "lines": [{"sku": "a", "price": 1.0}], "note": null});
        let expectations = [
            json!({}),
            json!({"id": 7}),
            json!({"id": 7.0, "note": null}),
            json!({"lines": [{"sku": "a"}]}),
            json!({"lines": [{"price": 1}]}),
        ];
        for expected in expectations {
            assert_eq!(difference(&expected, &found), None, "{expected}");
        }
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let found = json!({"id": 7, "lines": [{"sku": "a"}]});
        let cases = [
            (json!({"id": 8}), "id is 7"),
            (json!({"total": 3}), "total is missing"),
            (json!({"lines": [{"sku": "b"}]}), "lines[0].sku is \"a\""),
            (json!({"lines": []}), "lines is [{\"sku\":\"a\"}]"),
            (json!([1]), "it is {\"id\":7,\"lines\":[{\"sku\":\"a\"}]}"),
        ];
        for (expected, difference) in cases {
            let found = super::difference(&expected, &found);
            assert_eq!(found.as_deref(), Some(difference));
        }
    }

    #[test]
    fn integers_that_are_the_same_float_differ() {
        let found = json!(9_007_199_254_740_993_u64);
        let differing = |expected| difference(&expected, &found);
        assert_eq!(
            differing(json!(9_007_199_254_740_992_u64)).as_deref(),
            Some("it is 9007199254740993")
        );
        assert_eq!(differing(json!(9_007_199_254_740_992.0)), None);
    }
}

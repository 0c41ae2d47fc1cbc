//! The arguments of a template function, read as the types that it takes. Other types are errors, as in Resource Manager.

use serde_json::Value;

use crate::functions::MAX_LENGTH;

/// The arguments of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// The name of the function as written.
    pub(crate) function: &'a str,
    pub(crate) values: &'a [Value],
}

impl<'a> Arguments<'a> {
    /// Returns an argument; null if it is missing.
    pub(crate) fn at(self, index: usize) -> &'a Value {
        self.values.get(index).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(self, index: usize) -> Result<&'a str, String> {
        let value = self.at(index);
        value
            .as_str()
            .ok_or_else(|| self.refused(value, "a string"))
    }

    pub(crate) fn number(self, index: usize) -> Result<i64, String> {
        let value = self.at(index);
        value
            .as_i64()
            .ok_or_else(|| self.refused(value, "a whole number of 64 bits"))
    }

    /// Returns a number from 0 to `most`.
    pub(crate) fn size(self, index: usize, most: usize) -> Result<usize, String> {
        let size = self.number(index)?;
        let allowed = usize::try_from(size).ok().filter(|size| *size <= most);
        allowed.ok_or_else(|| self.refused(self.at(index), &format!("0 to {most}")))
    }

    pub(crate) fn array(self, index: usize) -> Result<&'a [Value], String> {
        let value = self.at(index);
        let array = value.as_array().map(Vec::as_slice);
        array.ok_or_else(|| self.refused(value, "an array"))
    }

    pub(crate) fn flag(self, value: &Value) -> Result<bool, String> {
        let flag = value.as_bool();
        flag.ok_or_else(|| self.refused(value, "true or false"))
    }

    /// Returns all arguments as conditions.
    pub(crate) fn flags(self) -> Result<Vec<bool>, String> {
        self.values.iter().map(|value| self.flag(value)).collect()
    }

    /// Returns all arguments, or the elements of the only one, as numbers.
    pub(crate) fn numbers(self) -> Result<Vec<i64>, String> {
        let values = match self.values {
            [Value::Array(elements)] => elements,
            values => values,
        };
        let allowed = "whole numbers of 64 bits, or an array of them";
        let number = |value: &Value| value.as_i64().ok_or_else(|| self.refused(value, allowed));
        values.iter().map(number).collect()
    }

    /// Returns the text of a value that becomes part of another text.
    pub(crate) fn part(self, value: &Value) -> Result<String, String> {
        match value {
            Value::String(_) | Value::Bool(_) | Value::Number(_) => Ok(crate::text(value)),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(self.refused(value, "a string, a number, true or false"))
            }
        }
    }

    /// The error of a result that does not fit 64 bits.
    pub(crate) fn overflow(self) -> String {
        let values: Vec<_> = self.values.iter().map(Value::to_string).collect();
        format!(
            "{}({}) is not allowed; allowed: a result of 64 bits",
            self.function,
            values.join(", ")
        )
    }

    /// Rejects a text of this size before it is built.
    pub(crate) fn check_length(self, bytes: usize) -> Result<(), String> {
        match bytes > MAX_LENGTH * 4 {
            true => Err(self.too_long()),
            false => Ok(()),
        }
    }

    pub(crate) fn too_long(self) -> String {
        format!(
            "{} makes more than {MAX_LENGTH} characters or elements",
            self.function
        )
    }

    /// The error of an argument that the function does not take.
    pub(crate) fn refused(self, value: &Value, allowed: &str) -> String {
        let written: String = value.to_string().chars().take(60).collect();
        format!(
            "{written} is not allowed in {}; allowed: {allowed}",
            self.function
        )
    }
}

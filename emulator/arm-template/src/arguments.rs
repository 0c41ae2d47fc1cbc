//! The arguments of a function, read as the types that it takes; what is of another type is refused as Resource Manager does.

use serde_json::Value;

use crate::functions::MAX_LENGTH;

/// The arguments of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    /// The function as it is written.
    pub(crate) function: &'a str,
    pub(crate) values: &'a [Value],
}

impl<'a> Arguments<'a> {
    /// An argument; null where there is none.
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

    /// A number from 0 to the greatest that is allowed.
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

    /// All arguments as conditions.
    pub(crate) fn flags(self) -> Result<Vec<bool>, String> {
        self.values.iter().map(|value| self.flag(value)).collect()
    }

    /// All arguments, or the elements of the only one, as numbers.
    pub(crate) fn numbers(self) -> Result<Vec<i64>, String> {
        let values = match self.values {
            [Value::Array(elements)] => elements,
            values => values,
        };
        let allowed = "whole numbers of 64 bits, or an array of them";
        let number = |value: &Value| value.as_i64().ok_or_else(|| self.refused(value, allowed));
        values.iter().map(number).collect()
    }

    /// What becomes part of a text as it is.
    pub(crate) fn part(self, value: &Value) -> Result<String, String> {
        match value {
            Value::String(_) | Value::Bool(_) | Value::Number(_) => Ok(crate::text(value)),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                Err(self.refused(value, "a string, a number, true or false"))
            }
        }
    }

    /// A result that has no number of 64 bits.
    pub(crate) fn overflow(self) -> String {
        let values: Vec<_> = self.values.iter().map(Value::to_string).collect();
        format!(
            "{}({}) is not allowed; allowed: a result of 64 bits",
            self.function,
            values.join(", ")
        )
    }

    /// Refuses a text of so many bytes before it is made.
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

    /// Why an argument is none that the function takes.
    pub(crate) fn refused(self, value: &Value, allowed: &str) -> String {
        let written: String = value.to_string().chars().take(60).collect();
        format!(
            "{written} is not allowed in {}; allowed: {allowed}",
            self.function
        )
    }
}

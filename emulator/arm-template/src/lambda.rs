//! The template functions `map` and `filter`, which take lambdas, as Bicep compiles nested loops to them. What a lambda
//! returns counts by its size, because it may be larger than the expressions for it.

use serde_json::Value;

use crate::arguments::Arguments;
use crate::expression::Expression;
use crate::scope::Scope;

/// As how many expressions each value in a result counts, so that their limit is also one of memory.
const RESULT_STEPS: usize = 8;

impl Scope<'_> {
    /// Evaluates `map`, or `filter`.
    pub(crate) fn with_lambda(
        &self,
        function: &str,
        written: &[Expression],
        is_filter: bool,
        depth: usize,
    ) -> Result<Value, String> {
        let [array, lambda] = written else {
            return Err(format!("{function} takes two arguments"));
        };
        let values = [self.expression(array, depth + 1)?];
        let arguments = Arguments {
            function,
            values: &values,
        };
        let mut list = Vec::new();
        for (at, own) in arguments.array(0)?.iter().enumerate() {
            let made = self.apply(lambda, &[own, &at.into()], depth)?;
            if !is_filter {
                list.push(made);
            } else if arguments.flag(&made)? {
                list.push(own.clone());
            }
        }
        Ok(list.into())
    }

    /// Evaluates a lambda with these values of its variables, of which it may leave out the last.
    fn apply(&self, lambda: &Expression, values: &[&Value], depth: usize) -> Result<Value, String> {
        let parts = lambda.lambda().and_then(<[Expression]>::split_last);
        let (body, names) = parts.ok_or("a lambda is missing where a function takes one")?;
        let before = self.lambda_variables.borrow().len();
        for (name, value) in names.iter().zip(values) {
            if let Expression::Text(name) = name {
                let variable = (name.clone(), (*value).clone());
                self.lambda_variables.borrow_mut().push(variable);
            }
        }
        let value = self.expression(body, depth + 1);
        self.lambda_variables.borrow_mut().truncate(before);
        self.counted(value?, RESULT_STEPS, depth)
    }

    /// Returns the value of a lambda's variable.
    pub(crate) fn lambda_variable(&self, name: &str, depth: usize) -> Result<Value, String> {
        let variables = self.lambda_variables.borrow();
        let mut inner = variables.iter().rev();
        let found = inner.find(|(own, _)| own.eq_ignore_ascii_case(name));
        let (_, value) = found.ok_or_else(|| format!("there is no lambda variable {name:?}"))?;
        self.counted(value.clone(), 1, depth)
    }

    /// Counts each part of a value as so many expressions, because it may have more of them than the expressions for it.
    pub(crate) fn counted(
        &self,
        value: Value,
        steps: usize,
        depth: usize,
    ) -> Result<Value, String> {
        self.step(depth, size(&value) * steps)?;
        Ok(value)
    }
}

/// Returns the number of values in a value. Of a text, 64 bytes count as one, and an object counts as eight, because it is as
/// large.
fn size(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len() / 64,
        Value::Array(elements) => elements.iter().map(size).sum(),
        Value::Object(members) => {
            let each = members.iter();
            7 + each
                .map(|(name, own)| name.len() / 64 + size(own))
                .sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

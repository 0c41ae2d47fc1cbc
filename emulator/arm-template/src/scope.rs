//! The scope of expressions: the parameters and variables of a template, and the index of a copy.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::expression::{self, Expression};
use crate::functions::{self, flag, text, unique};
use crate::{member, object};

/// The maximum depth of references between parameters, variables and expressions, which ends cycles.
const MAX_DEPTH: usize = 100;
/// The maximum number of evaluated expressions and of values in their results per template. Bicep repeats the array of a loop
/// wherever the loop uses an element, so that its cost grows with the square of its length.
const MAX_STEPS: usize = 32_000_000;

/// The resource group of all imported resources.
pub(crate) const GROUP: &str = "imported";
/// Its subscription.
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// The given value of a parameter, or why it cannot be evaluated: an error only where the parameter is used.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) value: Result<Value, String>,
    /// Functions in it whose values were substituted.
    pub(crate) stood_in: BTreeSet<String>,
}

/// The scope in which a template's expressions are evaluated.
#[derive(Debug)]
pub(crate) struct Scope<'a> {
    template: &'a Value,
    /// The given values of its parameters.
    given: BTreeMap<String, Given>,
    /// The copy loops around the resource, by name, the innermost last.
    pub(crate) copies: RefCell<Vec<(String, i64)>>,
    /// The variables of the lambdas around the expression, the innermost last.
    pub(crate) lambda_variables: RefCell<Vec<(String, Value)>>,
    /// Functions that only a deployment can evaluate, and whose values were substituted.
    pub(crate) stood_in: RefCell<BTreeSet<String>>,
    /// The values of variables that were used, by their names in lower case.
    variables: RefCell<BTreeMap<String, Substituted>>,
    pub(crate) steps: Cell<usize>,
}

/// A value, and the functions in it whose values were substituted.
type Substituted = (Value, BTreeSet<String>);

impl<'a> Scope<'a> {
    /// `steps` were evaluated before.
    pub(crate) fn new(template: &'a Value, given: BTreeMap<String, Given>, steps: usize) -> Self {
        Self {
            template,
            given,
            copies: RefCell::default(),
            lambda_variables: RefCell::default(),
            stood_in: RefCell::default(),
            variables: RefCell::default(),
            steps: Cell::new(steps),
        }
    }

    /// Returns a value with all expressions evaluated, or describes the error.
    pub(crate) fn evaluate(&self, value: &Value) -> Result<Value, String> {
        self.value(value, 0)
    }

    fn value(&self, value: &Value, depth: usize) -> Result<Value, String> {
        self.step(depth, 1)?;
        match value {
            Value::String(text) => match expression::body(text) {
                Err(plain) => Ok(plain.into()),
                Ok(body) => {
                    let parsed = expression::parse(body);
                    let parsed = parsed
                        .map_err(|error| format!("{text:?} is not an expression: {error}"))?;
                    self.expression(&parsed, depth + 1)
                }
            },
            Value::Array(elements) => {
                let elements = elements
                    .iter()
                    .map(|element| self.value(element, depth + 1));
                elements.collect()
            }
            Value::Object(members) => {
                let mut evaluated = Map::new();
                for (name, own) in members {
                    match copies(name, own) {
                        Some(copies) => {
                            for copy in copies {
                                let name = member(copy, "name").map(text).unwrap_or_default();
                                evaluated.insert(name, self.copied(copy, depth + 1)?);
                            }
                        }
                        None => {
                            evaluated.insert(name.clone(), self.value(own, depth + 1)?);
                        }
                    }
                }
                Ok(evaluated.into())
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => Ok(plain.clone()),
        }
    }

    /// Counts evaluated expressions.
    pub(crate) fn step(&self, depth: usize, steps: usize) -> Result<(), String> {
        self.steps.set(self.steps.get().saturating_add(steps));
        match (depth > MAX_DEPTH, self.steps.get() > MAX_STEPS) {
            (true, _) => Err(format!(
                "parameters, variables and expressions refer to one another deeper than {MAX_DEPTH}, or go round"
            )),
            (_, true) => Err(format!(
                "the template has more than {MAX_STEPS} expressions and values to evaluate"
            )),
            (false, false) => Ok(()),
        }
    }

    pub(crate) fn expression(
        &self,
        expression: &Expression,
        depth: usize,
    ) -> Result<Value, String> {
        self.step(depth, 1)?;
        match expression {
            Expression::Text(text) => Ok(text.as_str().into()),
            Expression::Number(number) => Ok((*number).into()),
            Expression::Member(object, name) => {
                let object = self.expression(object, depth + 1)?;
                let found = member(&object, name).cloned();
                found.ok_or_else(|| format!("there is no member {name:?} in {}", excerpt(&object)))
            }
            Expression::Index(object, index) => {
                let object = self.expression(object, depth + 1)?;
                let index = self.expression(index, depth + 1)?;
                let found = functions::get(&object, &index).cloned();
                found.ok_or_else(|| format!("there is no {index} in {}", excerpt(&object)))
            }
            Expression::Call(name, arguments) => self.call(name, arguments, depth),
        }
    }

    fn call(&self, name: &str, arguments: &[Expression], depth: usize) -> Result<Value, String> {
        let known = name.to_ascii_lowercase();
        if known == "if" {
            let [condition, then, otherwise] = arguments else {
                return Err("if takes three arguments".to_owned());
            };
            let condition = [self.expression(condition, depth + 1)?];
            let condition = Arguments {
                function: name,
                values: &condition,
            }
            .flag(&condition[0])?;
            return self.expression(if condition { then } else { otherwise }, depth + 1);
        }
        if matches!(known.as_str(), "map" | "filter") {
            return self.with_lambda(name, arguments, known == "filter", depth);
        }
        if arguments.iter().any(|own| own.lambda().is_some()) {
            return Err(format!("{} with a lambda", not_supported(name)));
        }
        let evaluated = arguments
            .iter()
            .map(|argument| self.expression(argument, depth + 1));
        let arguments: Vec<Value> = evaluated.collect::<Result<_, _>>()?;
        let first = || arguments.first().map(text).unwrap_or_default();
        match known.as_str() {
            "parameters" => self.parameter(&first(), depth),
            "variables" => self.variable(&first(), depth),
            "lambdavariables" => self.lambda_variable(&first(), depth),
            "copyindex" => self.copy_index(Arguments {
                function: name,
                values: &arguments,
            }),
            "resourcegroup" => Ok(object([
                (
                    "id",
                    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}").into(),
                ),
                ("name", GROUP.into()),
                ("location", "westeurope".into()),
                ("tags", object([])),
            ])),
            "subscription" => Ok(object([
                ("id", format!("/subscriptions/{SUBSCRIPTION}").into()),
                ("subscriptionId", SUBSCRIPTION.into()),
                ("tenantId", SUBSCRIPTION.into()),
                ("displayName", GROUP.into()),
            ])),
            "deployment" => Ok(object([
                ("name", GROUP.into()),
                ("location", "westeurope".into()),
            ])),
            "resourceid" | "subscriptionresourceid" => resource_id(Arguments {
                function: name,
                values: &arguments,
            }),
            "uniquestring" | "newguid" | "guid" | "utcnow" => {
                self.stood_in.borrow_mut().insert(name.to_owned());
                Ok(unique(&arguments).into())
            }
            _ => self.counted(result_of(name, &arguments)?, 1, depth),
        }
    }

    fn parameter(&self, name: &str, depth: usize) -> Result<Value, String> {
        let mut given = self.given.iter();
        let given = given.find(|(own, _)| own.eq_ignore_ascii_case(name));
        let given = given.map(|(_, given)| {
            let names = given.stood_in.iter().cloned();
            self.stood_in.borrow_mut().extend(names);
            let value = given.value.clone();
            value.map_err(|problem| format!("the value of the parameter {name}: {problem}"))
        });
        let declared = member(self.template, "parameters").and_then(|all| member(all, name));
        let declared = declared.ok_or_else(|| format!("there is no parameter {name:?}"))?;
        let declares = |what: &str| declares(self.template, declared, what);
        let value = match (given.transpose()?, declares("defaultValue")) {
            // Null is no value, as for Resource Manager.
            (Some(value), _) if !value.is_null() => value,
            (_, Some(usual)) => self.value(usual, depth + 1)?,
            _ if declares("nullable").and_then(flag) == Some(true) => Value::Null,
            _ => {
                return Err(format!(
                    "the parameter {name} has no default and needs a value"
                ));
            }
        };
        // The length of what stands in for a value says nothing about it.
        let is_substituted = !self.stood_in.borrow().is_empty();
        match limits(&value, declares).filter(|_| !is_substituted) {
            Some(allowed) => Err(format!(
                "{} is not allowed for the parameter {name}; allowed: {allowed}",
                excerpt(&value)
            )),
            None => Ok(value),
        }
    }

    /// Returns the value of a variable, which is evaluated once: it cannot depend on where it is used.
    fn variable(&self, name: &str, depth: usize) -> Result<Value, String> {
        let key = name.to_lowercase();
        let known = self.variables.borrow().get(&key).cloned();
        let (value, stood_in) = match known {
            Some(known) => known,
            None => {
                let copies = self.copies.take();
                let lambda_variables = self.lambda_variables.take();
                let before = self.stood_in.take();
                let value = self.new_variable(name, depth);
                self.copies.replace(copies);
                self.lambda_variables.replace(lambda_variables);
                let evaluated = (value?, self.stood_in.replace(before));
                let mut variables = self.variables.borrow_mut();
                variables.insert(key, evaluated.clone());
                evaluated
            }
        };
        self.stood_in.borrow_mut().extend(stood_in);
        self.counted(value, 1, depth)
    }

    fn new_variable(&self, name: &str, depth: usize) -> Result<Value, String> {
        let variables = member(self.template, "variables");
        if let Some(found) = variables.and_then(|variables| member(variables, name)) {
            return self.value(found, depth + 1);
        }
        let copies = variables.and_then(|variables| member(variables, "copy")?.as_array());
        let is_named = |copy: &&Value| {
            let own = member(copy, "name").and_then(Value::as_str);
            own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        };
        let copy = copies.and_then(|copies| copies.iter().find(is_named));
        let copy = copy.ok_or_else(|| format!("there is no variable {name:?}"))?;
        self.copied(copy, depth)
    }

    /// Returns an array with the input of a copy for each index.
    fn copied(&self, copy: &Value, depth: usize) -> Result<Value, String> {
        let name = member(copy, "name").map(text).unwrap_or_default();
        let input = member(copy, "input").unwrap_or(&Value::Null);
        let count = self.count(copy, depth + 1)?;
        let elements = (0..count).map(|index| {
            self.copies.borrow_mut().push((name.clone(), index));
            let element = self.value(input, depth + 1);
            self.copies.borrow_mut().pop();
            element
        });
        elements.collect()
    }

    /// Returns the number of copies.
    pub(crate) fn count(&self, copy: &Value, depth: usize) -> Result<i64, String> {
        const MOST: i64 = 800;
        let count = member(copy, "count").unwrap_or(&Value::Null);
        let count = self.value(count, depth)?;
        let number = count.as_i64().filter(|count| (0..=MOST).contains(count));
        number.ok_or_else(|| format!("the count {count} is not allowed; allowed: 0 to {MOST}"))
    }

    /// Returns the index of a copy loop, the named or the innermost one, plus an offset.
    fn copy_index(&self, arguments: Arguments<'_>) -> Result<Value, String> {
        let name = arguments.at(0).as_str();
        let copies = self.copies.borrow();
        let mut inner = copies.iter().rev();
        let found = match name {
            Some(name) => inner.find(|(own, _)| own.eq_ignore_ascii_case(name)),
            None => inner.next(),
        };
        let (_, index) = found.ok_or("copyIndex stands outside of a copy")?;
        let at = usize::from(name.is_some());
        let offset = match arguments.values.len() > at {
            true => arguments.number(at)?,
            false => 0,
        };
        let sum = index.checked_add(offset);
        sum.map(Value::from).ok_or_else(|| arguments.overflow())
    }
}

/// Returns what a parameter declares, itself or by the definition that it refers to.
pub(crate) fn declares<'a>(template: &'a Value, own: &'a Value, name: &str) -> Option<&'a Value> {
    let referred = |own: &&'a Value| {
        let reference = member(own, "$ref")?.as_str()?;
        let definition = reference.strip_prefix("#/definitions/")?;
        member(member(template, "definitions")?, definition)
    };
    let mut all = successors(Some(own), referred).take(MAX_DEPTH);
    all.find_map(|own| member(own, name))
}

/// Returns what a parameter allows if this value is not allowed. The length of a text or array may have limits, and a number.
fn limits<'a>(value: &Value, declares: impl Fn(&str) -> Option<&'a Value>) -> Option<String> {
    let listed = declares("allowedValues").filter(|listed| !is_allowed(value, listed));
    if let Some(listed) = listed.filter(|_| !value.is_null()) {
        return Some(listed.to_string());
    }
    let (size, limits, unit) = match value {
        Value::Number(number) => (number.as_i64()?, ["minValue", "maxValue"], ""),
        Value::String(_) | Value::Array(_) => {
            let length = i64::try_from(functions::length(value)).ok()?;
            (length, ["minLength", "maxLength"], "a length of ")
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => return None,
    };
    let limit = |name, usual| declares(name).and_then(Value::as_i64).unwrap_or(usual);
    let (least, most) = (limit(limits[0], i64::MIN), limit(limits[1], i64::MAX));
    let (word, limit) = match (size < least, size > most) {
        (true, _) => ("at least", least),
        (_, true) => ("at most", most),
        _ => return None,
    };
    Some(format!("{unit}{word} {limit}"))
}

/// Returns whether a value, or each of its elements, is one of these. Texts are compared without case.
fn is_allowed(value: &Value, allowed: &Value) -> bool {
    let is_equal = |own: &Value| match (own.as_str(), value.as_str()) {
        (Some(own), Some(text)) => own.eq_ignore_ascii_case(text),
        _ => own == value,
    };
    let mut all = allowed.as_array().into_iter().flatten();
    let elements = value.as_array();
    all.any(is_equal) || elements.is_some_and(|own| own.iter().all(|own| is_allowed(own, allowed)))
}

/// Returns the copies that make members of an object.
fn copies<'a>(name: &str, own: &'a Value) -> Option<&'a Vec<Value>> {
    let copies = own.as_array()?;
    let is_copy = |copy: &Value| member(copy, "count").is_some();
    (name.eq_ignore_ascii_case("copy") && copies.iter().all(is_copy)).then_some(copies)
}

/// Returns the id of a resource of these types and names, ignoring arguments before the type.
fn resource_id(arguments: Arguments<'_>) -> Result<Value, String> {
    let parts = arguments.values.iter().map(|value| arguments.part(value));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let at = parts.iter().position(|part| part.contains('/'));
    let at = at.ok_or("resourceId has no type")?;
    let mut types = parts[at].split('/');
    let mut id = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/{}",
        types.next().unwrap_or_default()
    );
    for (kind, name) in types.zip(&parts[at + 1..]) {
        id.push_str(&format!("/{kind}/{name}"));
    }
    Ok(id.into())
}

fn result_of(function: &str, arguments: &[Value]) -> Result<Value, String> {
    functions::call(function, arguments).unwrap_or_else(|| {
        let known = function.to_ascii_lowercase();
        let only = known.starts_with("reference") || known.starts_with("list");
        Err(match only {
            true => format!("only a deployment could evaluate the function {function}"),
            false => not_supported(function),
        })
    })
}

fn not_supported(function: &str) -> String {
    format!("the function {function} is not supported here")
}

fn excerpt(value: &Value) -> String {
    value.to_string().chars().take(60).collect()
}

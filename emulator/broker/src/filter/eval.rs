//! Evaluates conditions and expressions on a message.
//!
//! Constants and properties are compared by reference; only concatenation and patterns that are not constant allocate. `AND`
//! and `OR` are evaluated from left to right and stop once they are decided, so that an error behind that point does not
//! occur.

use uuid::Uuid;

use super::ast::{Comparison, Condition, Expression, Like, Property};
use super::error::{EvaluationError, Fault};
use super::like::{self, PatternError};
use super::operators::{self, Truth, typed};
use super::properties::Properties;
use super::rule::Edits;
use super::system::SystemProperty;
use super::value::Value;
use crate::ids::IdSource;

static NULL: Value<'static> = Value::Null;

/// A message, and the changes of an action so far.
pub(crate) struct Evaluator<'e> {
    pub(crate) properties: &'e Properties<'e>,
    pub(crate) edits: Option<&'e Edits>,
    pub(crate) ids: &'e mut dyn IdSource,
    /// Whether the rules of JMS apply where they differ (see [`super::SqlFilter::selector`]).
    pub(crate) is_selector: bool,
}

type Evaluated<T> = Result<T, Box<EvaluationError>>;

impl<'e> Evaluator<'e> {
    pub(crate) fn truth(&mut self, condition: &'e Condition) -> Evaluated<Truth> {
        match condition {
            Condition::And(operands) => self.joined(operands, Truth::False),
            Condition::Or(operands) => self.joined(operands, Truth::True),
            Condition::Not(operand) => self.truth(operand).map(Truth::not),
            Condition::Compare {
                operator,
                left,
                right,
            } => self.compare(*operator, left, right),
            Condition::IsNull { property, negated } => {
                Ok(Truth::from(self.is_null(property)).not_if(*negated))
            }
            Condition::Exists(Property::Jms(property)) => {
                Ok((!property.of(self.properties).is_null()).into())
            }
            Condition::Exists(property) => Ok(self.property(property).is_some().into()),
            Condition::In {
                left,
                items,
                negated,
            } => self
                .contained(left, items)
                .map(|truth| truth.not_if(*negated)),
            Condition::Like(like) => self.like(like).map(|truth| truth.not_if(like.negated)),
        }
    }

    /// Evaluates `AND`, which false decides, or `OR`, which true decides.
    fn joined(&mut self, operands: &'e [Condition], decisive: Truth) -> Evaluated<Truth> {
        let mut result = decisive.not();
        for operand in operands {
            // A shortcut for the common form.
            let truth = if let Condition::Compare {
                operator,
                left,
                right,
            } = operand
            {
                self.compare(*operator, left, right)?
            } else {
                self.truth(operand)?
            };
            if truth == decisive {
                return Ok(decisive);
            }
            if truth == Truth::Unknown {
                result = Truth::Unknown;
            }
        }
        Ok(result)
    }

    #[inline]
    fn compare(
        &mut self,
        operator: Comparison,
        left: &'e Expression,
        right: &'e Expression,
    ) -> Evaluated<Truth> {
        if let (Some(left), Some(right)) = (self.peek(left), self.peek(right)) {
            Ok(self.compared(operator, left, right))
        } else {
            self.compare_calculated(operator, left, right)
        }
    }

    fn compare_calculated(
        &mut self,
        operator: Comparison,
        left: &'e Expression,
        right: &'e Expression,
    ) -> Evaluated<Truth> {
        let left = self.value(left)?;
        let right = self.value(right)?;
        Ok(self.compared(operator, &left, &right))
    }

    #[inline(always)]
    fn compared(&self, operator: Comparison, left: &Value<'_>, right: &Value<'_>) -> Truth {
        let truth = operators::compare(operator, left, right);
        let differs = self.is_selector && truth == Truth::Unknown;
        match differs && !left.is_null() && !right.is_null() {
            true => Truth::False,
            false => truth,
        }
    }

    fn is_null(&self, property: &Property) -> bool {
        match property {
            Property::Jms(property) => property.of(self.properties).is_null(),
            Property::System(_) | Property::User(_) => {
                self.property(property).is_none_or(Value::is_null)
            }
        }
    }

    /// Evaluates `IN`: true if an item is equal; else unknown if a comparison is.
    fn contained(&mut self, left: &'e Expression, items: &'e [Expression]) -> Evaluated<Truth> {
        let left = self.value(left)?;
        if left.is_null() {
            return Ok(Truth::Unknown);
        }
        let mut result = Truth::False;
        for item in items {
            let truth = match self.peek(item) {
                Some(item) => self.compared(Comparison::Equal, &left, item),
                None => {
                    let item = self.value(item)?;
                    self.compared(Comparison::Equal, &left, &item)
                }
            };
            match truth {
                Truth::True => return Ok(Truth::True),
                Truth::Unknown => result = Truth::Unknown,
                Truth::False => {}
            }
        }
        Ok(result)
    }

    fn like(&mut self, like: &'e Like) -> Evaluated<Truth> {
        let left = self.value(&like.left)?;
        if let (Some(pattern), Value::Text(text)) = (&like.compiled, &left) {
            return Ok(pattern.matches(text).into());
        }
        let pattern = self.value(&like.pattern)?;
        let escape = match &like.escape {
            None => None,
            Some(expression) => {
                let Value::Text(text) = self.value(expression)? else {
                    return Ok(Truth::Unknown);
                };
                let Ok(character) = like::escape_character(&text) else {
                    let found = typed(&Value::Text(text));
                    return Err(fault(expression, Fault::Escape(found)));
                };
                Some(character)
            }
        };
        let (Value::Text(text), Value::Text(pattern)) = (left, pattern) else {
            return Ok(Truth::Unknown);
        };
        match like::Pattern::new(&pattern, escape) {
            Ok(pattern) => Ok(pattern.matches(&text).into()),
            Err(PatternError::EscapeAtEnd) => Err(fault(
                &like.pattern,
                Fault::EscapeAtEnd(Value::Text(pattern).described()),
            )),
            Err(PatternError::TooLong(length)) => {
                Err(fault(&like.pattern, Fault::PatternLength(length)))
            }
        }
    }

    pub(crate) fn value(&mut self, expression: &'e Expression) -> Evaluated<Value<'e>> {
        match expression {
            Expression::Constant(value) | Expression::Parameter { value, .. } => {
                Ok(value.borrowed())
            }
            Expression::Property(Property::Jms(property)) => Ok(property.of(self.properties)),
            Expression::Property(property) => {
                Ok(self.property(property).map_or(Value::Null, Value::borrowed))
            }
            Expression::NewId => {
                let uuid = Uuid::from_u64_pair(self.ids.next(), self.ids.next());
                let builder = uuid::Builder::from_random_bytes(uuid.into_bytes());
                Ok(Value::Guid(builder.into_uuid()))
            }
            Expression::Named(name) => self.named(expression, name),
            Expression::Sign { sign, operand } => {
                let operand = self.value(operand)?;
                let signed = operators::signed(*sign, operand);
                self.calculated(expression, signed)
            }
            Expression::Arithmetic {
                operator,
                left,
                right,
            } => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                let calculated = operators::calculate(*operator, &left, &right);
                self.calculated(expression, calculated)
            }
        }
    }

    /// Returns a result; in a selector null instead of an error.
    fn calculated(
        &self,
        expression: &Expression,
        result: Result<Value<'e>, Fault>,
    ) -> Evaluated<Value<'e>> {
        match result {
            Err(_) if self.is_selector => Ok(Value::Null),
            result => result.map_err(|error| fault(expression, error)),
        }
    }

    /// Returns a property whose name is computed and may include its scope.
    fn named(&mut self, whole: &'e Expression, name: &'e Expression) -> Evaluated<Value<'e>> {
        let name = self.value(name)?;
        let Value::Text(name) = name else {
            let missing = name.is_null().then_some(Value::Null);
            return missing.ok_or_else(|| fault(whole, Fault::PropertyName(typed(&name))));
        };
        let scoped = |scope: &str| {
            let (begin, rest) = name.split_at_checked(scope.len())?;
            begin.eq_ignore_ascii_case(scope).then_some(rest)
        };
        if let Some(system) = scoped("sys.") {
            let property = SystemProperty::from_name(system).ok_or_else(|| {
                fault(
                    whole,
                    Fault::SystemProperty(system.chars().take(64).collect()),
                )
            })?;
            return Ok(self.system(property).map_or(Value::Null, Value::borrowed));
        }
        let name = scoped("user.").unwrap_or(&name);
        if let Some(change) = self.edits.and_then(|edits| edits.user(name)) {
            return Ok(change.map_or(Value::Null, Value::borrowed));
        }
        Ok(self
            .properties
            .user_named(name)
            .map_or(Value::Null, Value::borrowed))
    }

    /// Returns the value of an expression that needs no calculation.
    #[inline(always)]
    fn peek(&self, expression: &'e Expression) -> Option<&'e Value<'e>> {
        match expression {
            Expression::Constant(value) | Expression::Parameter { value, .. } => Some(value),
            Expression::Property(property @ (Property::System(_) | Property::User(_))) => {
                Some(self.property(property).unwrap_or(&NULL))
            }
            Expression::Property(Property::Jms(_))
            | Expression::NewId
            | Expression::Named(_)
            | Expression::Sign { .. }
            | Expression::Arithmetic { .. } => None,
        }
    }

    /// Returns a property if it exists and is stored decoded: a system property exists when it is set.
    #[inline(always)]
    pub(crate) fn property(&self, property: &Property) -> Option<&'e Value<'e>> {
        match property {
            Property::System(property) => self.system(*property),
            Property::User(name) => match self.edits.and_then(|edits| edits.user(name.as_str())) {
                Some(change) => change,
                None => self.properties.user(name),
            },
            // Its value is read on demand.
            Property::Jms(_) => None,
        }
    }

    fn system(&self, property: SystemProperty) -> Option<&'e Value<'e>> {
        match self.edits.and_then(|edits| edits.system(property)) {
            Some(change) => change,
            None => Some(self.properties.system(property)).filter(|value| !value.is_null()),
        }
    }
}

#[cold]
pub(crate) fn fault(expression: &Expression, fault: Fault) -> Box<EvaluationError> {
    Box::new(EvaluationError {
        expression: expression.to_string(),
        fault,
    })
}

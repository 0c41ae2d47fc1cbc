//! The semantics of operators, as tables: three-valued logic, comparison, arithmetic.
//!
//! The documentation refers to C#: numbers are promoted to the wider of two types, and `+` joins a text with the printed
//! form of any other operand. Where C# would not compile, comparisons are unknown (decision D12) and arithmetic fails.

use std::cmp::Ordering;

use super::ast::{Arithmetic, Comparison, Sign};
use super::error::Fault;
use super::value::Value;

/// Maximum bytes of a text from `+`: no property is larger than all headers may be (semantics §1), and a chain of 500
/// operators would otherwise copy gigabytes.
const MAX_TEXT: usize = 64 * 1024;

/// True, false or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// The rule matches.
    True,
    /// The rule does not match.
    False,
    /// Neither the rule nor its negation matches.
    Unknown,
}

impl Truth {
    /// `NOT`.
    pub(crate) fn not(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::Unknown => Self::Unknown,
        }
    }

    /// Applies `NOT` if `negated`.
    pub(crate) fn not_if(self, negated: bool) -> Self {
        if negated { self.not() } else { self }
    }
}

impl From<bool> for Truth {
    fn from(flag: bool) -> Self {
        if flag { Self::True } else { Self::False }
    }
}

/// A number in the type to which two operands are promoted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        match value {
            Value::Signed(number) => Some(Self::Whole((*number).into())),
            Value::Unsigned(number) => Some(Self::Whole((*number).into())),
            Value::Float(number) => Some(Self::Float(*number)),
            Value::Null
            | Value::Bool(_)
            | Value::Text(_)
            | Value::Instant(_)
            | Value::Span(_)
            | Value::Guid(_)
            | Value::Binary(_)
            | Value::Other(_) => None,
        }
    }

    /// Returns the whole number, if it is one. Larger floats are whole too, but no property holds such an integer.
    pub(crate) fn whole(self) -> Option<i128> {
        match self {
            Self::Whole(number) => Some(number),
            Self::Float(number) => {
                (number.fract() == 0.0 && number.abs() < 2e19).then_some(number as i128)
            }
        }
    }

    pub(crate) fn as_float(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

/// `left operator right`.
#[inline(always)]
pub(crate) fn compare(operator: Comparison, left: &Value<'_>, right: &Value<'_>) -> Truth {
    // A shortcut for the most frequent comparisons.
    match (operator, left, right) {
        (Comparison::Equal, Value::Text(left), Value::Text(right)) => (left == right).into(),
        (_, Value::Signed(left), Value::Signed(right)) => ordered(operator, left.cmp(right)).into(),
        _ => compare_any(operator, left, right),
    }
}

fn compare_any(operator: Comparison, left: &Value<'_>, right: &Value<'_>) -> Truth {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => match operator {
            Comparison::Equal => (left == right).into(),
            Comparison::NotEqual => (left != right).into(),
            Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Greater
            | Comparison::GreaterOrEqual => ordered(operator, ordinal(left, right)).into(),
        },
        (Value::Instant(left), Value::Instant(right)) | (Value::Span(left), Value::Span(right)) => {
            ordered(operator, left.cmp(right)).into()
        }
        (Value::Bool(left), Value::Bool(right)) => equality(operator, left == right),
        (Value::Guid(left), Value::Guid(right)) => equality(operator, left == right),
        (Value::Binary(left), Value::Binary(right)) => equality(operator, left == right),
        _ => match (Number::of(left), Number::of(right)) {
            (Some(left), Some(right)) => compare_numbers(operator, left, right).into(),
            _ => Truth::Unknown,
        },
    }
}

fn compare_numbers(operator: Comparison, left: Number, right: Number) -> bool {
    if let (Number::Whole(left), Number::Whole(right)) = (left, right) {
        return ordered(operator, left.cmp(&right));
    }
    match left.as_float().partial_cmp(&right.as_float()) {
        Some(ordering) => ordered(operator, ordering),
        // NaN is neither equal nor less nor greater.
        None => operator == Comparison::NotEqual,
    }
}

/// Compares by UTF-16 code units, as `String.CompareOrdinal` does.
fn ordinal(left: &str, right: &str) -> Ordering {
    if left.is_ascii() && right.is_ascii() {
        left.cmp(right)
    } else {
        left.encode_utf16().cmp(right.encode_utf16())
    }
}

#[inline]
fn ordered(operator: Comparison, ordering: Ordering) -> bool {
    match operator {
        Comparison::Equal => ordering.is_eq(),
        Comparison::NotEqual => ordering.is_ne(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
    }
}

/// Compares types without an order.
fn equality(operator: Comparison, equal: bool) -> Truth {
    match operator {
        Comparison::Equal => equal.into(),
        Comparison::NotEqual => (!equal).into(),
        Comparison::Less
        | Comparison::LessOrEqual
        | Comparison::Greater
        | Comparison::GreaterOrEqual => Truth::Unknown,
    }
}

/// Returns `left operator right`; null if either is null.
pub(crate) fn calculate<'v>(
    operator: Arithmetic,
    left: &Value<'v>,
    right: &Value<'v>,
) -> Result<Value<'v>, Fault> {
    if left.is_null() || right.is_null() {
        return Ok(Value::Null);
    }
    if let (Some(left), Some(right)) = (Number::of(left), Number::of(right)) {
        return match (left, right) {
            (Number::Whole(left), Number::Whole(right)) => whole(operator, left, right),
            _ => Ok(Value::Float(float(
                operator,
                left.as_float(),
                right.as_float(),
            ))),
        };
    }
    let overflow = || overflow(operator, left.described(), right.described());
    match (operator, left, right) {
        (Arithmetic::Add, Value::Text(_), _) | (Arithmetic::Add, _, Value::Text(_)) => {
            let joined = left.concatenated().zip(right.concatenated());
            let (left, right) = joined.ok_or_else(|| mismatch(operator, left, right))?;
            if left.len() + right.len() > MAX_TEXT {
                let length = left.len() + right.len();
                return Err(Fault::TextTooLong { length });
            }
            Ok(Value::Text((left + &right).into()))
        }
        (Arithmetic::Add, Value::Instant(instant), Value::Span(span)) => instant
            .checked_add(*span)
            .map(Value::Instant)
            .ok_or_else(overflow),
        (Arithmetic::Subtract, Value::Instant(instant), Value::Span(span)) => instant
            .checked_sub(*span)
            .map(Value::Instant)
            .ok_or_else(overflow),
        (Arithmetic::Subtract, Value::Instant(left), Value::Instant(right))
        | (Arithmetic::Subtract, Value::Span(left), Value::Span(right)) => left
            .checked_sub(*right)
            .map(Value::Span)
            .ok_or_else(overflow),
        (Arithmetic::Add, Value::Span(left), Value::Span(right)) => left
            .checked_add(*right)
            .map(Value::Span)
            .ok_or_else(overflow),
        _ => Err(mismatch(operator, left, right)),
    }
}

/// Calculates exactly in 128 bits, which hold any product of 64-bit numbers, then converts back to 64.
fn whole(operator: Arithmetic, left: i128, right: i128) -> Result<Value<'static>, Fault> {
    let result = match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left.saturating_mul(right),
        Arithmetic::Divide | Arithmetic::Remainder if right == 0 => {
            let left = left.to_string();
            return Err(Fault::DivisionByZero { left });
        }
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    };
    if let Ok(number) = i64::try_from(result) {
        return Ok(Value::Signed(number));
    }
    let unsigned = u64::try_from(result)
        .ok()
        .filter(|_| left > i64::MAX.into() || right > i64::MAX.into());
    let number = unsigned.ok_or_else(|| overflow(operator, left.to_string(), right.to_string()))?;
    Ok(Value::Unsigned(number))
}

fn float(operator: Arithmetic, left: f64, right: f64) -> f64 {
    match operator {
        Arithmetic::Add => left + right,
        Arithmetic::Subtract => left - right,
        Arithmetic::Multiply => left * right,
        Arithmetic::Divide => left / right,
        Arithmetic::Remainder => left % right,
    }
}

/// Returns `+operand` or `-operand`; null if the operand is null.
pub(crate) fn signed<'v>(sign: Sign, operand: Value<'v>) -> Result<Value<'v>, Fault> {
    match (sign, &operand) {
        (_, Value::Null) => Ok(Value::Null),
        (Sign::Plus, Value::Signed(_) | Value::Unsigned(_) | Value::Float(_) | Value::Span(_)) => {
            Ok(operand)
        }
        (Sign::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Sign::Minus, Value::Signed(number)) => whole(Arithmetic::Subtract, 0, (*number).into()),
        (Sign::Minus, Value::Unsigned(number)) => match i64::try_from(-i128::from(*number)) {
            Ok(number) => Ok(Value::Signed(number)),
            Err(_) => Err(overflow(
                Arithmetic::Subtract,
                "0".to_owned(),
                number.to_string(),
            )),
        },
        (Sign::Minus, Value::Span(ticks)) => Ok(Value::Span(ticks.saturating_neg())),
        _ => Err(Fault::Sign {
            operator: sign.symbol(),
            operand: typed(&operand),
        }),
    }
}

fn mismatch(operator: Arithmetic, left: &Value<'_>, right: &Value<'_>) -> Fault {
    Fault::Operator {
        operator: operator.symbol(),
        left: typed(left),
        right: typed(right),
    }
}

fn overflow(operator: Arithmetic, left: String, right: String) -> Fault {
    Fault::Overflow {
        operator: operator.symbol(),
        left,
        right,
    }
}

/// Renders a value and its type for an error.
pub(crate) fn typed(value: &Value<'_>) -> String {
    match value {
        Value::Null | Value::Other(_) => value.kind().to_owned(),
        Value::Instant(_) | Value::Span(_) | Value::Guid(_) | Value::Binary(_) => value.described(),
        Value::Bool(_)
        | Value::Signed(_)
        | Value::Unsigned(_)
        | Value::Float(_)
        | Value::Text(_) => {
            format!("{} ({})", value.described(), value.kind())
        }
    }
}

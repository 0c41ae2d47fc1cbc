//! The semantics of conditions, simple and independent of the real evaluator: a truth is an `Option<bool>`, every name is
//! compared with every other, `LIKE` tries everything.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "naive: what is not named is any other"
)]

use super::super::ast::{Arithmetic, Comparison, Condition, Expression, Like, Property, Sign};
use super::super::operators::Truth;
use super::super::system::SystemProperty;
use super::super::value::Value;

type Message = [(&'static str, Value<'static>)];
type Failing<T> = Result<T, ()>;

pub(crate) fn truth(condition: &Condition, message: &Message) -> Failing<Truth> {
    Ok(match decide(condition, message)? {
        Some(true) => Truth::True,
        Some(false) => Truth::False,
        None => Truth::Unknown,
    })
}

fn decide(condition: &Condition, message: &Message) -> Failing<Option<bool>> {
    let negate = |truth: Option<bool>, negated: bool| truth.map(|truth| truth != negated);
    Ok(match condition {
        Condition::And(operands) => {
            let mut all = Some(true);
            for operand in operands {
                match decide(operand, message)? {
                    Some(false) => return Ok(Some(false)),
                    Some(true) => {}
                    None => all = None,
                }
            }
            all
        }
        // De Morgan.
        Condition::Or(operands) => {
            let negated = operands
                .iter()
                .map(|operand| Condition::Not(Box::new(operand.clone())));
            decide(&Condition::And(negated.collect()), message)?.map(|truth| !truth)
        }
        Condition::Not(operand) => decide(operand, message)?.map(|truth| !truth),
        Condition::Compare {
            operator,
            left,
            right,
        } => {
            let (left, right) = (value(left, message)?, value(right, message)?);
            compare(*operator, &left, &right)
        }
        Condition::IsNull { property, negated } => {
            let is_null = matches!(find(property, message), None | Some(Value::Null));
            negate(Some(is_null), *negated)
        }
        Condition::Exists(property) => Some(find(property, message).is_some()),
        Condition::In {
            left,
            items,
            negated,
        } => {
            let left = value(left, message)?;
            if left == Value::Null {
                return Ok(None);
            }
            let mut result = Some(false);
            for item in items {
                match compare(Comparison::Equal, &left, &value(item, message)?) {
                    Some(true) => return Ok(Some(!negated)),
                    Some(false) => {}
                    None => result = None,
                }
            }
            negate(result, *negated)
        }
        Condition::Like(like) => decide_like(like, message)?,
    })
}

fn decide_like(like: &Like, message: &Message) -> Failing<Option<bool>> {
    let left = value(&like.left, message)?;
    let pattern = value(&like.pattern, message)?;
    let escape = match &like.escape {
        None => None,
        Some(escape) => match value(escape, message)? {
            Value::Text(text) if text.chars().count() == 1 => text.chars().next(),
            Value::Text(_) => return Err(()),
            _ => return Ok(None),
        },
    };
    let (Value::Text(left), Value::Text(pattern)) = (left, pattern) else {
        return Ok(None);
    };
    let pattern: Vec<char> = pattern.chars().collect();
    if ends_with_escape(&pattern, escape) {
        return Err(());
    }
    let text: Vec<char> = left.chars().collect();
    Ok(Some(is_like(&text, &pattern, escape) != like.negated))
}

fn ends_with_escape(pattern: &[char], escape: Option<char>) -> bool {
    match pattern {
        [] => false,
        [first] => Some(*first) == escape,
        [first, _, rest @ ..] if Some(*first) == escape => ends_with_escape(rest, escape),
        [_, rest @ ..] => ends_with_escape(rest, escape),
    }
}

fn is_like(text: &[char], pattern: &[char], escape: Option<char>) -> bool {
    match pattern {
        [] => text.is_empty(),
        [first, literal, rest @ ..] if Some(*first) == escape => {
            text.first() == Some(literal) && is_like(&text[1..], rest, escape)
        }
        ['%', rest @ ..] => (0..=text.len()).any(|skipped| is_like(&text[skipped..], rest, escape)),
        ['_', rest @ ..] => !text.is_empty() && is_like(&text[1..], rest, escape),
        [first, rest @ ..] => text.first() == Some(first) && is_like(&text[1..], rest, escape),
    }
}

fn find(property: &Property, message: &Message) -> Option<Value<'static>> {
    match property {
        Property::System(SystemProperty::Size) => Some(Value::Signed(0)),
        Property::System(_) | Property::Jms(_) => None,
        Property::User(name) => named(name.as_str(), message),
    }
}

fn named(name: &str, message: &Message) -> Option<Value<'static>> {
    let mut entries = message.iter();
    let (_, value) = entries.find(|(other, _)| other.to_lowercase() == name.to_lowercase())?;
    Some(value.clone())
}

fn value(expression: &Expression, message: &Message) -> Failing<Value<'static>> {
    Ok(match expression {
        Expression::Constant(value) | Expression::Parameter { value, .. } => value.clone(),
        Expression::Property(property) => find(property, message).unwrap_or(Value::Null),
        Expression::NewId => return Err(()),
        Expression::Named(name) => match value(name, message)? {
            // The only name with a scope among the random ones: sys.To is not set.
            Value::Text(name) if name.starts_with("sys.") => Value::Null,
            Value::Text(name) => named(&name, message).unwrap_or(Value::Null),
            Value::Null => Value::Null,
            _ => return Err(()),
        },
        Expression::Sign { sign, operand } => match (sign, value(operand, message)?) {
            (_, Value::Null) => Value::Null,
            (_, Value::Text(_) | Value::Bool(_) | Value::Guid(_) | Value::Instant(_)) => {
                return Err(());
            }
            (Sign::Plus, operand) => operand,
            (Sign::Minus, Value::Float(number)) => Value::Float(-number),
            (Sign::Minus, operand) => calculate(Arithmetic::Subtract, &zero(&operand), &operand)?,
        },
        Expression::Arithmetic {
            operator,
            left,
            right,
        } => {
            let (left, right) = (value(left, message)?, value(right, message)?);
            calculate(*operator, &left, &right)?
        }
    })
}

fn zero(like: &Value<'_>) -> Value<'static> {
    match like {
        Value::Span(_) => Value::Span(0),
        _ => Value::Signed(0),
    }
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Signed(number) => Some((*number).into()),
        Value::Unsigned(number) => Some((*number).into()),
        _ => None,
    }
}

fn float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        _ => whole(value).map(|number| number as f64),
    }
}

fn compare(operator: Comparison, left: &Value<'_>, right: &Value<'_>) -> Option<bool> {
    use Comparison as C;
    let (less, equal) = match (left, right) {
        (Value::Text(a), Value::Text(b)) => (
            a.encode_utf16().collect::<Vec<_>>() < b.encode_utf16().collect::<Vec<_>>(),
            a == b,
        ),
        (Value::Instant(a), Value::Instant(b)) | (Value::Span(a), Value::Span(b)) => {
            (a < b, a == b)
        }
        (Value::Bool(_), Value::Bool(_)) | (Value::Guid(_), Value::Guid(_)) => match operator {
            C::Equal => return Some(left == right),
            C::NotEqual => return Some(left != right),
            C::Less | C::LessOrEqual | C::Greater | C::GreaterOrEqual => return None,
        },
        _ => match (whole(left), whole(right)) {
            (Some(a), Some(b)) => (a < b, a == b),
            _ => {
                let (a, b) = (float(left)?, float(right)?);
                if a.is_nan() || b.is_nan() {
                    return Some(operator == C::NotEqual);
                }
                (a < b, a == b)
            }
        },
    };
    Some(match operator {
        C::Equal => equal,
        C::NotEqual => !equal,
        C::Less => less,
        C::LessOrEqual => less || equal,
        C::Greater => !less && !equal,
        C::GreaterOrEqual => !less,
    })
}

fn calculate(operator: Arithmetic, left: &Value<'_>, right: &Value<'_>) -> Failing<Value<'static>> {
    use Arithmetic as A;
    if *left == Value::Null || *right == Value::Null {
        return Ok(Value::Null);
    }
    if let (Some(a), Some(b)) = (whole(left), whole(right)) {
        let result = match operator {
            A::Add => a + b,
            A::Subtract => a - b,
            A::Multiply => a.checked_mul(b).ok_or(())?,
            A::Divide => a.checked_div(b).ok_or(())?,
            A::Remainder => a.checked_rem(b).ok_or(())?,
        };
        let unsigned = a > i64::MAX.into() || b > i64::MAX.into();
        return match (i64::try_from(result), u64::try_from(result)) {
            (Ok(number), _) => Ok(Value::Signed(number)),
            (_, Ok(number)) if unsigned => Ok(Value::Unsigned(number)),
            _ => Err(()),
        };
    }
    if let (Some(a), Some(b)) = (float(left), float(right)) {
        return Ok(Value::Float(match operator {
            A::Add => a + b,
            A::Subtract => a - b,
            A::Multiply => a * b,
            A::Divide => a / b,
            A::Remainder => a % b,
        }));
    }
    match (left, operator, right) {
        (Value::Text(_), A::Add, _) | (_, A::Add, Value::Text(_)) => {
            let text = |value: &Value<'_>| value.concatenated().ok_or(());
            Ok(Value::Text([text(left)?, text(right)?].concat().into()))
        }
        (Value::Instant(a), A::Add, Value::Span(b)) => Ok(Value::Instant(a + b)),
        (Value::Instant(a), A::Subtract, Value::Span(b)) => Ok(Value::Instant(a - b)),
        (Value::Instant(a), A::Subtract, Value::Instant(b)) => Ok(Value::Span(a - b)),
        (Value::Span(a), A::Add, Value::Span(b)) => Ok(Value::Span(a + b)),
        (Value::Span(a), A::Subtract, Value::Span(b)) => Ok(Value::Span(a - b)),
        _ => Err(()),
    }
}

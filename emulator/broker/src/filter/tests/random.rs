//! Random conditions, statements and messages, with few names and values so that they match.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::ast::{
    Arithmetic, Comparison, Condition, Expression, Like, Property, Sign, Statement,
};
use super::super::like;
use super::super::properties::Name;
use super::super::system::SystemProperty;
use super::super::value::Value;

const NAMES: [&str; 9] = ["a", "b", "c", "A b", "and", "x]y", "p", "sys.To", "ünï"];

pub(crate) fn message() -> impl Strategy<Value = Vec<(&'static str, Value<'static>)>> {
    let names = proptest::sample::subsequence(NAMES.to_vec(), 0..NAMES.len());
    names.prop_flat_map(|names| {
        let count = names.len();
        vec(prop_oneof![4 => literal(), 1 => other()], count)
            .prop_map(move |values| names.iter().copied().zip(values).collect())
    })
}

/// Values that the language has literals for.
fn literal() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        3 => (-3_i64..4).prop_map(Value::Signed),
        1 => select(vec![i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1]).prop_map(Value::Signed),
        2 => select(vec![0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 1e300, 1e-7, 9_007_199_254_740_992.0]).prop_map(Value::Float),
        3 => select(vec!["", "a", "b", "x", "ab", "a%", "a_b", "!", "it's", "1", "ß😀"]).prop_map(Value::text),
    ]
}

/// Values that only a message can hold.
fn other() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        select(vec![0, 1, u64::MAX]).prop_map(Value::Unsigned),
        select(vec![f64::NAN, f64::INFINITY]).prop_map(Value::Float),
        (0_i64..3).prop_map(Value::instant),
        (-2_i64..3).prop_map(Value::Span),
        (0_u128..2).prop_map(|number| Value::Guid(uuid::Uuid::from_u128(number))),
    ]
}

fn property() -> impl Strategy<Value = Property> {
    prop_oneof![
        9 => select(NAMES.to_vec()).prop_map(|name| Property::User(Name::new(name))),
        1 => select(vec![SystemProperty::Label, SystemProperty::Size]).prop_map(Property::System),
    ]
}

fn parameter() -> impl Strategy<Value = Expression> {
    select(vec![("p", Value::Signed(2)), ("q", Value::text("x"))]).prop_map(|(name, value)| {
        Expression::Parameter {
            name: name.into(),
            value,
        }
    })
}

pub(crate) fn expression() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        4 => literal().prop_map(Expression::Constant),
        4 => property().prop_map(Expression::Property),
        1 => parameter(),
        1 => select(NAMES.to_vec()).prop_map(|name| {
            Expression::Named(Box::new(Expression::Constant(Value::text(name))))
        }),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let operator = select(vec![
            Arithmetic::Add,
            Arithmetic::Subtract,
            Arithmetic::Multiply,
            Arithmetic::Divide,
            Arithmetic::Remainder,
        ]);
        let sign = select(vec![Sign::Plus, Sign::Minus]);
        prop_oneof![
            4 => (operator, inner.clone(), inner.clone()).prop_map(|(operator, left, right)| {
                Expression::Arithmetic { operator, left: Box::new(left), right: Box::new(right) }
            }),
            1 => (sign, inner).prop_map(|(sign, operand)| {
                Expression::Sign { sign, operand: Box::new(operand) }
            }),
        ]
    })
}

fn comparison() -> impl Strategy<Value = Condition> {
    let operator = select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ]);
    prop_oneof![
        4 => (operator, expression(), expression()).prop_map(|(operator, left, right)| {
            Condition::Compare { operator, left, right }
        }),
        1 => (property(), any::<bool>()).prop_map(|(property, negated)| Condition::IsNull { property, negated }),
        1 => property().prop_map(Condition::Exists),
        2 => (expression(), vec(expression(), 1..4), any::<bool>()).prop_map(|(left, items, negated)| {
            Condition::In { left, items, negated }
        }),
        2 => like(),
    ]
}

fn like() -> impl Strategy<Value = Condition> {
    let pattern = prop_oneof![
        3 => select(vec!["%", "a%", "%b", "_", "a_b", "a!%", "", "%a%"]).prop_map(|text| Expression::Constant(Value::text(text))),
        1 => property().prop_map(Expression::Property),
    ];
    let escape = proptest::option::of(prop_oneof![
        Just(Expression::Constant(Value::text("!"))),
        property().prop_map(Expression::Property),
    ]);
    (expression(), pattern, escape, any::<bool>()).prop_map(|(left, pattern, escape, negated)| {
        let character = match &escape {
            None => Some(None),
            Some(Expression::Constant(_)) => Some(Some('!')),
            Some(_) => None,
        };
        let compiled = match (&pattern, character) {
            (Expression::Constant(Value::Text(text)), Some(escape)) => {
                like::Pattern::new(text, escape).ok()
            }
            _ => None,
        };
        Condition::Like(Box::new(Like {
            left,
            pattern,
            escape,
            negated,
            compiled,
        }))
    })
}

pub(crate) fn condition() -> impl Strategy<Value = Condition> {
    comparison().prop_recursive(4, 10, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Condition::And),
            vec(inner.clone(), 2..4).prop_map(Condition::Or),
            inner.prop_map(|operand| Condition::Not(Box::new(operand))),
        ]
    })
}

pub(crate) fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let writable = prop_oneof![
        4 => select(NAMES.to_vec()).prop_map(|name| Property::User(Name::new(name))),
        1 => Just(Property::System(SystemProperty::Label)),
    ];
    let statement =
        (writable, proptest::option::of(expression())).prop_map(|(property, value)| match value {
            Some(value) => Statement::Set { property, value },
            None => Statement::Remove(property),
        });
    vec(statement, 1..6)
}

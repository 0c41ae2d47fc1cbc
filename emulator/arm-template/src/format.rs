//! The template function `format`.

use serde_json::Value;

use crate::arguments::Arguments;
use crate::functions::text;

/// Formats a text with numbered placeholders in braces.
pub(crate) fn format(arguments: Arguments<'_>) -> Result<Value, String> {
    let given = arguments.values.get(1..).unwrap_or_default();
    let mut made = String::new();
    let mut rest = arguments.text(0)?;
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
        made.push_str(&formatted(place, given)?);
        arguments.check_length(made.len())?;
        rest = after;
    }
    made.push_str(rest);
    Ok(made.into())
}

/// Returns the argument of a placeholder: its index, with a width after a comma and, for a number, `D` and its digits after
/// a colon.
fn formatted(place: &str, given: &[Value]) -> Result<String, String> {
    let (before, specifier) = place.split_once(':').unwrap_or((place, ""));
    let (index, width) = before.split_once(',').unwrap_or((before, "0"));
    let argument = index.trim().parse().ok();
    let argument = argument.and_then(|index: usize| given.get(index));
    let argument = argument.ok_or_else(|| format!("format has no argument {{{place}}}"))?;
    let digits = specifier.strip_prefix(['d', 'D']);
    let digits = digits.and_then(|own| {
        if own.is_empty() {
            Some(0)
        } else {
            own.parse::<u8>().ok()
        }
    });
    let text = match (argument, digits) {
        (Value::Null, _) => String::new(),
        (Value::Number(number), _)
            if !specifier.is_empty() && (digits.is_none() || number.is_f64()) =>
        {
            return Err(format!(
                "{{{place}}} is not allowed in format; allowed: a whole number with D, as in {{0:D2}}"
            ));
        }
        (Value::Number(number), Some(digits)) => {
            let number = number.to_string();
            let (sign, number) = number.split_at(usize::from(number.starts_with('-')));
            format!("{sign}{number:0>width$}", width = digits.into())
        }
        _ => text(argument),
    };
    let width: i16 = width
        .trim()
        .parse()
        .map_err(|_| format!("format has no width {{{place}}}"))?;
    let fill = usize::from(width.unsigned_abs());
    Ok(if width < 0 {
        format!("{text:<fill$}")
    } else {
        format!("{text:>fill$}")
    })
}

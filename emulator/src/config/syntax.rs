//! From text to a tree that knows where in the text everything stands.
//!
//! JSON with both kinds of comments, trailing commas and a byte-order mark, nothing else of JSON5: what
//! passes here is also read by the official emulator. The parser bounds the depth of nesting itself, so no
//! text can exhaust the stack.

use jsonc_parser::ast::Value;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::reader::{Place, Report};

const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The tree of the report's text; none, and a problem reported, when the text is not JSON.
pub(crate) fn parse<'a>(report: &Report<'a>) -> Option<Value<'a>> {
    let text = report.text();
    match parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(result) if result.value.is_some() => result.value,
        Ok(_) => {
            report.problem(
                &Place::at(text.len(), text.len()),
                "the text is empty",
                None,
            );
            None
        }
        Err(error) => {
            let range = error.range();
            // What is no JSON may be half a key.
            let place = Place::at(range.start, range.end).secret();
            report.problem(&place, sentence(error.kind()), None);
            None
        }
    }
}

/// The parser's words, as a fragment like all other problems.
fn sentence(kind: &ParseErrorKind) -> String {
    let text = kind.to_string();
    let mut recorded_messages = text.chars();
    let first = recorded_messages
        .next()
        .map(|message| message.to_ascii_lowercase());
    let fragment: String = first.into_iter().chain(recorded_messages).collect();
    format!("not JSON: {fragment}")
}

//! Filters and actions: what is read is printed so that it is read again as the same, and evaluating it never fails but
//! with a reason.

use std::sync::LazyLock;

use servicebus_broker::Message;
use servicebus_broker::filter::{
    Action, Encoded, MAX_LENGTH, Parameters, Properties, SqlFilter, SyntaxError, System,
};
use servicebus_codec::Writer;

use crate::world::Ids;
use crate::{Input, altered_text, input, value};

static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| input::cases("filters"));

/// A filter or action, parameters and a message.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let parameters = parameters(&mut input);
    let message = message(&mut input);
    let text = altered_text(&mut input, &SEEDS);
    let view = message
        .as_ref()
        .and_then(|message| message.filter_view(&System::default()).ok());
    match SqlFilter::parse(&text, parameters.clone()) {
        Ok(filter) => filter_again(&filter, &parameters, view.as_ref()),
        Err(error) => assert_shows_its_place(&text, &error),
    }
    match Action::parse(&text, parameters.clone()) {
        Ok(action) => action_again(&action, &parameters, message.clone(), view.as_ref()),
        Err(error) => assert_shows_its_place(&text, &error),
    }
}

fn assert_shows_its_place(text: &str, error: &SyntaxError) {
    let (line, column) = error.position();
    assert!(line > 0 && column > 0, "{error}");
    assert!(text.is_char_boundary(error.offset()), "{error}");
    assert!(!error.excerpt().is_empty(), "{error}");
    assert!(error.to_string().len() < 4 * MAX_LENGTH + 1024);
}

fn filter_again(filter: &SqlFilter, parameters: &Parameters, view: Option<&Properties<'_>>) {
    let printed = filter.canonical();
    let Some(again) = within_bounds(&printed, SqlFilter::parse(&printed, parameters.clone()))
    else {
        return;
    };
    assert_eq!(again.canonical(), printed, "of {:?}", filter.text());
    if let Some(view) = view {
        let (one, other) = (
            filter.evaluate(view, &mut Ids::default()),
            again.evaluate(view, &mut Ids::default()),
        );
        assert_eq!(
            one.ok(),
            other.ok(),
            "{:?} and {printed:?} differ",
            filter.text()
        );
    }
}

fn action_again(
    action: &Action,
    parameters: &Parameters,
    message: Option<Message>,
    view: Option<&Properties<'_>>,
) {
    let printed = action.canonical();
    let Some(again) = within_bounds(&printed, Action::parse(&printed, parameters.clone())) else {
        return;
    };
    assert_eq!(again.canonical(), printed, "of {:?}", action.text());
    let Some(edits) = view.and_then(|view| action.edits(view, &mut Ids::default()).ok()) else {
        return;
    };
    let mut message = message.expect("it was seen");
    message
        .apply(&edits, &mut Ids::default())
        .expect("what an action says can be done");
    message
        .filter_view(&System::default())
        .expect("a changed message is seen");
}

/// What was printed is read again, unless brackets have made it too long or too deep.
fn within_bounds<T, E: std::fmt::Display>(printed: &str, again: Result<T, E>) -> Option<T> {
    match again {
        Ok(again) => Some(again),
        Err(error) => {
            let is_bounded =
                printed.chars().count() > MAX_LENGTH || error.to_string().contains("nest");
            assert!(
                is_bounded,
                "{printed:?} was printed and is refused: {error}"
            );
            None
        }
    }
}

fn parameters(input: &mut Input<'_>) -> Parameters {
    let mut parameters = Parameters::new();
    for name in ["@p", "q"].iter().take(input.below(3)) {
        let mut encoded = Vec::new();
        value::value(input, 0, &mut encoded);
        if let Ok(value) = Encoded::from_amqp(&encoded) {
            parameters.add(name, value);
        }
    }
    parameters
}

/// A message with properties of the names that the fixtures use.
fn message(input: &mut Input<'_>) -> Option<Message> {
    let mut payload = Vec::new();
    Writer::new(&mut payload).descriptor(0x74);
    let map = Writer::new(&mut payload).begin_map();
    let count = input.below(5);
    for name in ["a", "b", "c", "t", "text"].iter().take(count) {
        Writer::new(&mut payload).string(name);
        value::value(input, 0, &mut payload);
    }
    Writer::new(&mut payload).end(map, 2 * count as u32);
    Message::parse(payload.into(), &mut Ids::default()).ok()
}

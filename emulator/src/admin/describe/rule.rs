//! A rule as XML.

use servicebus_broker::filter::Rule;
use servicebus_broker::{Timestamp, check_name};

use super::super::refusal::ServiceError;
use super::super::time::Frame;
use super::super::xml::{CONNECT, Element, INSTANCE, Writer};
use super::RULE;
use super::filter::{read_action, read_filter, write_action, write_filter};

/// What a rule is called when nothing is said.
pub(in crate::admin) const DEFAULT_RULE: &str = "$Default";

/// The name that a description of a rule has in it.
pub(in crate::admin) fn name_of_rule(element: &Element) -> Option<&str> {
    let name = element.part("Name").map(|name| name.text.trim());
    name.filter(|name| !name.is_empty())
}

/// Reads a rule; its name is that of the path, whatever the description says.
pub(in crate::admin) fn read_rule(
    element: &Element,
    name: &str,
    created_at: Timestamp,
) -> Result<Rule, ServiceError> {
    check_name(name).map_err(|error| {
        ServiceError::bad_request(format!("The name '{name}' of a rule {error}."))
    })?;
    Ok(Rule {
        name: name.into(),
        filter: read_filter(name, element.part("Filter"))?,
        action: read_action(name, element.part("Action"))?,
        created_at,
    })
}

/// Writes a rule; the prefix of types tells how deep it stands, and JavaScript wants four messages.
pub(in crate::admin) fn write_rule(rule: &Rule, frame: Frame, in_feed: bool, out: &mut Writer) {
    let prefix = if in_feed { "d5p1" } else { "d6p1" };
    out.open(RULE, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)]);
    write_filter(&rule.filter, prefix, out);
    write_action(rule.action.as_ref(), prefix, out);
    out.element("CreatedAt", &frame.ticks(rule.created_at));
    out.element("Name", &rule.name);
    out.close(RULE);
}

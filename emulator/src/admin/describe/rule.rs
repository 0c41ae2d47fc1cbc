//! Parses a client's rule: its filter and action in all their forms (admin-http.md §6.1).

use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Filter, Parameters, Rule, SqlFilter, SyntaxError,
};
use servicebus_broker::{Timestamp, check_name};
use servicebus_config::descriptions::read_correlation;

use super::super::refusal::ServiceError;
use super::value::{read_values, short};
use crate::xml::Element;

const FILTERS: &str = "SqlFilter, TrueFilter, FalseFilter, CorrelationFilter";
const ACTIONS: &str = "SqlRuleAction, EmptyRuleAction";

/// The name of a rule whose description has none.
pub(crate) const DEFAULT_RULE: &str = "$Default";

/// Returns the name in a rule's description.
pub(crate) fn name_of_rule(element: &Element) -> Option<&str> {
    let name = element.part("Name").map(|name| name.text.trim());
    name.filter(|name| !name.is_empty())
}

/// Parses a rule, which may replace another one; its name is that of the path, not that of the description.
pub(crate) fn read_rule(
    element: &Element,
    name: &str,
    replaced: Option<&Rule>,
    created_at: Timestamp,
) -> Result<Rule, ServiceError> {
    check_name(name).map_err(|error| {
        ServiceError::bad_request(format!("The name '{name}' of a rule {error}."))
    })?;
    Ok(Rule {
        name: name.into(),
        filter: read_filter(
            name,
            element.part("Filter"),
            replaced.map(|rule| &rule.filter),
        )?,
        action: read_action(name, element.part("Action"))?,
        created_at,
    })
}

/// Parses the filter of a rule. An invalid one is refused; it never selects everything.
fn read_filter(
    rule: &str,
    element: Option<&Element>,
    replaced: Option<&Filter>,
) -> Result<Filter, ServiceError> {
    let found = element.and_then(|element| Some((element, element.xsi_type.as_ref()?)));
    let unknown = |name| {
        let text =
            format!("The filter of the rule '{rule}' has no known type; allowed: {FILTERS}.");
        ServiceError::parameter(text, "Filter", name)
    };
    let (element, found) = found.ok_or_else(|| unknown(""))?;
    match found.name.as_str() {
        "TrueFilter" => Ok(Filter::True),
        "FalseFilter" => Ok(Filter::False),
        "SqlFilter" => {
            let parse =
                |text: &str, parameters| SqlFilter::parse_replacing(replaced, text, parameters);
            expression(rule, "filter", element, parse).map(Filter::Sql)
        }
        "CorrelationFilter" => correlation(rule, element),
        other => Err(unknown(other)),
    }
}

/// Parses the action of a rule; `None` if it does nothing.
fn read_action(rule: &str, element: Option<&Element>) -> Result<Option<Action>, ServiceError> {
    let Some(element) = element else {
        return Ok(None);
    };
    let name = element.xsi_type.as_ref().map(|found| found.name.as_str());
    match name {
        Some("EmptyRuleAction") => Ok(None),
        Some("SqlRuleAction") => expression(rule, "action", element, Action::parse).map(Some),
        None if element.children.is_empty() => Ok(None),
        other => {
            let text =
                format!("The action of the rule '{rule}' has no known type; allowed: {ACTIONS}.");
            Err(ServiceError::parameter(
                text,
                "Action",
                other.unwrap_or_default(),
            ))
        }
    }
}

fn expression<T>(
    rule: &str,
    part: &str,
    element: &Element,
    parse: impl FnOnce(&str, Parameters) -> Result<T, SyntaxError>,
) -> Result<T, ServiceError> {
    let Some(text) = element.part("SqlExpression").map(|part| part.text.as_str()) else {
        let text = format!("The {part} of the rule '{rule}' has no 'SqlExpression'.");
        return Err(ServiceError::bad_request(text));
    };
    let mut parameters = Parameters::new();
    for (name, value) in read_values(element.part("Parameters"))? {
        parameters.add(&name, value);
    }
    parse(text, parameters).map_err(|error| {
        let message = format!("The {part} of the rule '{rule}' cannot be understood: {error}.");
        ServiceError::parameter(message, "SqlExpression", text)
    })
}

fn correlation(rule: &str, element: &Element) -> Result<Filter, ServiceError> {
    for part in &element.children {
        short(rule, &part.name, &part.text)?;
    }
    let text = |name| element.part(name).map(|part| part.text.as_str().into());
    let properties = read_values(element.part("Properties"))?.into_iter();
    let properties = properties.map(|(name, value)| (name.into(), value));
    let description = read_correlation(properties.collect(), text);
    if description == Correlation::default() {
        let text = format!(
            "The correlation filter of the rule '{rule}' has no condition; allowed: at least one property."
        );
        return Err(ServiceError::bad_request(text));
    }
    Ok(Filter::Correlation(CorrelationFilter::new(description)))
}

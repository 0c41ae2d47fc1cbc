//! The rules of a subscription.
//!
//! A rule that cannot be understood is reported, never dropped and never one that lets everything through: the
//! official emulator's silence about such rules is what its users complain of most.

use servicebus_broker::Timestamp;
use servicebus_broker::filter::{
    Action, CorrelationFilter, Filter, Parameters, Rule, SqlFilter, SyntaxError,
};

use super::{check_small_name, report_repeated};
use crate::config::document::{
    CorrelationBlock, ExpressionBlock, FilterType, RuleBlock, RuleProperties,
};
use crate::config::reader::{Located, Place, Report};

/// When a rule of a file was created, until it is served.
const NOT_YET: Timestamp = Timestamp::from_millis(0);

/// The rules in the order of their declaration; `$Default` when there are none.
pub(crate) fn rules(report: &Report<'_>, blocks: Vec<RuleBlock>) -> Vec<Rule> {
    if blocks.is_empty() {
        return vec![Rule::default_rule(NOT_YET)];
    }
    let names = blocks.iter().filter_map(|block| block.name.as_ref());
    report_repeated(report, "rule of the subscription", names);
    let rules = blocks.into_iter();
    rules.filter_map(|block| rule(report, block)).collect()
}

fn rule(report: &Report<'_>, block: RuleBlock) -> Option<Rule> {
    if let Some(name) = &block.name {
        check_small_name(report, name);
    }
    let properties = block.properties?;
    report_ignored(report, &properties);
    let filter_type = properties.filter_type.map(|found| found.value);
    let correlation = properties.correlation;
    let correlation = correlation.map(|block| correlation_filter(report, block));
    let sql = properties.sql;
    let sql = sql.and_then(|block| expression(report, block, "SQL filter", SqlFilter::parse));
    let action = properties.action;
    let action = action.map(|block| expression(report, block, "action", Action::parse));
    let filter = match filter_type? {
        FilterType::Correlation => Filter::Correlation(correlation?),
        FilterType::Sql => Filter::Sql(sql?),
        FilterType::True => Filter::True,
        FilterType::False => Filter::False,
    };
    Some(Rule {
        name: block.name?.value.into(),
        filter,
        action: match action {
            Some(action) => Some(action?),
            None => None,
        },
        created_at: NOT_YET,
    })
}

/// A filter of another type than the rule says would select nothing of what it describes.
fn report_ignored(report: &Report<'_>, properties: &RuleProperties) {
    let Some(filter_type) = &properties.filter_type else {
        return;
    };
    let correlation = properties.correlation.as_ref().map(|block| &block.place);
    let sql = properties.sql.as_ref().map(|block| &block.place);
    for (place, belongs_to) in [
        (correlation, FilterType::Correlation),
        (sql, FilterType::Sql),
    ] {
        if let Some(place) = place
            && belongs_to != filter_type.value
        {
            report_other_filter(report, place, belongs_to, filter_type.value);
        }
    }
}

fn report_other_filter(
    report: &Report<'_>,
    place: &Place,
    belongs_to: FilterType,
    filter_type: FilterType,
) {
    let message = format!(
        "belongs to the FilterType {:?}, and this rule has {:?}",
        belongs_to.name(),
        filter_type.name()
    );
    report.problem(place, message, None);
}

fn correlation_filter(report: &Report<'_>, block: CorrelationBlock) -> CorrelationFilter {
    if block.is_empty {
        let message = "names no property, so it would select every message";
        let allowed = "at least one property; the FilterType \"True\" selects every message";
        report.problem(&block.place, message, Some(allowed.to_owned()));
    }
    CorrelationFilter::new(block.correlation)
}

fn expression<T>(
    report: &Report<'_>,
    block: ExpressionBlock,
    thing: &str,
    parse: impl FnOnce(&str, Parameters) -> Result<T, SyntaxError>,
) -> Option<T> {
    let Located { place, value } = block.expression?;
    let parsed = parse(&value, block.parameters);
    if let Err(error) = &parsed {
        let message = format!("{} is no {thing}: {error}", report.excerpt(&place));
        report.problem_within(&place, &value, error.offset(), message);
    }
    parsed.ok()
}

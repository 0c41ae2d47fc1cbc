//! Validates a configuration: converts its blocks to namespaces that can be served.
//!
//! Every invalid value is reported at its position and validation continues, so that one run finds every problem. The result
//! is only used if nothing was reported.
//!
//! An invalid rule is reported; it is never left out, nor replaced by one that selects everything. That the official
//! emulator ignores such rules silently is the most frequent complaint of its users.

pub(crate) mod entities;
mod keys;

use std::collections::HashMap;
use std::path::Path;

use keys::KeyNames;
use servicebus_broker::filter::{
    Action, CorrelationFilter, Filter, Parameters, Rule, SqlFilter, SyntaxError,
};
use servicebus_broker::{Timestamp, check_name};

use super::document::{
    CorrelationBlock, Document, ExpressionBlock, FilterType, NamespaceBlock, RuleBlock,
    RuleProperties,
};
use super::reader::{Located, Location, Report};
use super::{Address, MAX_NAMESPACES, NamespaceConfig};

pub(crate) use keys::{generate_key, key_name};

/// The maximum length of a namespace name, which may be a label of a host name.
const MAX_NAMESPACE_NAME: usize = 63;

/// The description of valid namespace names.
pub const NAMESPACE_NAMES: &str =
    "1 to 63 letters, digits, '-', '_' and '.', a letter or digit first and last";

/// The purpose of a document.
pub(crate) struct ResolveContext<'a> {
    /// Which files the document may refer to.
    pub(crate) files: Files<'a>,
    /// The name of its only namespace, which replaces the one in the document.
    pub(crate) only: Option<&'a str>,
    /// Returns whether a key name belongs to a namespace that is already served.
    pub(crate) is_taken: &'a dyn Fn(&str) -> bool,
}

/// Which files a document may refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Files<'a> {
    /// Any file; relative names refer to this directory.
    RelativeTo(&'a Path),
    /// None, because a request opens no files here.
    Refused,
}

/// Returns the namespaces of a document.
pub(crate) fn resolve(
    report: &Report<'_>,
    document: Document,
    context: &ResolveContext<'_>,
) -> Vec<NamespaceConfig> {
    let Some(Located {
        location,
        value: blocks,
    }) = document.namespaces
    else {
        return Vec::new();
    };
    check_count(report, &location, blocks.len(), context);
    let names = blocks.iter().filter_map(|block| block.name.as_ref());
    report_repeated(report, "namespace", names);
    report_repeated_addresses(report, &blocks);
    let mut names = KeyNames::declared(report, &blocks, context.is_taken);
    let resolved = blocks
        .into_iter()
        .map(|block| namespace(report, block, &mut names, context));
    resolved.collect()
}

fn check_count(
    report: &Report<'_>,
    location: &Location,
    count: usize,
    context: &ResolveContext<'_>,
) {
    match count {
        0 => report.problem(location, "at least one namespace must be declared", None),
        1 => {}
        _ if context.only.is_some() => {
            let message = format!("{count} namespaces are declared, and one is to be made");
            report.problem(location, message, Some("one namespace".to_owned()));
        }
        _ if count > MAX_NAMESPACES => {
            let message = format!("{count} namespaces are declared");
            report.problem(location, message, Some(format!("at most {MAX_NAMESPACES}")));
        }
        _ => {}
    }
}

fn namespace(
    report: &Report<'_>,
    block: NamespaceBlock,
    names: &mut KeyNames<'_>,
    context: &ResolveContext<'_>,
) -> NamespaceConfig {
    let name = block.name.map(|name| {
        check_namespace_name(report, &name);
        name.value
    });
    let name = context.only.map(str::to_owned).or(name).unwrap_or_default();
    let settings = block.emulator.settings;
    let (queues, topics) = entities::entities(report, block.queues, block.topics, settings.tier);
    NamespaceConfig {
        keys: names.keys(report, &name, block.emulator.keys),
        token_check: block.emulator.token_check.unwrap_or_default(),
        jwt: keys::jwt(report, block.emulator.jwt, context.files),
        arm: block.emulator.arm.unwrap_or_default(),
        address: address(report, block.emulator.address),
        queues,
        topics,
        name,
        settings,
    }
}

/// Returns whether a namespace name is valid.
pub fn is_namespace_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let edges = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    edges && name.len() <= MAX_NAMESPACE_NAME && name.chars().all(legal)
}

fn check_namespace_name(report: &Report<'_>, name: &Located<String>) {
    if !is_namespace_name(&name.value) {
        let allowed = NAMESPACE_NAMES.to_owned();
        report.wrong_value(
            &name.location,
            "is not a valid namespace name",
            Some(allowed),
        );
    }
}

/// Reports repeated names, without regard to case.
fn report_repeated<'a>(
    report: &Report<'_>,
    thing: &str,
    names: impl Iterator<Item = &'a Located<String>>,
) {
    let mut seen: HashMap<String, &Location> = HashMap::new();
    for Located { location, value } in names {
        let key = value.chars().flat_map(char::to_lowercase).collect();
        if let Some(first) = seen.get(&key) {
            let first = &first.path;
            let what =
                format!("names another {thing} already, at {first}; case makes no difference");
            report.wrong_value(location, what, None);
        } else {
            seen.insert(key, location);
        }
    }
}

/// Reports an invalid name of a subscription or rule.
fn check_small_name(report: &Report<'_>, written: &Located<String>) {
    let Located { location, value } = written;
    if let Err(error) = check_name(value) {
        report.wrong_value(location, format!("is not a valid name: {error}"), None);
    }
}

/// Parses the address; an invalid one is reported.
fn address(report: &Report<'_>, written: Option<Located<String>>) -> Option<Address> {
    let Located { location, value } = written?;
    let address = value.parse();
    if address.is_err() {
        let allowed = Address::ALLOWED.to_owned();
        report.wrong_value(
            &location,
            "is not a valid address of a namespace",
            Some(allowed),
        );
    }
    address.ok()
}

/// Reports addresses that occur twice.
fn report_repeated_addresses(report: &Report<'_>, blocks: &[NamespaceBlock]) {
    let mut seen = HashMap::new();
    let written = blocks
        .iter()
        .filter_map(|block| block.emulator.address.as_ref());
    for Located { location, value } in written {
        let Ok(address) = value.parse::<Address>() else {
            continue;
        };
        if let Some(first) = seen.insert(address, &location.path) {
            let what = format!(
                "is the address of another namespace already, at {first}; an address chooses the namespace"
            );
            report.wrong_value(location, what, None);
        }
    }
}

/// The creation time of a rule until it is served.
const NOT_YET: Timestamp = Timestamp::from_millis(0);

/// Returns the rules in the order of declaration; `$Default` if there are none.
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
    let sql = sql.and_then(|block| match block.is_selector {
        true => expression(report, block, "selector", |text, _| {
            SqlFilter::selector(text)
        }),
        false => expression(report, block, "SQL filter", SqlFilter::parse),
    });
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

/// Reports a filter of another type than the rule's, which would have no effect.
fn report_ignored(report: &Report<'_>, properties: &RuleProperties) {
    let Some(filter_type) = &properties.filter_type else {
        return;
    };
    let correlation = properties.correlation.as_ref().map(|block| &block.location);
    let sql = properties.sql.as_ref().map(|block| &block.location);
    for (location, belongs_to) in [
        (correlation, FilterType::Correlation),
        (sql, FilterType::Sql),
    ] {
        if let Some(location) = location
            && belongs_to != filter_type.value
        {
            let (other, own) = (belongs_to.name(), filter_type.value.name());
            let message = format!("belongs to the FilterType {other:?}, and this rule has {own:?}");
            report.problem(location, message, None);
        }
    }
}

fn correlation_filter(report: &Report<'_>, block: CorrelationBlock) -> CorrelationFilter {
    if block.is_empty {
        let message = "names no property, so it would select every message";
        let allowed = "at least one property; the FilterType \"True\" selects every message";
        report.problem(&block.location, message, Some(allowed.to_owned()));
    }
    CorrelationFilter::new(block.correlation)
}

fn expression<T>(
    report: &Report<'_>,
    block: ExpressionBlock,
    thing: &str,
    parse: impl FnOnce(&str, Parameters) -> Result<T, SyntaxError>,
) -> Option<T> {
    let Located { location, value } = block.expression?;
    let parsed = parse(&value, block.parameters);
    if let Err(error) = &parsed {
        let message = format!(
            "{} is not a valid {thing}: {error}",
            report.excerpt(&location)
        );
        report.problem_within(&location, &value, error.offset(), message);
    }
    parsed.ok()
}

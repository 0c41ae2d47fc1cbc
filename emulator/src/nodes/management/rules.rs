//! `add-rule`, `remove-rule` and `enumerate-rules` of a subscription (wire.md §6.2).
//!
//! Descriptions are read encoded, so that the values of a correlation filter stay as they were sent.

use std::sync::Arc;

use servicebus_broker::filter::{
    Action, Correlation, CorrelationFilter, Encoded, Filter, Parameters, Rule, SqlFilter,
    SyntaxError,
};
use servicebus_broker::{ChangeRuleError, EntityPath, RuleChange, Timestamp, check_name};
use servicebus_codec::{Reader, Value, Writer};

use super::argument;
use crate::nodes::{Condition, Reply, Request, ServiceError};

/// Descriptors in the result of `enumerate-rules` (wire.md §6.2): rules and actions have one prefix, filters another.
mod code {
    pub(crate) const RULE: u64 = 0x0000_0137_0000_0004;
    pub(crate) const EMPTY_ACTION: u64 = 0x0000_0137_0000_0005;
    pub(crate) const SQL_ACTION: u64 = 0x0000_0137_0000_0006;
    pub(crate) const SQL_FILTER: u64 = 0x0000_0013_7000_0006;
    pub(crate) const TRUE_FILTER: u64 = 0x0000_0013_7000_0007;
    pub(crate) const FALSE_FILTER: u64 = 0x0000_0013_7000_0008;
    pub(crate) const CORRELATION_FILTER: u64 = 0x0000_0013_7000_0009;
}

/// The service's compatibility level.
const COMPATIBILITY: i32 = 20;

/// Returns whether an operation is about rules.
pub(crate) fn is_about_rules(request: &Request) -> bool {
    let operation = request.property("operation");
    operation.is_some_and(|operation| {
        let name = operation.strip_prefix("com.microsoft:");
        matches!(name, Some("add-rule" | "remove-rule" | "enumerate-rules"))
    })
}

/// Returns whether the request deletes messages without receiving them.
pub(crate) fn is_batch_delete(request: &Request) -> bool {
    request.property("operation") == Some("com.microsoft:batch-delete-messages")
}

/// Returns the change of rules in a request; `None` if it asks for their list.
pub(crate) fn rule_change(
    request: &Request,
    now: Timestamp,
) -> Result<Option<RuleChange>, ServiceError> {
    Ok(match request.property("operation") {
        // `{rule-name, rule-description: {sql-filter | correlation-filter, sql-rule-action}}` → 200.
        Some("com.microsoft:add-rule") => {
            let name = rule_name(request)?;
            let description = request.encoded("rule-description");
            let description = description.ok_or_else(|| argument("rule-description", "a map"))?;
            Some(RuleChange::Add(Rule {
                name: name.into(),
                filter: filter(description)?,
                action: action(description)?,
                created_at: now,
            }))
        }
        // `{rule-name}` → 200.
        Some("com.microsoft:remove-rule") => {
            Some(RuleChange::Remove(rule_name(request)?.to_owned()))
        }
        _ => None,
    })
}

fn rule_name(request: &Request) -> Result<&str, ServiceError> {
    let name = request.text("rule-name");
    let name = name.ok_or_else(|| argument("rule-name", "a string"))?;
    check_name(name).map_err(|error| {
        let text = format!("rule-name '{name}' {error}.");
        ServiceError::new(Condition::ArgumentError, text)
    })?;
    Ok(name)
}

/// `{skip: int, top: int}` → `{rules: [{rule-description}]}`, or 204. Times are converted to the client's, which is `ahead`
/// milliseconds behind the namespace's (decision D20).
pub(crate) fn enumerate_rules<'a>(
    request: &Request,
    rules: impl Iterator<Item = &'a Arc<Rule>>,
    ahead: i64,
) -> Result<Reply, ServiceError> {
    let bound = |name, default| match request.field(name) {
        None | Some(serde_amqp::Value::Null) => Ok(default),
        Some(_) => request.whole(name, 0).map(|number| number as usize),
    };
    let (skip, top) = (bound("skip", 0)?, bound("top", usize::MAX)?);
    let rules: Vec<_> = rules.skip(skip).take(top).collect();
    if rules.is_empty() {
        return Ok(Reply::no_content());
    }
    Ok(Reply::map(1, |out| {
        out.string("rules");
        let list = out.begin_list();
        for rule in &rules {
            let entry = out.begin_map();
            out.string("rule-description");
            write_rule(rule, ahead, out);
            out.end(entry, 2);
        }
        out.end(list, rules.len() as u32);
    }))
}

/// Returns the error for rules that were not changed, to a client that calls the namespace `host`.
pub(crate) fn change_refusal(
    error: &ChangeRuleError,
    subscription: &EntityPath,
    namespace: &str,
    host: &str,
) -> ServiceError {
    match error {
        ChangeRuleError::Exists(name) => {
            let (topic, own) = match subscription.topic() {
                Some((topic, own)) => (topic.to_string(), own),
                None => (String::new(), ""),
            };
            let text = format!(
                "The messaging entity '{namespace}:Topic:{topic}|{own}|{name}' already exists. To know more visit \
                 https://aka.ms/sbResourceMgrExceptions."
            );
            ServiceError::new(Condition::EntityAlreadyExists, text)
        }
        ChangeRuleError::LimitReached(_) => {
            ServiceError::new(Condition::ResourceLimitExceeded, error.to_string())
        }
        ChangeRuleError::NotFound(name) if name == subscription.as_str() => {
            ServiceError::not_found(host, name)
        }
        // Without these words JavaScript takes it for a network error and retries.
        ChangeRuleError::NotFound(name) => {
            ServiceError::not_found(host, &format!("{subscription}/Rules/{name}"))
        }
    }
}

/// Parses a filter. A rule without a valid filter is refused; it never matches everything.
fn filter(description: &[u8]) -> Result<Filter, ServiceError> {
    let sql = entry(description, "sql-filter").filter(|value| !is_nothing(value));
    let correlation = entry(description, "correlation-filter").filter(|value| !is_nothing(value));
    match (sql, correlation) {
        (Some(sql), None) => {
            let expression = text(sql, "expression");
            let wrong = || argument("rule-description.sql-filter.expression", "a string");
            let expression = expression.ok_or_else(wrong)?;
            let parsed = SqlFilter::parse(expression, Parameters::new());
            Ok(Filter::Sql(
                parsed.map_err(|error| syntax("filter", &error))?,
            ))
        }
        (None, Some(correlation)) => Ok(Filter::Correlation(CorrelationFilter::new(
            correlation_of(correlation)?,
        ))),
        _ => Err(argument(
            "rule-description",
            "a map with either 'sql-filter' or 'correlation-filter'",
        )),
    }
}

fn action(description: &[u8]) -> Result<Option<Action>, ServiceError> {
    let action = entry(description, "sql-rule-action").filter(|value| !is_nothing(value));
    let Some(action) = action else {
        return Ok(None);
    };
    // A map without an expression is not an action; anything else must not be ignored.
    let is_map = Reader::new(action).map().is_ok();
    let expression = match entry(action, "expression") {
        None if is_map => return Ok(None),
        Some(expression) if is_nothing(expression) => return Ok(None),
        expression => expression.and_then(|expression| Reader::new(expression).value().ok()),
    };
    let wrong = || argument("rule-description.sql-rule-action.expression", "a string");
    let expression = expression.and_then(|value| value.as_text());
    let parsed = Action::parse(expression.ok_or_else(wrong)?, Parameters::new());
    parsed.map(Some).map_err(|error| syntax("action", &error))
}

fn correlation_of(map: &[u8]) -> Result<Correlation, ServiceError> {
    let correlation = Correlation {
        correlation_id: own_text(map, "correlation-id")?,
        message_id: own_text(map, "message-id")?,
        to: own_text(map, "to")?,
        reply_to: own_text(map, "reply-to")?,
        label: own_text(map, "label")?,
        session_id: own_text(map, "session-id")?,
        reply_to_session_id: own_text(map, "reply-to-session-id")?,
        content_type: own_text(map, "content-type")?,
        properties: user_properties(map)?,
    };
    if correlation == Correlation::default() {
        let name = "rule-description.correlation-filter";
        return Err(argument(name, "a map that names a property at least"));
    }
    Ok(correlation)
}

/// Returns a text. A field that is present and not a string is refused: without it the rule would select more messages.
fn own_text(map: &[u8], name: &str) -> Result<Option<Box<str>>, ServiceError> {
    let Some(value) = entry(map, name).filter(|value| !is_nothing(value)) else {
        return Ok(None);
    };
    let value = Reader::new(value).value().ok();
    let value = value.and_then(|value| value.as_text());
    let wrong = || {
        let name = format!("rule-description.correlation-filter.{name}");
        argument(&name, "a string")
    };
    Ok(Some(value.ok_or_else(wrong)?.into()))
}

fn user_properties(map: &[u8]) -> Result<Vec<(Box<str>, Encoded)>, ServiceError> {
    let Some(user) = entry(map, "properties").filter(|value| !is_nothing(value)) else {
        return Ok(Vec::new());
    };
    let wrong = || {
        let name = "rule-description.correlation-filter.properties";
        argument(name, "a map from strings to primitive values")
    };
    let user = Reader::new(user).map().map_err(|_| wrong())?;
    let mut properties = Vec::new();
    for pair in user.raw_entries() {
        let (key, value) = pair.map_err(|_| wrong())?;
        let name = Reader::new(key).value().ok().and_then(|key| key.as_text());
        let name = name.ok_or_else(wrong)?;
        let value = Encoded::from_amqp(value).map_err(|_| wrong())?;
        properties.push((name.into(), value));
    }
    Ok(properties)
}

fn syntax(part: &str, error: &SyntaxError) -> ServiceError {
    ServiceError::new(
        Condition::ArgumentError,
        format!("The {part} of the rule cannot be understood: {error}."),
    )
}

/// Returns the encoded value of an entry of an encoded map.
fn entry<'a>(map: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let map = Reader::new(map).map().ok()?;
    let mut entries = map.raw_entries().flatten();
    let is_it = |key: &[u8]| {
        let key = Reader::new(key).value().ok();
        key.and_then(|key| key.as_text()) == Some(name)
    };
    entries.find(|(key, _)| is_it(key)).map(|(_, value)| value)
}

fn text<'a>(map: &'a [u8], name: &str) -> Option<&'a str> {
    Reader::new(entry(map, name)?).value().ok()?.as_text()
}

/// Returns whether a value is null or an empty map, which some SDKs send for omitted fields.
fn is_nothing(encoded: &[u8]) -> bool {
    let is_null = matches!(Reader::new(encoded).value(), Ok(Value::Null));
    is_null || Reader::new(encoded).map().is_ok_and(|map| map.count == 0)
}

fn write_rule(rule: &Rule, ahead: i64, out: &mut Writer<'_>) {
    out.long_descriptor(code::RULE);
    let list = out.begin_list();
    write_filter(&rule.filter, out);
    match &rule.action {
        Some(action) => write_expression(code::SQL_ACTION, action.text(), out),
        // JavaScript reads its descriptor, so that null is not possible.
        None => write_empty(code::EMPTY_ACTION, out),
    }
    out.string(&rule.name);
    out.timestamp(rule.created_at.as_millis().saturating_sub(ahead));
    out.end(list, 4);
}

fn write_filter(filter: &Filter, out: &mut Writer<'_>) {
    match filter {
        // Without the service's optional expression, with which Rust cannot read them.
        Filter::True => write_empty(code::TRUE_FILTER, out),
        Filter::False => write_empty(code::FALSE_FILTER, out),
        Filter::Sql(filter) => write_expression(code::SQL_FILTER, filter.text(), out),
        Filter::Correlation(filter) => write_correlation(filter.description(), out),
    }
}

fn write_expression(code: u64, expression: &str, out: &mut Writer<'_>) {
    out.long_descriptor(code);
    let list = out.begin_list();
    out.string(expression);
    out.int(COMPATIBILITY);
    out.end(list, 2);
}

fn write_empty(code: u64, out: &mut Writer<'_>) {
    out.long_descriptor(code);
    let list = out.begin_list();
    out.end(list, 0);
}

fn write_correlation(filter: &Correlation, out: &mut Writer<'_>) {
    out.long_descriptor(code::CORRELATION_FILTER);
    let list = out.begin_list();
    for text in [
        &filter.correlation_id,
        &filter.message_id,
        &filter.to,
        &filter.reply_to,
        &filter.label,
        &filter.session_id,
        &filter.reply_to_session_id,
        &filter.content_type,
    ] {
        match text {
            Some(text) => out.string(text),
            None => out.null(),
        }
    }
    let map = out.begin_map();
    for (name, value) in &filter.properties {
        out.string(name);
        out.raw(value.as_amqp());
    }
    out.end(map, filter.properties.len() as u32 * 2);
    out.end(list, 9);
}

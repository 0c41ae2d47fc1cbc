//! The cost of publishing in the core: filters compared with the same decision in code, and many correlation filters
//! compared with few.

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use servicebus_broker::filter::{
    Correlation, CorrelationFilter, Filter, Name, Parameters, Properties, Rule, SqlFilter, System,
    Truth, Value,
};
use servicebus_broker::{EntityDescription, Message, Timestamp};
use servicebus_codec::Writer;

use crate::Outcome;
use crate::arguments::Effort;
use crate::local::{Counter, LocalNamespace};
use crate::report::Report;
use crate::statistics::Rounds;

/// How much more a filter may cost than a closure over the same decoded properties.
const FILTER: f64 = 3.0;
/// How much more publishing with 100,000 correlation filters may cost than with 100.
const MANY: f64 = 3.0;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let calls = effort.pick(100, 200_000);
    let rounds = (0..effort.rounds()).map(|_| (by_hand(calls), evaluate(calls)));
    report.compare(
        "decode and decide: closure / SQL filter, ns",
        "SQL filter ÷ closure",
        Vec::from_iter(rounds).into_iter(),
        FILTER,
    );

    let messages = effort.pick(20, 2_000);
    for subscriptions in effort.pick([1, 2, 3, 4], [1, 10, 100, 1_000]) {
        let rounds = (0..effort.rounds()).map(|_| {
            let rules = (0..subscriptions).map(|n| sql(&format!("a = 'x{n}' AND b > 3")));
            publish(rules.collect(), messages)
        });
        let cost: Rounds = rounds.collect();
        let what = format!("publish to {subscriptions} with SQL filters, one matches, ns");
        report.note(&what, cost.to_string());
    }
    let (few, many) = effort.pick((10, 100), (100, 100_000));
    let mut ratio = Rounds::default();
    for _ in 0..effort.rounds() {
        let few = publish(vec![(0..few).flat_map(correlated).collect()], messages);
        let many = publish(vec![(0..many).flat_map(correlated).collect()], messages);
        ratio.push(many / few);
    }
    report.at_most("100,000 correlation filters ÷ 100", &ratio, "", MANY);
    Ok(())
}

/// A message of 1 KiB with `a` and `b`.
fn encoded(a: &str) -> Bytes {
    let mut bytes = Vec::new();
    let mut out = Writer::new(&mut bytes);
    out.descriptor(0x73);
    let properties = out.begin_list();
    out.string("message-0000000001");
    out.end(properties, 1);
    out.descriptor(0x74);
    let map = out.begin_map();
    out.string("a");
    out.string(a);
    out.string("b");
    out.int(5);
    out.end(map, 4);
    out.descriptor(0x75);
    out.binary(&[b'x'; 1024]);
    bytes.into()
}

fn timed(calls: u32, mut call: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..calls).for_each(|_| call());
    begin.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn message() -> Message {
    Message::parse(encoded("x"), &mut Counter::default()).expect("our own message is sound")
}

fn decoded(message: &Message) -> Properties<'_> {
    let view = message.filter_view(&System::default());
    view.expect("our own message decodes")
}

fn evaluate(calls: u32) -> f64 {
    let message = message();
    let filter = SqlFilter::parse("a = 'x' AND b > 3", Parameters::new());
    let filter = filter.expect("our own filter is sound");
    let mut ids = Counter::default();
    timed(calls, || {
        let properties = decoded(black_box(&message));
        let truth = filter.evaluate(&properties, &mut ids);
        assert!(truth.is_ok_and(|truth| truth == Truth::True));
    })
}

fn by_hand(calls: u32) -> f64 {
    let message = message();
    let (a, b) = (Name::new("a"), Name::new("b"));
    timed(calls, || {
        let properties = decoded(black_box(&message));
        let is_x = matches!(properties.user(&a), Some(Value::Text(text)) if text == "x");
        let is_more = match properties.user(&b) {
            Some(Value::Signed(number)) => *number > 3,
            Some(Value::Float(number)) => *number > 3.0,
            _ => false,
        };
        assert!(black_box(is_x && is_more));
    })
}

fn rule(name: &str, filter: Filter) -> Rule {
    Rule {
        name: name.into(),
        filter,
        action: None,
        created_at: Timestamp::from_millis(0),
    }
}

fn sql(text: &str) -> Vec<Rule> {
    let filter = SqlFilter::parse(text, Parameters::new());
    vec![rule(
        "sql",
        Filter::Sql(filter.expect("our own filter is sound")),
    )]
}

fn correlated(n: u32) -> Vec<Rule> {
    let description = Correlation {
        properties: vec![("a".into(), format!("x{n}").as_str().into())],
        ..Correlation::default()
    };
    let filter = Filter::Correlation(CorrelationFilter::new(description));
    vec![rule(&format!("r{n}"), filter)]
}

/// Returns the nanoseconds per message of a topic with these rules, one element per subscription; deletes the copies.
fn publish(subscriptions: Vec<Vec<Rule>>, messages: u32) -> f64 {
    let mut local = LocalNamespace::topic(
        &EntityDescription::default(),
        &EntityDescription::default(),
        subscriptions,
    );
    let encoded = encoded("x0");
    timed(messages, || {
        local.send(encoded.clone());
    })
}

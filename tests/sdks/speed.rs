//! How many messages a second an SDK sends one by one, by what the broker recorded: few here, which says nothing of speed;
//! `SERVICEBUS_SENDS` says how many, and `SERVICEBUS_SENDS_FILE` names a file to which a line of JSON is added for each SDK.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;

use serde_json::json;
use servicebus_harness::EventKind;

use crate::driver::{Sdk, run_one};

/// A test per SDK, by its name.
macro_rules! sends_of {
    ($($test:ident: $sdk:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                sends(Sdk::$sdk, stringify!($test)).await;
            }
        )*
    };
}

sends_of! {
    python: PythonBlocking,
    javascript: JavaScript,
    go: Go,
    java: Java,
}

async fn sends(sdk: Sdk, name: &str) {
    let Some(servicebus) = run_one(sdk, "send.one_by_one").await else {
        return;
    };
    let orders = servicebus.queue("orders");
    let timeline = orders
        .timeline()
        .result()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let wanted = env::var("SERVICEBUS_SENDS").map_or(20, |sends| sends.parse().expect("a number"));
    let enqueued = timeline.events().iter();
    let enqueued = enqueued.filter(|event| event.kind == EventKind::Sent);
    let enqueued: Vec<_> = enqueued.collect();
    assert_eq!(enqueued.len(), wanted, "{timeline}");
    let Ok(file) = env::var("SERVICEBUS_SENDS_FILE") else {
        return;
    };
    let (first, last) = (enqueued[0], enqueued[wanted - 1]);
    let took = last.at.duration_since(first.at);
    let took = took.expect("time does not go back").as_secs_f64();
    let first = json!(first);
    let date = first["at"].as_str().map(|instant| &instant[..10]);
    let a_second = (wanted - 1) as f64 / took;
    let line = json!({
        "date": date,
        "section": "Sends by SDK",
        "what": name,
        "median": a_second, "least": a_second, "most": a_second,
    });
    let file = OpenOptions::new().create(true).append(true).open(file);
    writeln!(file.expect("the file can be written"), "{line}").expect("the file can be written");
}

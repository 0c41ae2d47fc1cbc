//! Clients that disconnect: their requests are dropped at an await.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use axum::body::to_bytes;
use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::{Emulator, Options};

/// Starts an emulator and an exploration whose runs have listeners of their own, for whose end a removal waits.
async fn begun() -> (Emulator, Control) {
    let config = r#"{"UserConfig":{"Namespaces":[{"Name":"other"}]}}"#;
    let options = Options {
        host: "127.0.0.1".into(),
        amqp_port: 0,
        amqps_port: None,
        http_port: 0,
        config: Config::parse(config).unwrap(),
        ..Options::default()
    };
    let emulator = Emulator::start(options).await.unwrap();
    let control = emulator.control();
    let request = json!({
        "topology": {"UserConfig": {"Namespaces": [{"Name": "run", "Emulator": {"Address": "127.0.0.93"}}]}},
        "parties": ["worker"],
    });
    let request = Body(serde_json::from_value(request).unwrap());
    let _ = begin(State(control.clone()), request).await.unwrap();
    (emulator, control)
}

/// Returns the status of the request for the next run, and its number.
async fn next_run(control: &Control) -> (StatusCode, Value) {
    let response = next(State(control.clone()), Id("1".to_owned())).await;
    let response = response.unwrap_or_else(|error| error.into_response());
    let status = response.status();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    (status, body["number"].clone())
}

fn send_result(control: &Control) -> impl Future<Output = Result<StatusCode, ApiError>> + use<> {
    let path = RunPath {
        id: "1".to_owned(),
        number: "1".to_owned(),
    };
    let result = RunResult {
        passed: true,
        message: None,
        location: None,
    };
    end(State(control.clone()), path, Body(result))
}

/// Drops a request when it waits for the first time; returns whether it waited.
async fn dropped_when_it_waits<T>(request: impl Future<Output = T>) -> bool {
    let mut request = pin!(request);
    poll_fn(|context| Poll::Ready(request.as_mut().poll(context).is_pending())).await
}

#[tokio::test]
async fn a_result_whose_client_disconnects_is_not_lost() {
    let (emulator, control) = begun().await;
    assert_eq!(next_run(&control).await, (StatusCode::CREATED, json!(1)));
    assert!(dropped_when_it_waits(send_result(&control)).await);
    // The client does not know whether its result arrived, and sends it again.
    let _ = send_result(&control).await;
    assert_eq!(next_run(&control).await, (StatusCode::CREATED, json!(2)));
    let names = emulator.namespaces().into_iter().map(|own| own.name);
    let names: Vec<String> = names.collect();
    assert_eq!(names, ["other", "exploration-1-run-2"]);
}

#[tokio::test]
async fn an_exploration_whose_removal_has_to_wait_can_be_removed_again() {
    let (emulator, control) = begun().await;
    assert_eq!(next_run(&control).await, (StatusCode::CREATED, json!(1)));
    let exploration = control.explorations.find("1").unwrap();
    let runs = exploration.state.lock().await;
    let removal = || remove(State(control.clone()), Id("1".to_owned()));
    assert!(dropped_when_it_waits(removal()).await);
    // A request that waits behind a removal begins no run in what is removed.
    let mut removed = pin!(removal());
    let mut waiting = pin!(next_run(&control));
    for is_waiting in [
        poll_fn(|context| Poll::Ready(removed.as_mut().poll(context).is_pending())).await,
        poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending())).await,
    ] {
        assert!(is_waiting);
    }
    drop(runs);
    assert_eq!(removed.await.unwrap(), StatusCode::NO_CONTENT);
    assert_eq!(waiting.await.0, StatusCode::NO_CONTENT);
    assert_eq!(emulator.namespaces().len(), 1);
}

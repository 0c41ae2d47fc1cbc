//! Every mode is the same namespace, and none turns silently into another.

use rstest::rstest;
use servicebus_harness::{CONNECTION_STRING_VARIABLE, MODE_VARIABLE, WITHIN_VARIABLE, prelude::*};

use crate::harness::orders;
use servicebus_test_support::built;

#[rstest]
#[case(Mode::InProcess)]
#[case(Mode::Process)]
#[tokio::test]
async fn a_poison_message_is_dead_lettered_in_every_mode(#[case] mode: Mode) {
    let servicebus = ServiceBus::builder()
        .topology(orders())
        .mode(mode)
        .binary(built::emulator())
        .start()
        .await;
    assert_eq!(servicebus.mode(), mode);
    let orders = servicebus.queue("orders");

    let message = Message::from("not json").message_id("o-17");
    orders.send(message).await;
    for delivery in 1..=3 {
        let received = orders.receive().await;
        assert_eq!(received.delivery_count(), delivery);
        received.abandon().await;
    }

    assert_dead_lettered!(
        orders,
        reason = "MaxDeliveryCountExceeded",
        description = contains("3 delivery attempts"),
        message_id = "o-17",
        count = 1,
    )
    .await;
    assert_empty!(orders).await;
}

#[cfg(not(feature = "container"))]
#[tokio::test]
async fn a_disabled_mode_names_its_feature() {
    let started = ServiceBus::builder()
        .mode(Mode::Container)
        .start()
        .result()
        .await;
    let error = started.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mode);
    let text = error.to_string();
    for words in [
        "mode \"container\" needs the feature `container` of servicebus-harness",
        "features = [\"container\"]",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
}

#[test]
fn the_environment_selects_the_mode() {
    if built::is_child() {
        return built::run_child(start_in_the_mode_of_the_environment());
    }
    for (value, expected) in [
        ("process", "started in mode process"),
        ("InProcess", "started in mode in-process"),
        (
            "docker",
            "SERVICEBUS_HARNESS_MODE is \"docker\", which is not a mode",
        ),
        (
            "namespace",
            "the namespace that SERVICEBUS_CONNECTION_STRING names, which is not set",
        ),
    ] {
        let output = built::rerun()
            .env(MODE_VARIABLE, value)
            .env_remove(CONNECTION_STRING_VARIABLE)
            .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&output.stdout);
        assert!(output.contains(expected), "{output}");
    }
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn start_in_the_mode_of_the_environment() {
    match ServiceBus::builder().start().result().await {
        Ok(servicebus) => println!("started in mode {}", servicebus.mode()),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn settings_of_another_emulator_are_not_inherited() {
    if built::is_child() {
        return built::run_child(start_in_the_mode_of_the_environment());
    }
    let output = built::rerun()
        .env(MODE_VARIABLE, "process")
        .env_remove(CONNECTION_STRING_VARIABLE)
        .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
        .env("SERVICEBUS_EMULATOR_CONTROL_TOKEN", "secret")
        .env("SERVICEBUS_EMULATOR_TLS_CERTIFICATE", "none.pem")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("started in mode process"), "{output}");
}

#[test]
fn the_environment_sets_the_default_wait() {
    if built::is_child() {
        return built::run_child(wait_as_long_as_the_environment_sets());
    }
    for (value, expected) in [
        (
            "0.05",
            [
                "no message arrived within 0.05 s",
                "found active = 0 after 0.05 s",
            ],
        ),
        (
            "soon",
            ["SERVICEBUS_HARNESS_WITHIN is \"soon\"; allowed: seconds, such as 20 or 0.5"; 2],
        ),
    ] {
        let output = built::rerun().env(WITHIN_VARIABLE, value).output().unwrap();
        let output = String::from_utf8_lossy(&output.stdout);
        for expected in expected {
            assert!(output.contains(expected), "{output}");
        }
    }
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn wait_as_long_as_the_environment_sets() {
    let servicebus = match ServiceBus::start().result().await {
        Ok(servicebus) => servicebus,
        Err(error) => return println!("{error}"),
    };
    let queue = servicebus.queue("queue.1");
    println!("{}", queue.receive().result().await.unwrap_err());
    let counted = queue.expect_message_count().active(1).await;
    println!("{}", counted.unwrap_err());
    // What the builder says is stronger.
    let longer = ServiceBus::builder().within(std::time::Duration::from_millis(70));
    let longer = longer.start().await;
    let nothing = longer
        .queue("queue.1")
        .receive()
        .result()
        .await
        .unwrap_err();
    assert!(nothing.to_string().contains("within 0.07 s"), "{nothing}");
}

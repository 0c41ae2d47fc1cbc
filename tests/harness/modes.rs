//! Every mode is the same bus, and none turns silently into another.

use rstest::rstest;
use servicebus_harness::{MODE_VARIABLE, ModeError, StartError, prelude::*};

use crate::{built, child, orders};

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
        .await
        .unwrap();
    assert_eq!(servicebus.mode(), mode);
    let orders = servicebus.queue("orders");

    orders.send(Message::from("not json").id("o-17")).await;
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

#[tokio::test]
async fn a_mode_that_is_not_built_says_so() {
    let mode = Mode::Container;
    let error = ServiceBus::builder().mode(mode).start().await.unwrap_err();
    assert!(matches!(
        error,
        StartError::Mode(ModeError::NotBuilt { .. })
    ));
    assert_eq!(
        error.to_string(),
        format!(
            "mode \"{mode}\" is not built yet; choose in-process, process or namespace, by SERVICEBUS_HARNESS_MODE or by the builder"
        )
    );
}

#[test]
fn the_environment_picks_the_mode() {
    if child::is_child() {
        return child::play(start_as_the_environment_says());
    }
    for (value, expected) in [
        ("process", "started in mode process"),
        ("InProcess", "started in mode in-process"),
        (
            "docker",
            "SERVICEBUS_HARNESS_MODE is \"docker\", which is no mode",
        ),
        ("container", "mode \"container\" is not built yet"),
    ] {
        let output = child::again("modes::the_environment_picks_the_mode")
            .env(MODE_VARIABLE, value)
            .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&output.stdout);
        assert!(output.contains(expected), "{output}");
    }
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn start_as_the_environment_says() {
    match ServiceBus::builder().start().await {
        Ok(servicebus) => println!("started in mode {}", servicebus.mode()),
        Err(error) => println!("{error}"),
    }
}

//! Every mode is the same bus, and none turns silently into another.

use std::{env, process::Command};

use rstest::rstest;
use servicebus_harness::{MODE_VARIABLE, ModeError, StartError, prelude::*};

use crate::{built, orders};

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

#[rstest]
#[case(Mode::Container)]
#[case(Mode::Namespace)]
#[tokio::test]
async fn a_mode_that_is_not_built_says_so(#[case] mode: Mode) {
    let error = ServiceBus::builder().mode(mode).start().await.unwrap_err();
    assert!(matches!(
        error,
        StartError::Mode(ModeError::NotBuilt { .. })
    ));
    assert_eq!(
        error.to_string(),
        format!(
            "mode \"{mode}\" is not built yet; choose in-process or process, by SERVICEBUS_HARNESS_MODE or by the builder"
        )
    );
}

#[rstest]
#[case("process", "started in mode process")]
#[case("InProcess", "started in mode in-process")]
#[case("docker", "SERVICEBUS_HARNESS_MODE is \"docker\", which is no mode")]
#[case("container", "mode \"container\" is not built yet")]
fn the_environment_picks_the_mode(#[case] value: &str, #[case] expected: &str) {
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", "modes::starts_as_the_environment_says"])
        .args(["--ignored", "--nocapture"])
        .env(MODE_VARIABLE, value)
        .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains(expected), "{output}");
}

#[tokio::test]
#[ignore = "run by the test above, with an environment of its own"]
#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn starts_as_the_environment_says() {
    match ServiceBus::builder().start().await {
        Ok(servicebus) => println!("started in mode {}", servicebus.mode()),
        Err(error) => println!("{error}"),
    }
}

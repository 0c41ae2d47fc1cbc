//! Connection strings with fewer rights than all.

use rstest::rstest;
use servicebus_harness::prelude::*;
use servicebus_test_support::{built, client::Client};

/// Which of sending and receiving a connection string allows.
async fn allowed(servicebus: &ServiceBus, connection_string: &str) -> (bool, bool) {
    let endpoint = servicebus.endpoints().amqp;
    let connecting = Client::connect(endpoint, connection_string, "limited");
    let mut client = connecting.await.unwrap();
    let sends = client
        .try_sender("queue.1", Default::default())
        .await
        .is_ok();
    client.begin().await.unwrap();
    let receives = client.try_receiver("queue.1").await.is_ok();
    // A refused attach may have left it in any state.
    let _ = client.connection.close().await;
    (sends, receives)
}

#[rstest]
#[case(ServiceBus::builder())]
#[case(ServiceBus::builder().mode(Mode::Process).binary(built::emulator()))]
#[tokio::test]
async fn a_key_gives_what_was_asked_for(#[case] builder: servicebus_harness::Builder) {
    each_key_gives_its_rights(&builder.start().await).await;
}

/// Expects that a client can do what its key allows and nothing else.
pub(crate) async fn each_key_gives_its_rights(servicebus: &ServiceBus) {
    let cases = [
        (Claims::SEND, (true, false)),
        (Claims::LISTEN, (false, true)),
        (Claims::SEND | Claims::LISTEN, (true, true)),
        (Claims::ALL, (true, true)),
    ];
    for (claims, expected) in cases {
        let connection_string = servicebus.connection_string_with(claims);
        let found = allowed(servicebus, &connection_string).await;
        assert_eq!(found, expected, "{claims}");
    }
    let all = servicebus.connection_string_with(Claims::ALL);
    assert_eq!(all, servicebus.connection_string());
}

#[tokio::test]
#[should_panic(
    expected = "this namespace has no key with the rights \"none\"; a namespace in mode in-process, process or container has one"
)]
async fn there_is_no_key_without_rights() {
    let servicebus = ServiceBus::start().await;
    servicebus.connection_string_with(Claims::NONE);
}

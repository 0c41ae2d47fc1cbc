//! Connection strings with fewer rights than all.

use fe2o3_amqp::{Connection, Receiver, Sender, Session, sasl_profile::SaslProfile};
use rstest::rstest;
use servicebus_harness::prelude::*;

use servicebus_test_support::built;

/// Which of sending and receiving a connection string allows.
async fn allowed(servicebus: &ServiceBus, connection_string: &str) -> (bool, bool) {
    let part = |name: &str| {
        let mut parts = connection_string
            .split(';')
            .filter_map(|part| part.split_once('='));
        parts
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    };
    let sasl = SaslProfile::Plain {
        username: part("SharedAccessKeyName").unwrap(),
        password: part("SharedAccessKey").unwrap(),
    };
    let endpoint = servicebus.endpoints().amqp;
    let mut connection = Connection::builder()
        .container_id("limited")
        .sasl_profile(sasl)
        .open(format!("amqp://{endpoint}").as_str())
        .await
        .unwrap();
    let mut session = Session::begin(&mut connection).await.unwrap();
    let sends = Sender::attach(&mut session, "sender", "queue.1")
        .await
        .is_ok();
    let mut session = Session::begin(&mut connection).await.unwrap();
    let receives = Receiver::attach(&mut session, "receiver", "queue.1")
        .await
        .is_ok();
    // A refused attach may have left it in any state.
    let _ = connection.close().await;
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

// says: the assertion does not expect anything yet
// says: name a number of messages, such as `active = 2`
use servicebus_harness::prelude::*;

#[tokio::test]
async fn a_count_without_numbers() {
    let servicebus = ServiceBus::start().await;
    assert_message_count!(servicebus.queue("queue.1")).await;
}

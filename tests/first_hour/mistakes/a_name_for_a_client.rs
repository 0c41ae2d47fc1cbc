// says: is not a client of a queue, topic or subscription
// says: an assertion takes the client of an entity: `servicebus.queue("orders")`
// says: a name does not identify the namespace of its entity
use servicebus_harness::prelude::*;

#[tokio::test]
async fn a_name_for_a_client() {
    assert_empty!("orders").await;
}

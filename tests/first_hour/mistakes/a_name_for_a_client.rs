// says: is no client of a queue, topic or subscription
// says: an assertion takes the client of an entity: `servicebus.queue("orders")`
// says: a name does not say in which namespace its entity is
use servicebus_harness::prelude::*;

#[tokio::test]
async fn a_name_for_a_client() {
    assert_empty!("orders").await;
}

// says: there is no argument `topologies`; allowed are `topology = Topology::…` and `builder = ServiceBus::builder()…`
use servicebus_harness::prelude::*;

#[servicebus_harness::test(topologies = Topology::new())]
async fn an_unknown_argument(servicebus: ServiceBus) {
    drop(servicebus);
}

// says: there is no `topologies`; `topology = Topology::…` and `builder = ServiceBus::builder()…` are what there is
use servicebus_harness::prelude::*;

#[servicebus_harness::test(topologies = Topology::new())]
async fn an_unknown_argument(servicebus: ServiceBus) {
    drop(servicebus);
}

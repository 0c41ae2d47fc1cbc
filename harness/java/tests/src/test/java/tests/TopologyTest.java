package tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import servicebus.emulator.ServiceBus;
import servicebus.emulator.ServiceBusEmulator;
import servicebus.emulator.ServiceBusExtension;
import servicebus.emulator.Topology;

/** Topologies in code, also if the class has the annotation. */
@ServiceBusEmulator
class TopologyTest {
    private static final Map<String, ?> NONE = Map.of();

    @RegisterExtension
    static final ServiceBusExtension SERVICEBUS = new ServiceBusExtension(new Topology()
            .queues("plain")
            .queue("carts", Map.of("RequiresSession", true, "LockDuration", Duration.ofSeconds(30)))
            .topic("prices", NONE,
                    Topology.subscription("high", NONE, Topology.sql("high", "price > 10")),
                    Topology.subscription("orders", NONE, Topology.correlation("o", Map.of("Label", "order"))),
                    Topology.subscription("all", Map.of("MaxDeliveryCount", 3)))
            .settings(Map.of("Tier", "premium")));

    @Test
    void rules(ServiceBus servicebus) {
        var rule = servicebus.explain("prices/Subscriptions/high", Map.of("price", 3), NONE).get("high");
        assertEquals(false, rule.get("matched"));
        assertEquals("price > 10", ((Map<?, ?>) rule.get("reason")).get("expression"));
        rule = servicebus.explain("prices/Subscriptions/orders", null, Map.of("Label", "order")).get("o");
        assertEquals(true, rule.get("matched"));
        servicebus.counts("prices/Subscriptions/all");
    }

    @Test
    @ServiceBusEmulator(queues = "annotated")
    void theAnnotationOfATest(ServiceBus servicebus) {
        servicebus.counts("annotated");
    }

    @Test
    void aSession(ServiceBus servicebus) {
        Clients.send(servicebus, "carts", message -> message.setSessionId("cart-7"));
        var cart = servicebus.sessions("carts").get(0);
        assertEquals("cart-7", cart.get("id"));
        assertEquals(1L, cart.get("active"));
        servicebus.reset();
        assertTrue(servicebus.sessions("carts").isEmpty());
    }
}

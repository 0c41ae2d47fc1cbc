package tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.Session;
import java.security.KeyStore;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import servicebus.emulator.Emulator;
import servicebus.emulator.EmulatorException;
import servicebus.emulator.ServiceBus;
import servicebus.emulator.ServiceBusEmulator;
import servicebus.emulator.Topology;

/** A test has its own namespace, with the declared entities. */
@ServiceBusEmulator(queues = {"orders", "invoices"})
class NamespacesTest {
    @Test
    void theClassDeclaresQueues(ServiceBus servicebus) {
        assertEquals(0, servicebus.counts("invoices").get("active"));
    }

    @Test
    @ServiceBusEmulator(topology = "declared.json")
    void aResource(ServiceBus servicebus) {
        servicebus.counts("from-a-resource");
    }

    @Test
    @ServiceBusEmulator(topology = """
            {"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "written-here"}]}]}}
            """)
    void aText(ServiceBus servicebus) {
        servicebus.counts("written-here");
    }

    @Nested
    class WithinAnother {
        private String name;

        @BeforeEach
        void prepare(ServiceBus servicebus) {
            name = servicebus.name();
        }

        @Test
        void anOuterClassDeclaresQueues(ServiceBus servicebus) {
            servicebus.counts("orders");
            assertEquals(name, servicebus.name());
        }
    }

    @Test
    void aMessage(ServiceBus servicebus) {
        Clients.send(servicebus, "orders");
        assertEquals(1, servicebus.counts("orders").get("active"));
        Clients.complete(servicebus, "orders");
        servicebus.waitIdle();
        assertTrue(servicebus.isIdle());
        assertEquals(List.of("sent", "delivered", "completed"), servicebus.timeline("orders", "o-17").kinds());
        servicebus.reset();
        assertEquals("  nothing happened", servicebus.timeline().toString());
    }

    @Test
    void aMessageOverTls(ServiceBus servicebus) throws Exception {
        var managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(KeyStore.getInstance(servicebus.trustStore().toFile(), "any".toCharArray()));
        var trusting = SSLContext.getInstance("TLS");
        trusting.init(null, managers.getTrustManagers(), null);
        SSLContext.setDefault(trusting);
        Clients.send(servicebus.tlsConnectionString(), "orders", message -> message);
        assertEquals(1, servicebus.counts("orders").get("active"));
    }

    @Test
    void time(ServiceBus servicebus) {
        servicebus.freeze();
        Instant began = servicebus.now();
        Clients.send(servicebus, "orders", message -> message.setTimeToLive(Duration.ofHours(1)));
        servicebus.advance(Duration.ofMillis(3_600_500));
        assertEquals(Duration.ofMillis(3_600_500), Duration.between(began, servicebus.now()));
        assertEquals(0, servicebus.counts("orders").get("active"));
        servicebus.resume();
        servicebus.stepByItself();
        servicebus.holdClock(() -> {
            var due = servicebus.now().plus(Duration.ofHours(1)).atOffset(ZoneOffset.UTC);
            Clients.send(servicebus, "orders", message -> message.setScheduledEnqueueTime(due));
            assertEquals(1, servicebus.counts("orders").get("scheduled"));
        });
        servicebus.expect("orders", "message_count", Map.of("active", 1));
    }

    @Test
    void jms(ServiceBus servicebus) throws Exception {
        var factory = new JmsConnectionFactory(servicebus.jmsUrl());
        try (var connection = factory.createConnection()) {
            connection.start();
            var session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
            var orders = session.createQueue("orders");
            session.createProducer(orders).send(session.createTextMessage("by JMS"));
            var message = session.createConsumer(orders).receive(30_000);
            assertEquals("by JMS", message.getBody(String.class));
            message.acknowledge();
        }
        assertEquals("completed", servicebus.timeline("orders", null).kinds().get(2));
    }

    @Test
    void aWorkerBesideTheTest(ServiceBus servicebus) {
        var worker = CompletableFuture.runAsync(() -> Clients.complete(servicebus, "orders"));
        servicebus.waitForReceiver("orders");
        Clients.send(servicebus, "orders");
        servicebus.waitIdle();
        worker.join();
    }

    @Test
    void aBlockHasANamespaceWithoutJUnit() {
        String name;
        try (var servicebus = ServiceBus.start(new Topology().queues("a"))) {
            name = servicebus.name();
            servicebus.faults().on("complete").loseLock().remove();
        }
        try (var servicebus = ServiceBus.start(new Topology().settings(Map.of("Tier", "premium")))) {
            assertFalse(servicebus.name().equals(name));
            servicebus.counts("queue.1");
        }
        try (var emulator = new Emulator("--tier", "premium"); var servicebus = new ServiceBus(emulator, "")) {
            assertEquals("test-1", servicebus.name());
        }
    }

    @Test
    void withoutACertificateAuthorityTheErrorNamesTheOption() {
        try (var emulator = new Emulator(); var servicebus = new ServiceBus(emulator, null)) {
            emulator.ready().put("trust_store", null);
            var error = assertThrows(EmulatorException.class, servicebus::trustStore);
            assertTrue(error.getMessage().endsWith(": pass `--tls-directory DIR`"), error.getMessage());
        }
    }
}

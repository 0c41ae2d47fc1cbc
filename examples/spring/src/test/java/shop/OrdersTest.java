package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.servicebus.jms.ConnectionStringBuilder;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactory;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactorySettings;
import jakarta.jms.ConnectionFactory;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Primary;
import org.springframework.jms.core.JmsTemplate;
import servicebus.emulator.ServiceBus;
import servicebus.emulator.ServiceBusEmulator;

@ServiceBusEmulator(queues = "orders")
class OrdersTest {
    @Test
    void anOrderBecomesAnInvoice(ServiceBus servicebus) {
        try (var shop = start(servicebus)) {
            shop.getBean(JmsTemplate.class).convertAndSend("orders", "one teapot");
            servicebus.expect("orders", "completed", Map.of("count", 1));
            // The subscription of a JMS client, as every SDK sees it.
            servicebus.expect("invoices/Subscriptions/archive$shop$D", "completed", Map.of("count", 1));
        }
    }

    @Test
    void aListenerThatThrowsGetsTheOrderAgain(ServiceBus servicebus) {
        try (var shop = start(servicebus)) {
            shop.getBean(JmsTemplate.class).convertAndSend("orders", "a teapot in a rush");
            servicebus.expect("orders", "completed", Map.of("count", 1));
            assertEquals(3, shop.getBean(Orders.class).deliveries("a teapot in a rush"));
        }
    }

    @Test
    void anOrderThatNeverWorksIsDeadLettered(ServiceBus servicebus) {
        try (var shop = start(servicebus)) {
            shop.getBean(JmsTemplate.class).convertAndSend("orders", "a teapot without an address");
            servicebus.expect("orders", "dead_lettered", Map.of("reason", "MaxDeliveryCountExceeded"));
            assertEquals(10, shop.getBean(Orders.class).deliveries("a teapot without an address"));
        }
    }

    /** The application as in production, except for its connection string. */
    private static ConfigurableApplicationContext start(ServiceBus servicebus) {
        System.setProperty("javax.net.ssl.trustStore", servicebus.trustStore().toString());
        return new SpringApplicationBuilder(Shop.class, Connections.class)
                .run("--spring.jms.servicebus.connection-string=" + servicebus.tlsConnectionString());
    }

    /** The library does not read the port of a connection string; the emulator of the tests listens on a free port. */
    static class Connections {
        @Bean
        @Primary
        ConnectionFactory connectionFactory(
                @Value("${spring.jms.servicebus.connection-string}") String connectionString,
                @Value("${spring.jms.servicebus.topic-client-id}") String client) {
            var parsed = new ConnectionStringBuilder(connectionString);
            var factory = new ServiceBusJmsConnectionFactory(
                    parsed.getSasKeyName(),
                    parsed.getSasKey(),
                    "localhost:" + parsed.getEndpoint().getPort(),
                    new ServiceBusJmsConnectionFactorySettings());
            factory.setClientId(client);
            return factory;
        }
    }
}

package shop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.stereotype.Component;

/** The transacted listeners: when one throws, the order is redelivered, and finally dead-lettered. */
@Component
public class Orders {
    private final Map<String, Integer> attempts = new ConcurrentHashMap<>();
    private final JmsTemplate invoices;

    public Orders(JmsTemplate template) {
        invoices = new JmsTemplate(template.getConnectionFactory());
        invoices.setPubSubDomain(true);
    }

    @JmsListener(destination = "orders", containerFactory = "jmsListenerContainerFactory")
    public void take(String order, @Header("JMSXDeliveryCount") int delivery) {
        attempts.put(order, delivery);
        if (order.contains("without an address")) {
            throw new IllegalArgumentException("where to?");
        }
        if (order.contains("in a rush") && delivery < 3) {
            throw new IllegalStateException("busy, try again");
        }
        invoices.convertAndSend("invoices", "invoice for " + order);
    }

    @JmsListener(
            destination = "invoices",
            containerFactory = "topicJmsListenerContainerFactory",
            subscription = "archive")
    public void archive(String invoice) {
        attempts.put(invoice, 1);
    }

    /** The number of deliveries of an order or invoice so far. */
    public int deliveries(String text) {
        return attempts.getOrDefault(text, 0);
    }
}

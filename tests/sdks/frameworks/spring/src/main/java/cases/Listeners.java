package cases;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.spring.messaging.implementation.annotation.EnableAzureMessaging;
import com.azure.spring.messaging.servicebus.core.ServiceBusTemplate;
import com.azure.spring.messaging.servicebus.implementation.core.annotation.ServiceBusListener;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.messaging.handler.annotation.Payload;
import org.springframework.messaging.support.MessageBuilder;

/** Methods that the framework calls with messages: completed when they return, abandoned when they throw. */
@Configuration
@EnableAzureMessaging
class Listeners {
    record Order(String id, int amount) {}

    record Taken(Order order, String messageId, String color) {}

    private final ServiceBusTemplate template;
    final Seen<Taken> orders = new Seen<>();
    final Seen<String> prices = new Seen<>();
    final Seen<Long> attempts = new Seen<>();

    Listeners(ServiceBusTemplate template) {
        this.template = template;
    }

    @ServiceBusListener(destination = "orders")
    void order(
            @Payload Order order,
            @Header(ServiceBusMessageHeaders.MESSAGE_ID) String messageId,
            @Header("color") String color) {
        orders.add(new Taken(order, messageId, color));
    }

    @ServiceBusListener(destination = "prices", group = "alerts")
    void price(String price) {
        prices.add(price);
    }

    @ServiceBusListener(destination = "poison")
    void poison(ServiceBusReceivedMessage message) {
        attempts.add(message.getDeliveryCount());
        throw new IllegalStateException("as the case asks");
    }

    /** Replies to the queue and the session that the message names. */
    @ServiceBusListener(destination = "questions")
    void question(ServiceBusReceivedMessage message) {
        template.sendAsync(message.getReplyTo(), MessageBuilder.withPayload("the answer to " + message.getBody())
                .setHeader(ServiceBusMessageHeaders.SESSION_ID, message.getReplyToSessionId())
                .build()).block();
    }
}

package cases;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;

/** Messages to send, and properties of received ones. */
final class Messages {
    static final String EXPIRED = "TTLExpiredException";

    private Messages() {
    }

    static ServiceBusMessage text(String body) {
        return new ServiceBusMessage(body);
    }

    static ServiceBusMessage[] texts(String... bodies) {
        return List.of(bodies).stream().map(Messages::text).toArray(ServiceBusMessage[]::new);
    }

    static ServiceBusMessage[] texts(List<String> bodies) {
        return texts(bodies.toArray(String[]::new));
    }

    /** Bodies with the numbers from one to another. */
    static List<String> numbered(int from, int to) {
        return IntStream.range(from, to).mapToObj(index -> "number " + index).toList();
    }

    static ServiceBusMessage identified(String body, String id) {
        return text(body).setMessageId(id);
    }

    static ServiceBusMessage sized(int bytes) {
        return new ServiceBusMessage(new byte[bytes]);
    }

    /** A message of a session. */
    static ServiceBusMessage cart(String session, String body) {
        return text(body).setSessionId(session);
    }

    static ServiceBusMessage with(ServiceBusMessage message, Map<String, ?> properties) {
        message.getApplicationProperties().putAll(properties);
        return message;
    }

    static ServiceBusMessage price(String body, double price) {
        return with(text(body), Map.of("price", price));
    }

    static ServiceBusMessage at(OffsetDateTime time, ServiceBusMessage message) {
        return message.setScheduledEnqueueTime(time);
    }

    /** A message that expires after half a lock. */
    static ServiceBusMessage shortLived(String body) {
        return text(body).setTimeToLive(Duration.ofSeconds(30));
    }

    /** A time from now, by the clock of this process. */
    static OffsetDateTime later(int seconds) {
        return OffsetDateTime.now().plusSeconds(seconds);
    }

    static String body(ServiceBusReceivedMessage message) {
        return message.getBody().toString();
    }

    static List<String> bodies(Iterable<ServiceBusReceivedMessage> messages) {
        return mapped(messages, Messages::body);
    }

    static <T, R> List<R> mapped(Iterable<T> items, Function<T, R> function) {
        // Not toList of a collector: what is mapped may be null.
        return StreamSupport.stream(items.spliterator(), false).map(function).toList();
    }

    static List<Long> numbers(Iterable<ServiceBusReceivedMessage> messages) {
        return mapped(messages, ServiceBusReceivedMessage::getSequenceNumber);
    }

    static List<Long> deliveries(Iterable<ServiceBusReceivedMessage> messages) {
        return mapped(messages, ServiceBusReceivedMessage::getDeliveryCount);
    }

    static List<String> reasons(Iterable<ServiceBusReceivedMessage> messages) {
        return mapped(messages, ServiceBusReceivedMessage::getDeadLetterReason);
    }
}

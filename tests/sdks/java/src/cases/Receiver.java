package cases;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** The SDK's receiver, with or without a session, with what most cases ask of it. */
record Receiver(ServiceBusReceiverClient sdk) implements AutoCloseable {
    /** For asserting that nothing comes: a receive waits that long before it says so. */
    static final Duration NOTHING = Duration.ofMillis(300);
    /** What is refused is refused at once: longer means that the SDK tries again, or waits for an answer. */
    private static final Duration PROMPTLY = Duration.ofSeconds(15);

    /** Receives exactly so many messages, or says how many came. */
    List<ServiceBusReceivedMessage> receive(int count) {
        var messages = new ArrayList<ServiceBusReceivedMessage>();
        Instant deadline = Instant.now().plus(Expect.PATIENCE);
        while (messages.size() < count && Instant.now().isBefore(deadline)) {
            sdk.receiveMessages(count - messages.size(), Duration.between(Instant.now(), deadline))
                    .forEach(messages::add);
        }
        Expect.equal("number of messages received", messages.size(), count);
        return messages;
    }

    ServiceBusReceivedMessage one() {
        return receive(1).get(0);
    }

    /** The receiver gets nothing although it asks. */
    void receiveNothing() {
        Expect.equal("messages received", Messages.bodies(sdk.receiveMessages(1, NOTHING)), List.of());
    }

    /** A receive that is refused, for {@link Expect}. */
    void refused() {
        Expect.equal("messages received", Messages.bodies(sdk.receiveMessages(1, PROMPTLY)), List.of());
    }

    void complete(List<ServiceBusReceivedMessage> messages) {
        messages.forEach(sdk::complete);
    }

    void complete(ServiceBusReceivedMessage message) {
        sdk.complete(message);
    }

    void abandon(ServiceBusReceivedMessage message) {
        sdk.abandon(message);
    }

    void defer(List<ServiceBusReceivedMessage> messages) {
        messages.forEach(sdk::defer);
    }

    void defer(ServiceBusReceivedMessage message) {
        sdk.defer(message);
    }

    void deadLetter(ServiceBusReceivedMessage message, String reason, String description) {
        sdk.deadLetter(
                message,
                new DeadLetterOptions().setDeadLetterReason(reason).setDeadLetterErrorDescription(description));
    }

    /** Peeks from the last one on. */
    List<ServiceBusReceivedMessage> peek(int count) {
        return sdk.peekMessages(count).stream().toList();
    }

    List<ServiceBusReceivedMessage> peek(int count, long from) {
        return sdk.peekMessages(count, from).stream().toList();
    }

    List<ServiceBusReceivedMessage> deferred(Long... numbers) {
        return sdk.receiveDeferredMessageBatch(List.of(numbers)).stream().toList();
    }

    @Override
    public void close() {
        sdk.close();
    }
}

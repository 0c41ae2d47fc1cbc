package cases;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** The SDK's receiver, with or without a session, with the operations that most cases use. */
record Receiver(ServiceBusReceiverClient sdk) implements AutoCloseable {
    /** The time that a receive waits for a message that must not arrive. */
    static final Duration NOTHING = Duration.ofMillis(300);
    /** A rejection arrives at once; a longer wait means that the SDK retries, or waits for a response. */
    private static final Duration PROMPTLY = Duration.ofSeconds(15);

    /** Receives exactly this number of messages, or fails with the number received. */
    List<ServiceBusReceivedMessage> receive(int count) {
        var messages = new ArrayList<ServiceBusReceivedMessage>();
        Instant deadline = Instant.now().plus(Expect.TIMEOUT);
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

    /** A receive gets no message. */
    void receiveNothing() {
        Expect.equal("messages received", Messages.bodies(sdk.receiveMessages(1, NOTHING)), List.of());
    }

    /** A receive that fails, for {@link Expect}. */
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

    /** Peeks from the last message on. */
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

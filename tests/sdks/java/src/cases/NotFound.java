package cases;

import static cases.Messages.text;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusFailureReason;

/** Entities that do not exist: the SDK's error, at once, for every operation. */
final class NotFound {
    private NotFound() {
    }

    /** Sending to a missing queue. */
    static void sender(Namespace namespace) {
        Expect.refused(
                ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> namespace.send("missing", text("lost")));
    }

    /** Receiving from a missing queue. */
    static void receiver(Namespace namespace) {
        expectMissing(() -> namespace.receiver("missing").refused());
    }

    /** Receiving from the dead-letter queue of a missing queue. */
    static void deadLetters(Namespace namespace) {
        expectMissing(() -> namespace.deadLetters("missing").refused());
    }

    /** Peeking at a missing queue. */
    static void peek(Namespace namespace) {
        Expect.refused(
                ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> namespace.receiver("missing").peek(1));
    }

    /** Errors of sends and requests have the SDK's reason; the error of a receive has it only in its cause. */
    static void expectMissing(Runnable action) {
        Expect.condition(AmqpErrorCondition.NOT_FOUND, action);
    }
}

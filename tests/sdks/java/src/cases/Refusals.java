package cases;

import static cases.Messages.text;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import java.time.Duration;
import java.util.Map;

/**
 * Other errors, as the SDK's error or with the AMQP condition that it passes on.
 *
 * <p>Source: service-bus-messaging-exceptions, service-bus-quotas. These have the conditions that belong to no other
 * topic.
 */
final class Refusals {
    private Refusals() {
    }

    /** A client with a wrong key has no access to any entity. */
    static void wrongKey(Namespace namespace) {
        String wrong = namespace.connectionString().replace("SharedAccessKey=", "SharedAccessKey=not");
        var stranger = namespace.tryingOnce(wrong);
        Expect.refused(
                ServiceBusFailureReason.UNAUTHORIZED, () -> namespace.sender(stranger, "orders").send(text("forged")));
        Receiver receiver = namespace.receiver(stranger, builder -> builder.queueName("orders"));
        Expect.condition(AmqpErrorCondition.UNAUTHORIZED_ACCESS, receiver::refused);
    }

    /** Clients do not send to a dead-letter queue. */
    static void toDeadLetters(Namespace namespace) {
        Expect.notAllowed(() -> namespace.send("orders/$DeadLetterQueue", text("bad")));
    }

    /**
     * A property of more than 32 KB is an internal error of the service, which is retryable: this SDK retries it
     * until the timeout of an attempt, whatever the number of retries.
     */
    static void longProperty(Namespace namespace) {
        var once = namespace.tryingFor(Duration.ofSeconds(5));
        var message = Messages.with(text("wide"), Map.of("wide", "w".repeat(40_000)));
        Expect.condition(AmqpErrorCondition.INTERNAL_ERROR, () -> namespace.sender(once, "orders").send(message));
        namespace.expectCounts("orders", Map.of("active", 0));
    }
}

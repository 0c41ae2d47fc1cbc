package cases;

import static cases.Messages.body;
import static cases.Messages.text;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** Locks: renewed in time, by the application or the SDK, or lost with the SDK's own error. */
final class Locks {
    private Locks() {
    }

    /** A lock renewed in time lasts longer than its first minute. */
    static void renews(Namespace namespace) {
        namespace.send("orders", text("slow"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        for (int renewal = 0; renewal < 2; renewal++) {
            namespace.advance(40);
            Expect.freshLock(receiver.sdk().renewMessageLock(message));
        }
        namespace.advance(40);
        receiver.complete(message);
    }

    /** Settling after the lock has expired throws the SDK's error, and the message is redelivered and counted. */
    static void losesLock(Namespace namespace) {
        namespace.send("orders", text("late"));
        Receiver receiver = namespace.receiver("orders");
        List<Consumer<ServiceBusReceivedMessage>> settlements = List.of(receiver::complete, receiver::abandon);
        for (var settle : settlements) {
            var message = receiver.one();
            namespace.advance(61);
            Expect.refused(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> settle.accept(message));
        }
        // Dead-lettering is an AMQP rejection, so this SDK mistakes the error, which is also a rejection, for success.
        var unknowing = receiver.one();
        namespace.advance(61);
        receiver.sdk().deadLetter(unknowing);
        namespace.expectCounts("orders", Map.of("active", 1, "dead_letter", 0));
        var message = receiver.one();
        Expect.equal("body", body(message), "late");
        Expect.equal("deliveries", message.getDeliveryCount(), 3L);
        receiver.complete(message);
    }

    /** Renewing after the lock has expired throws the same error. */
    static void losesLockOnRenewal(Namespace namespace) {
        namespace.send("orders", text("late"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        namespace.advance(61);
        Expect.refused(
                ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> receiver.sdk().renewMessageLock(message));
        var again = receiver.one();
        Expect.equal("deliveries", again.getDeliveryCount(), 1L);
        receiver.complete(again);
    }

    /** Expired locks count as deliveries, as abandons do, until the message is dead-lettered. */
    static void expiresToTheLimit(Namespace namespace) {
        namespace.send("limited", text("forgotten"));
        Receiver receiver = namespace.receiver("limited");
        for (long delivery = 0; delivery < 3; delivery++) {
            Expect.equal("deliveries", receiver.one().getDeliveryCount(), delivery);
            namespace.advance(61);
        }
        Receiver deadLetters = namespace.deadLetters("limited");
        var message = deadLetters.one();
        Expect.equal("reason", message.getDeadLetterReason(), "MaxDeliveryCountExceeded");
        Expect.equal("deliveries", message.getDeliveryCount(), 3L);
        deadLetters.complete(message);
    }

    /** The SDK renews a lock automatically, before it expires by the client's clock. */
    static void autoRenewed(Namespace namespace) {
        namespace.configure("orders", Map.of("LockDuration", "PT12S"));
        namespace.send("orders", text("slow"));
        Receiver receiver = namespace.receiver(
                "orders", builder -> builder.maxAutoLockRenewDuration(Duration.ofMinutes(5)));
        var message = receiver.one();
        Expect.eventually("a renewal", () -> namespace.count("orders", "lock-renewed") > 0);
        namespace.advance(8);
        receiver.complete(message);
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
    }
}

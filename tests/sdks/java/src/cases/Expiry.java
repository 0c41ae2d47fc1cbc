package cases;

import static cases.Messages.EXPIRED;
import static cases.Messages.body;
import static cases.Messages.shortLived;
import static cases.Messages.text;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Expiry, under both settings of D1: when the message expires, or when a receiver is active. */
final class Expiry {
    private Expiry() {
    }

    /** An expired message is dead-lettered at once, or counted and peeked until a receiver attaches. */
    static void withoutReceiver(Namespace namespace) {
        namespace.send("expiring", shortLived("old"), text("young"));
        namespace.advance(31);
        int left = namespace.expiresEagerly() ? 1 : 2;
        namespace.expectCounts("expiring", Map.of("active", left, "dead_letter", 2 - left));
        Receiver receiver = namespace.receiver("expiring");
        // A peek of this SDK does not attach a receiver.
        Expect.equal("peeked", receiver.peek(10).size(), left);
        var message = receiver.one();
        Expect.equal("body of what is left", body(message), "young");
        receiver.complete(message);
        namespace.expectCounts("expiring", Map.of("active", 0, "dead_letter", 1));
        expectExpired(namespace, 0);
    }

    /** If the queue does not dead-letter on expiration, an expired message is removed. */
    static void dropped(Namespace namespace) {
        namespace.send("orders", shortLived("old"));
        namespace.advance(31);
        namespace.expectCounts("orders", Map.of("active", namespace.expiresEagerly() ? 0 : 1, "dead_letter", 0));
        namespace.receiver("orders").receiveNothing();
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", 0));
    }

    /** A locked message can be completed after it has expired. */
    static void completedUnderLock(Namespace namespace) {
        namespace.send("expiring", shortLived("old"));
        Receiver receiver = namespace.receiver("expiring");
        var message = receiver.one();
        namespace.advance(31);
        receiver.complete(message);
        namespace.expectCounts("expiring", Map.of("active", 0, "dead_letter", 0));
    }

    /** A message that has expired when it is abandoned is removed at once, under both settings. */
    static void abandonedAfterExpiry(Namespace namespace) {
        namespace.send("expiring", shortLived("old"));
        Receiver receiver = namespace.receiver("expiring");
        var message = receiver.one();
        namespace.advance(31);
        receiver.abandon(message);
        expectExpired(namespace, 1);
    }

    /** A message that has expired when its lock expires is also removed at once. */
    static void lockEndsAfterExpiry(Namespace namespace) {
        namespace.send("expiring", shortLived("old"));
        namespace.receiver("expiring").one();
        namespace.advance(61);
        expectExpired(namespace, 1);
    }

    /** The queue's time to live applies to messages that have none, and is the maximum for others. */
    static void byDefaultTimeToLive(Namespace namespace) {
        namespace.send("fleeting", text("none"), text("long").setTimeToLive(Duration.ofDays(1)));
        try (Receiver receiver = namespace.receiver("fleeting")) {
            for (var message : receiver.receive(2)) {
                Expect.equal("time to live", message.getTimeToLive(), Duration.ofMinutes(5));
                Expect.equal("expiry", message.getExpiresAt(), message.getEnqueuedTime().plusMinutes(5));
                receiver.abandon(message);
            }
        }
        namespace.advance(301);
        namespace.receiver("fleeting").receiveNothing();
        Receiver deadLetters = namespace.deadLetters("fleeting");
        var dead = deadLetters.receive(2);
        Expect.equal("reasons", Messages.reasons(dead), List.of(EXPIRED, EXPIRED));
        deadLetters.complete(dead);
    }

    /** Receives the only dead-lettered message of the queue, with the reason of an expired one. */
    private static void expectExpired(Namespace namespace, long delivered) {
        Receiver receiver = namespace.deadLetters("expiring");
        var message = receiver.one();
        Expect.equal("body", body(message), "old");
        Expect.equal("reason", message.getDeadLetterReason(), EXPIRED);
        String description = "The message expired and was dead lettered.";
        Expect.equal("description", message.getDeadLetterErrorDescription(), description);
        Expect.equal("deliveries", message.getDeliveryCount(), delivered);
        receiver.complete(message);
    }
}

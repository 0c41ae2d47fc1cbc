package cases;

import static cases.Messages.EXPIRED;
import static cases.Messages.body;
import static cases.Messages.shortLived;
import static cases.Messages.text;

import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Expiry, under both settings of D1: at its instant, or once a receiver is active. */
final class Expiry {
    private Expiry() {
    }

    /** An expired message is dead-lettered at once, or stays in counts and peeks until a receiver comes. */
    static void withoutReceiver(Namespace namespace) {
        namespace.send("expiring", shortLived("old"), text("young"));
        namespace.advance(31);
        int left = namespace.expiresEagerly() ? 1 : 2;
        namespace.expectCounts("expiring", Map.of("active", left, "dead_letter", 2 - left));
        Receiver receiver = namespace.receiver("expiring");
        // A peek of this SDK opens no link of a receiver.
        Expect.equal("peeked", receiver.peek(10).size(), left);
        var message = receiver.one();
        Expect.equal("body of what is left", body(message), "young");
        receiver.complete(message);
        namespace.expectCounts("expiring", Map.of("active", 0, "dead_letter", 1));
        expectExpired(namespace, 0);
    }

    /** Where the queue does not dead-letter on expiration, an expired message is gone. */
    static void dropped(Namespace namespace) {
        namespace.send("orders", shortLived("old"));
        namespace.advance(31);
        namespace.expectCounts("orders", Map.of("active", namespace.expiresEagerly() ? 0 : 1, "dead_letter", 0));
        namespace.receiver("orders").receiveNothing();
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", 0));
    }

    /** A lock outlives the message's time: completing under it still works. */
    static void completedUnderLock(Namespace namespace) {
        namespace.send("expiring", shortLived("old"));
        Receiver receiver = namespace.receiver("expiring");
        var message = receiver.one();
        namespace.advance(31);
        receiver.complete(message);
        namespace.expectCounts("expiring", Map.of("active", 0, "dead_letter", 0));
    }

    /** A message found expired when its lock is given up leaves at once, under both settings. */
    static void abandonedAfterExpiry(Namespace namespace) {
        namespace.send("expiring", shortLived("old"));
        Receiver receiver = namespace.receiver("expiring");
        var message = receiver.one();
        namespace.advance(31);
        receiver.abandon(message);
        expectExpired(namespace, 1);
    }

    /** A message found expired when its lock runs out leaves at once too. */
    static void lockEndsAfterExpiry(Namespace namespace) {
        namespace.send("expiring", shortLived("old"));
        namespace.receiver("expiring").one();
        namespace.advance(61);
        expectExpired(namespace, 1);
    }

    /** The queue's time to live applies where the message brings none, and is the ceiling of its own. */
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

    /** Receives the one dead letter of the queue: expired, with the service's words. */
    private static void expectExpired(Namespace namespace, long delivered) {
        Receiver receiver = namespace.deadLetters("expiring");
        var message = receiver.one();
        Expect.equal("body", body(message), "old");
        Expect.equal("reason", message.getDeadLetterReason(), EXPIRED);
        String words = "The message expired and was dead lettered.";
        Expect.equal("description", message.getDeadLetterErrorDescription(), words);
        Expect.equal("deliveries", message.getDeliveryCount(), delivered);
        receiver.complete(message);
    }
}

package cases;

import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.text;

import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.util.List;
import java.util.Map;

/** Settling: complete, abandon up to the delivery limit, dead-letter. */
final class Settle {
    private Settle() {
    }

    /** A completed message is removed; the SDK itself rejects settling it again. */
    static void completes(Namespace namespace) {
        namespace.send("orders", text("done"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        receiver.complete(message);
        Throwable failure = Expect.failure(() -> receiver.abandon(message));
        Expect.isTrue("it is a mistake of the program", failure instanceof IllegalArgumentException);
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", 0));
    }

    /** An abandoned message is available again at once, counted, at its old position and with new properties. */
    static void abandons(Namespace namespace) {
        var first = Messages.with(text("first"), Map.of("kept", "k", "changed", 1L));
        namespace.send("orders", first, text("second"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        var changes = new AbandonOptions().setPropertiesToModify(Map.of("changed", 2L, "added", "a"));
        receiver.sdk().abandon(message, changes);
        var messages = receiver.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("first", "second"));
        Expect.equal("deliveries", Messages.deliveries(messages), List.of(1L, 0L));
        Expect.equal("sequence number", messages.get(0).getSequenceNumber(), 1L);
        var expected = Map.of("kept", "k", "changed", 2L, "added", "a");
        Expect.equal("application properties", messages.get(0).getApplicationProperties(), expected);
        Expect.isTrue("the lock is a new one", !messages.get(0).getLockToken().equals(message.getLockToken()));
        receiver.complete(messages);
    }

    /** After the last delivery that a queue allows, a message is dead-lettered and keeps its delivery count (D4). */
    static void abandonsToTheLimit(Namespace namespace) {
        namespace.send("limited", Messages.identified("poison", "p-1"));
        Receiver receiver = namespace.receiver("limited");
        for (long delivery = 0; delivery < 3; delivery++) {
            var message = receiver.one();
            Expect.equal("deliveries", message.getDeliveryCount(), delivery);
            receiver.abandon(message);
        }
        namespace.expectCounts("limited", Map.of("active", 0, "dead_letter", 1));
        Receiver deadLetters = namespace.deadLetters("limited");
        var message = deadLetters.one();
        Expect.equal("message id", message.getMessageId(), "p-1");
        Expect.equal("reason", message.getDeadLetterReason(), "MaxDeliveryCountExceeded");
        String description = "Message could not be consumed after 3 delivery attempts.";
        Expect.equal("description", message.getDeadLetterErrorDescription(), description);
        Expect.equal("deliveries", message.getDeliveryCount(), 3L);
        deadLetters.complete(message);
        namespace.expectCounts("limited", Map.of("active", 0, "dead_letter", 0));
    }

    /** A dead-lettered message has the application's reason and the properties that it changed. */
    static void deadLetters(Namespace namespace) {
        namespace.send("orders", Messages.with(text("bad"), Map.of("kept", 1L, "changed", "before")));
        Receiver receiver = namespace.receiver("orders");
        receiver.sdk().deadLetter(receiver.one(), new DeadLetterOptions()
                .setDeadLetterReason("Rejected")
                .setDeadLetterErrorDescription("no total")
                .setPropertiesToModify(Map.of("changed", "after", "added", true)));
        Receiver deadLetters = namespace.deadLetters("orders");
        var dead = deadLetters.one();
        Expect.equal("body", body(dead), "bad");
        Expect.equal("reason", dead.getDeadLetterReason(), "Rejected");
        Expect.equal("description", dead.getDeadLetterErrorDescription(), "no total");
        Expect.equal("application properties", dead.getApplicationProperties(), Map.of(
                "kept", 1L,
                "changed", "after",
                "added", true,
                "DeadLetterReason", "Rejected",
                "DeadLetterErrorDescription", "no total"));
        Expect.equal("deliveries", dead.getDeliveryCount(), 0L);
        Expect.equal("source", dead.getDeadLetterSource(), null);
        deadLetters.complete(dead);
    }
}

package cases;

import static cases.Messages.bodies;
import static cases.Messages.shortLived;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.DeferOptions;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.util.List;
import java.util.Map;

/**
 * Deferred messages, which are received only by their sequence numbers.
 *
 * <p>Source: message-deferral.
 */
final class Deferral {
    private Deferral() {
    }

    /** Receives skip a deferred message, peeks and counts do not; it is received and locked by its sequence number. */
    static void byNumber(Namespace namespace) {
        namespace.send("orders", texts("a", "b"));
        Receiver receiver = namespace.receiver("orders");
        receiver.defer(receiver.receive(2));
        namespace.expectCounts("orders", Map.of("active", 2, "deferred", 2, "locked", 0));
        receiver.receiveNothing();
        var deferred = List.of(ServiceBusMessageState.DEFERRED, ServiceBusMessageState.DEFERRED);
        Expect.equal("states", states(receiver.peek(10)), deferred);
        var messages = receiver.deferred(2L, 1L);
        Expect.equal("bodies in the requested order", bodies(messages), List.of("b", "a"));
        Expect.equal("deliveries", Messages.deliveries(messages), List.of(1L, 1L));
        Expect.equal("states", states(messages), deferred);
        namespace.expectCounts("orders", Map.of("locked", 2));
        receiver.complete(messages);
        namespace.expectCounts("orders", Map.of("active", 0, "deferred", 0, "locked", 0));
    }

    /** A receive-and-delete receiver also deletes deferred messages. */
    static void receiveAndDelete(Namespace namespace) {
        namespace.send("orders", text("a"));
        Receiver deferring = namespace.receiver("orders");
        deferring.defer(deferring.one());
        Expect.equal("bodies", bodies(namespace.destructive("orders").deferred(1L)), List.of("a"));
        namespace.expectCounts("orders", Map.of("active", 0, "deferred", 0));
    }

    /** A deferred message stays deferred when it is abandoned or deferred again, or its lock expires. */
    static void staysDeferred(Namespace namespace) {
        namespace.send("orders", text("a"));
        Receiver receiver = namespace.receiver("orders");
        receiver.defer(receiver.one());
        receiver.abandon(receiver.deferred(1L).get(0));
        var again = receiver.deferred(1L).get(0);
        Expect.equal("deliveries after an abandon", again.getDeliveryCount(), 2L);
        receiver.defer(again);
        var late = receiver.deferred(1L).get(0);
        Expect.equal("deliveries after a deferral", late.getDeliveryCount(), 3L);
        namespace.advance(61);
        Expect.refused(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> receiver.complete(late));
        receiver.receiveNothing();
        var last = receiver.sdk().receiveDeferredMessage(1);
        Expect.equal("deliveries after the lock's end", last.getDeliveryCount(), 4L);
        Expect.freshLock(receiver.sdk().renewMessageLock(last));
        receiver.complete(last);
        namespace.expectCounts("orders", Map.of("active", 0, "deferred", 0));
    }

    /** Deferring changes properties, and so does every later settlement that keeps the message. */
    static void properties(Namespace namespace) {
        namespace.send("orders", Messages.with(text("a"), Map.of("kept", "k", "changed", 1L)));
        Receiver receiver = namespace.receiver("orders");
        var deferring = new DeferOptions().setPropertiesToModify(Map.of("changed", 2L, "deferred", true));
        receiver.sdk().defer(receiver.one(), deferring);
        var message = receiver.deferred(1L).get(0);
        Map<String, Object> expected = Map.of("kept", "k", "changed", 2L, "deferred", true);
        Expect.equal("after a deferral", message.getApplicationProperties(), expected);
        receiver.sdk().abandon(message, new AbandonOptions().setPropertiesToModify(Map.of("changed", 3L)));
        message = receiver.deferred(1L).get(0);
        expected = Map.of("kept", "k", "changed", 3L, "deferred", true);
        Expect.equal("after an abandon", message.getApplicationProperties(), expected);
        receiver.sdk().deadLetter(message, new DeadLetterOptions()
                .setDeadLetterReason("Rejected")
                .setPropertiesToModify(Map.of("changed", 4L)));
        Receiver deadLetters = namespace.deadLetters("orders");
        var dead = deadLetters.one();
        Expect.equal("reason", dead.getDeadLetterReason(), "Rejected");
        Expect.equal("after a dead-lettering", dead.getApplicationProperties().get("changed"), 4L);
        deadLetters.complete(dead);
    }

    /** A deferred message is dead-lettered by its receiver, or after its last delivery. */
    static void deadLettered(Namespace namespace) {
        namespace.send("limited", texts("bad", "poison"));
        Receiver receiver = namespace.receiver("limited");
        receiver.defer(receiver.receive(2));
        receiver.deadLetter(receiver.deferred(1L).get(0), "Rejected", "no total");
        // Deferring was the first delivery (observed 10).
        receiver.abandon(receiver.deferred(2L).get(0));
        receiver.abandon(receiver.deferred(2L).get(0));
        namespace.expectCounts("limited", Map.of("active", 0, "deferred", 0, "dead_letter", 2));
        Receiver deadLetters = namespace.deadLetters("limited");
        var messages = deadLetters.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("bad", "poison"));
        Expect.equal("reasons", Messages.reasons(messages), List.of("Rejected", "MaxDeliveryCountExceeded"));
        deadLetters.complete(messages);
    }

    /** A dead-lettered message can be deferred. */
    static void ofDeadLetters(Namespace namespace) {
        namespace.send("orders", text("bad"));
        Receiver receiver = namespace.receiver("orders");
        receiver.sdk().deadLetter(receiver.one());
        Receiver deadLetters = namespace.deadLetters("orders");
        var dead = deadLetters.one();
        deadLetters.defer(dead);
        deadLetters.receiveNothing();
        deadLetters.complete(deadLetters.deferred(dead.getSequenceNumber()));
        namespace.expectCounts("orders", Map.of("dead_letter", 0));
    }

    /** Unknown, active and locked messages are not found, and either all messages are received or none. */
    static void notFound(Namespace namespace) {
        namespace.send("orders", texts("deferred", "active"));
        Receiver receiver = namespace.receiver("orders");
        receiver.defer(receiver.one());
        expectUnknown(receiver, 4711L);
        expectUnknown(receiver, 2L);
        expectUnknown(receiver, 1L, 4711L);
        var messages = receiver.deferred(1L);
        expectUnknown(receiver, 1L);
        receiver.complete(messages);
        expectUnknown(receiver, 1L);
    }

    /** An expired deferred message is kept until it is requested: then it is not found, and is removed (D9). */
    static void expired(Namespace namespace) {
        for (String queue : List.of("expiring", "orders")) {
            namespace.send(queue, shortLived("old"));
            Receiver receiver = namespace.receiver(queue);
            receiver.defer(receiver.one());
            namespace.advance(31);
            receiver.receiveNothing();
            namespace.expectCounts(queue, Map.of("deferred", 1, "dead_letter", 0));
            expectUnknown(receiver, 1L);
            int deadLetters = queue.equals("expiring") ? 1 : 0;
            namespace.expectCounts(queue, Map.of("deferred", 0, "dead_letter", deadLetters));
        }
    }

    /** This SDK returns nothing when the service responds that no message was found. */
    private static void expectUnknown(Receiver receiver, Long... numbers) {
        Expect.equal("received", bodies(receiver.deferred(numbers)), List.of());
    }

    private static List<ServiceBusMessageState> states(List<ServiceBusReceivedMessage> messages) {
        return Messages.mapped(messages, ServiceBusReceivedMessage::getState);
    }
}

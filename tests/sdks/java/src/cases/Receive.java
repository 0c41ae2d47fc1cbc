package cases;

import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.numbered;
import static cases.Messages.text;
import static cases.Messages.texts;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Receiving: with a lock, with deletion, several at once, and repeatedly. */
final class Receive {
    private static final Map<String, Integer> NONE = Map.of("active", 0, "locked", 0);

    private Receive() {
    }

    /** A message is locked for the queue's lock duration, and removed when it is completed. */
    static void peekLock(Namespace namespace) {
        namespace.send("orders", text("one"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("body", body(message), "one");
        Expect.freshLock(message.getLockedUntil());
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 1));
        receiver.complete(message);
        namespace.expectCounts("orders", NONE);
        receiver.receiveNothing();
    }

    /** A message is removed as soon as it has been delivered. */
    static void receiveAndDelete(Namespace namespace) {
        namespace.send("orders", texts("one", "two"));
        Receiver receiver = namespace.destructive("orders");
        var messages = receiver.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("one", "two"));
        Expect.equal("deliveries", Messages.deliveries(messages), List.of(0L, 0L));
        namespace.expectCounts("orders", NONE);
        receiver.receiveNothing();
    }

    /** A receive for more messages than available returns those that are available, in order. */
    static void several(Namespace namespace) {
        namespace.sender("orders").sendBatch(texts(numbered(0, 20)));
        Receiver receiver = namespace.receiver("orders");
        var messages = new ArrayList<>(receiver.sdk().receiveMessages(50).stream().toList());
        Expect.equal("bodies", bodies(messages), numbered(0, 20));
        Collections.reverse(messages);
        receiver.complete(messages);
        namespace.expectCounts("orders", NONE);
    }

    /** A loop of receives gets every message once, also those that arrive meanwhile. */
    static void stream(Namespace namespace) {
        Receiver receiver = namespace.receiver("orders");
        var seen = Namespace.start(() -> {
            var bodies = new ArrayList<String>();
            while (bodies.size() < 5) {
                var messages = receiver.sdk().receiveMessages(3).stream().toList();
                receiver.complete(messages);
                bodies.addAll(bodies(messages));
            }
            return bodies;
        });
        namespace.send("orders", texts(numbered(0, 5)));
        Expect.equal("bodies", Namespace.await("five messages", seen), numbered(0, 5));
        namespace.expectCounts("orders", NONE);
    }

    /** A receive that is already waiting gets a message that is sent later. */
    static void waiting(Namespace namespace) {
        Receiver receiver = namespace.receiver("orders");
        var received = Namespace.start(receiver::one);
        namespace.send("orders", text("late"));
        var message = Namespace.await("a message", received);
        Expect.equal("body", body(message), "late");
        Expect.equal("deliveries", message.getDeliveryCount(), 0L);
        receiver.complete(message);
    }

    /** A prefetching receiver locks messages in advance, and releases them when it is closed. */
    static void prefetch(Namespace namespace) {
        namespace.send("orders", texts(numbered(0, 3)));
        Receiver receiver = namespace.receiver("orders", builder -> builder.prefetchCount(5));
        var message = receiver.one();
        Expect.equal("body", body(message), "number 0");
        namespace.expectCounts("orders", Map.of("active", 3, "locked", 3));
        receiver.complete(message);
        var rest = receiver.receive(2);
        Expect.equal("bodies", bodies(rest), numbered(1, 3));
        receiver.complete(rest);
        namespace.expectCounts("orders", NONE);
    }

    /** A closed receiver leaves the messages that it did not receive unchanged, and those that it received locked. */
    static void closed(Namespace namespace) {
        namespace.send("orders", texts(numbered(0, 5)));
        Receiver closing = namespace.receiver("orders");
        var held = closing.receive(2);
        closing.close();
        namespace.expectCounts("orders", Map.of("active", 5, "locked", 2));
        Receiver receiver = namespace.receiver("orders");
        var rest = receiver.receive(3);
        Expect.equal("bodies", bodies(rest), numbered(2, 5));
        Expect.equal("deliveries", Messages.deliveries(rest), List.of(0L, 0L, 0L));
        // Only by their lock tokens: the link that delivered them has ended.
        receiver.complete(held);
        receiver.complete(rest);
        namespace.expectCounts("orders", NONE);
    }

    /** A polling receiver gets messages that arrive between two polls once: the SDK releases them. */
    static void polling(Namespace namespace) {
        Receiver receiver = namespace.receiver("orders");
        for (String expected : numbered(0, 3)) {
            receiver.receiveNothing();
            namespace.send("orders", text(expected));
            var message = receiver.one();
            Expect.equal("body", body(message), expected);
            receiver.complete(message);
        }
        namespace.expectCounts("orders", NONE);
    }
}

package cases;

import static cases.Messages.bodies;
import static cases.Messages.identified;
import static cases.Messages.later;
import static cases.Messages.texts;

import java.util.List;
import java.util.Map;

/**
 * Duplicate detection: a message whose id was seen within the window is accepted, and dropped.
 *
 * <p>Source: duplicate-detection. The queue unique remembers ids for five minutes.
 */
final class Duplicates {
    private Duplicates() {
    }

    /** The second of two with one id is dropped without an error; ids differ by letter case. */
    static void dropped(Namespace namespace) {
        namespace.send("unique", identified("first", "a"), identified("second", "a"), identified("third", "A"));
        expectUnique(namespace, "first", "third");
    }

    /** An id is remembered after its message is gone, for the window from its arrival. */
    static void window(Namespace namespace) {
        namespace.send("unique", identified("first", "a"));
        expectUnique(namespace, "first");
        namespace.advance(240);
        namespace.send("unique", identified("again", "a"));
        expectUnique(namespace);
        namespace.advance(61);
        namespace.send("unique", identified("anew", "a"));
        expectUnique(namespace, "anew");
    }

    /** A scheduled message counts from when it is accepted, before a plain one and after it. */
    static void scheduled(Namespace namespace) {
        Sender sender = namespace.sender("unique");
        sender.schedule(later(60), identified("scheduled", "a"));
        sender.send(identified("plain", "a"), identified("plain", "b"));
        sender.schedule(later(60), identified("scheduled", "b"));
        namespace.expectCounts("unique", Map.of("active", 1, "scheduled", 1));
        namespace.advance(61);
        expectUnique(namespace, "plain", "scheduled");
    }

    /** Within a batch, and against what came before it, each message is judged by itself. */
    static void batch(Namespace namespace) {
        Sender sender = namespace.sender("unique");
        sender.send(identified("first", "a"));
        sender.sendBatch(identified("again", "a"), identified("second", "b"), identified("twice", "b"));
        expectUnique(namespace, "first", "second");
    }

    /** Messages without an id are no duplicates of each other: the broker gives each its own (D30). */
    static void withoutId(Namespace namespace) {
        namespace.send("unique", texts("x", "x"));
        expectUnique(namespace, "x", "x");
    }

    /** Receives and completes what is in the queue. */
    private static void expectUnique(Namespace namespace, String... expected) {
        try (Receiver receiver = namespace.receiver("unique")) {
            if (expected.length > 0) {
                var messages = receiver.receive(expected.length);
                Expect.equal("bodies", bodies(messages), List.of(expected));
                receiver.complete(messages);
            }
            receiver.receiveNothing();
        }
    }
}

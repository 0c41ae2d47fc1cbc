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

    /** The second of two messages with one id is dropped without an error; ids are case-sensitive. */
    static void dropped(Namespace namespace) {
        namespace.send("unique", identified("first", "a"), identified("second", "a"), identified("third", "A"));
        expectUnique(namespace, "first", "third");
    }

    /** An id is remembered after its message was completed, for the window since its arrival. */
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

    /** A scheduled message counts from its acceptance, both before and after another message. */
    static void scheduled(Namespace namespace) {
        Sender sender = namespace.sender("unique");
        sender.schedule(later(60), identified("scheduled", "a"));
        sender.send(identified("plain", "a"), identified("plain", "b"));
        sender.schedule(later(60), identified("scheduled", "b"));
        namespace.expectCounts("unique", Map.of("active", 1, "scheduled", 1));
        namespace.advance(61);
        expectUnique(namespace, "plain", "scheduled");
    }

    /** Each message of a batch is compared with the others and with earlier messages. */
    static void batch(Namespace namespace) {
        Sender sender = namespace.sender("unique");
        sender.send(identified("first", "a"));
        sender.sendBatch(identified("again", "a"), identified("second", "b"), identified("twice", "b"));
        expectUnique(namespace, "first", "second");
    }

    /** Messages without an id are not duplicates of each other: the broker generates an id for each (D30). */
    static void withoutId(Namespace namespace) {
        namespace.send("unique", texts("x", "x"));
        expectUnique(namespace, "x", "x");
    }

    /** Receives and completes all messages of the queue. */
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

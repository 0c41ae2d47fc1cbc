package cases;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.stream.Stream;

/** Assertions of cases. */
final class Expect {
    /** The maximum wait for a message that must arrive, in milliseconds; long enough for a busy machine. */
    static final long TIMEOUT = 60_000;
    /** The time in which no message may arrive. */
    private static final long SILENCE = 250;

    private Expect() {
    }

    /** An action that may throw anything. */
    interface Action {
        void run() throws Exception;
    }

    static void equal(Object expected, Object actual) {
        if (!Objects.deepEquals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    static void isTrue(String what, boolean holds) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** The next message. */
    static Message message(JMSConsumer consumer) {
        Message message = consumer.receive(TIMEOUT);
        isTrue("no message came", message != null);
        return message;
    }

    static Message message(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(TIMEOUT);
        isTrue("no message came", message != null);
        return message;
    }

    /** The texts of the next messages are these, in this order. */
    static void texts(JMSConsumer consumer, String... expected) throws JMSException {
        equal(List.of(expected), next(consumer, expected));
    }

    /** The texts of the next messages are these, in any order: Artemis does not always keep that of a topic. */
    static void textsInAnyOrder(JMSConsumer consumer, String... expected) throws JMSException {
        List<String> texts = next(consumer, expected);
        Collections.sort(texts);
        equal(Stream.of(expected).sorted().toList(), texts);
    }

    /** The texts of as many messages as are expected. */
    private static List<String> next(JMSConsumer consumer, String... expected) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int index = 0; index < expected.length; index++) {
            Message message = consumer.receive(TIMEOUT);
            isTrue("after " + texts + " of " + List.of(expected) + " no message came", message != null);
            texts.add(message.getBody(String.class));
        }
        return texts;
    }

    /** Asserts that no message arrives. */
    static void nothing(JMSConsumer consumer) throws JMSException {
        Message message = consumer.receive(SILENCE);
        isTrue("a message came: " + message, message == null);
    }

    static void nothing(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(SILENCE);
        isTrue("a message came: " + message, message == null);
    }

    /** Asserts that an action throws an exception of this class, and returns it. */
    static <T extends Exception> T fails(Class<T> by, Action action) {
        try {
            action.run();
        } catch (Exception failure) {
            if (by.isInstance(failure)) {
                return by.cast(failure);
            }
            throw new AssertionError("expected " + by.getSimpleName() + ", got " + failure, failure);
        }
        throw new AssertionError("expected " + by.getSimpleName() + ", and it succeeded");
    }

    /** Waits until a condition holds. */
    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long deadline = System.nanoTime() + TIMEOUT * 1_000_000;
        while (!condition.call()) {
            isTrue(what + " did not come to be", System.nanoTime() < deadline);
            Thread.sleep(10);
        }
    }
}

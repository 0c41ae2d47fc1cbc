package cases;

import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.cart;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Sessions: accepted by their ids or as the next one, by one receiver at a time.
 *
 * <p>Source: message-sessions, and D10 for which one is next. The queues carts and limited-carts, of two deliveries,
 * require sessions; inbox forwards to carts; steps has the subscriptions by-cart, which requires sessions, and all,
 * which does not; orders is plain.
 */
final class Sessions {
    private Sessions() {
    }

    /** A session is accepted by its id, and delivers only its own messages. */
    static void byId(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"));
        Receiver session = namespace.session("carts", "1");
        Expect.equal("session id", session.sdk().getSessionId(), "1");
        var messages = session.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("a", "c"));
        Expect.equal("session ids", ids(messages), List.of("1", "1"));
        namespace.expectCounts("carts", Map.of("active", 3, "locked", 2));
        session.complete(messages);
        session.receiveNothing();
        namespace.expectCounts("carts", Map.of("active", 1, "locked", 0));
    }

    /** An empty session is accepted by its id, and delivers messages that arrive later. */
    static void empty(Namespace namespace) {
        Receiver session = namespace.session("carts", "1");
        session.receiveNothing();
        namespace.send("carts", cart("2", "another's"), cart("1", "late"));
        var message = session.one();
        Expect.equal("body", body(message), "late");
        session.complete(message);
    }

    /** The next available session is the unlocked one whose first message is the oldest. */
    static void nextAvailable(Namespace namespace) {
        namespace.send("carts", cart("2", "a"), cart("1", "b"), cart("2", "c"));
        Receiver first = namespace.nextSession("carts");
        Receiver second = namespace.nextSession("carts");
        expectAll(first, "2", "a", "c");
        expectAll(second, "1", "b");
        namespace.expectCounts("carts", Map.of("active", 0, "locked", 0));
    }

    private static void expectAll(Receiver session, String id, String... expected) {
        Expect.equal("session id", session.sdk().getSessionId(), id);
        var messages = session.receive(expected.length);
        Expect.equal("bodies of session " + id, bodies(messages), List.of(expected));
        session.complete(messages);
    }

    /** A receiver waits until a session is available. */
    static void waitsForNext(Namespace namespace) {
        var opening = Namespace.start(() -> namespace.nextSession("carts"));
        expectWaiting(opening);
        namespace.send("carts", cart("1", "late"));
        expectAll(Namespace.await("a session", opening), "1", "late");
    }

    /** A receiver that gets no session gets an error after its timeout. */
    static void timesOut(Namespace namespace) {
        namespace.send("carts", cart("1", "taken"));
        namespace.session("carts", "1");
        var impatient = namespace.sessions(
                namespace.tryingFor(Duration.ofSeconds(3)), builder -> builder.queueName("carts"));
        Instant begin = Instant.now();
        Throwable failure = Expect.failure(impatient::acceptNextSession);
        // The SDK has this text, whatever the text of the broker is.
        Expect.isTrue(failure + " is for want of time", failure.getCause() instanceof TimeoutException);
        Duration waited = Duration.between(begin, Instant.now());
        // The SDK requests a second less; the broker's default of 65 seconds would be too long for the case.
        Expect.isTrue("it waits for two seconds: " + waited, waited.toMillis() > 1800);
    }

    /** A session has one receiver at a time. */
    static void taken(Namespace namespace) {
        Receiver holder = namespace.session("carts", "1");
        expectTaken(() -> namespace.session("carts", "1"));
        holder.close();
        Expect.equal("session id", namespace.session("carts", "1").sdk().getSessionId(), "1");
    }

    /** A closed receiver unlocks its session at once, and unsettled messages are delivered again, uncounted. */
    static void closed(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("1", "b"), cart("1", "c"));
        Receiver closing = namespace.session("carts", "1");
        closing.receive(2);
        namespace.expectCounts("carts", Map.of("active", 3, "locked", 2));
        closing.close();
        namespace.expectCounts("carts", Map.of("active", 3, "locked", 0));
        Receiver session = namespace.nextSession("carts");
        var messages = session.receive(3);
        Expect.equal("bodies", bodies(messages), List.of("a", "b", "c"));
        Expect.equal("deliveries", Messages.deliveries(messages), List.of(0L, 0L, 0L));
        session.complete(messages);
    }

    /** Receivers of different sessions work at the same time and do not get each other's messages. */
    static void sideBySide(Namespace namespace) {
        namespace.send("carts", ofThreeSessions());
        var sessions = Stream.generate(() -> namespace.nextSession("carts"))
                .limit(3)
                .sorted(Comparator.comparing(session -> session.sdk().getSessionId()))
                .toList();
        for (int index = 0; index < 9; index++) {
            Receiver session = sessions.get(index % 3);
            var message = session.one();
            Expect.equal("body", body(message), String.valueOf(index));
            session.complete(message);
        }
        namespace.expectCounts("carts", Map.of("active", 0, "locked", 0));
    }

    /** Loops over several sessions get their own messages, in order. */
    static void streams(Namespace namespace) {
        namespace.send("carts", ofThreeSessions());
        var streams = Stream.generate(() -> Namespace.start(() -> drained(namespace.nextSession("carts"))))
                .limit(3)
                .toList();
        var seen = streams.stream().map(stream -> Namespace.await("messages", stream)).sorted().toList();
        Expect.equal("bodies by session", seen, List.of("0: 0 3 6", "1: 1 4 7", "2: 2 5 8"));
        namespace.expectCounts("carts", Map.of("active", 0, "locked", 0));
    }

    private static String drained(Receiver session) {
        var seen = new ArrayList<String>();
        while (seen.size() < 3) {
            var messages = session.sdk().receiveMessages(2).stream().toList();
            session.complete(messages);
            seen.addAll(bodies(messages));
        }
        return session.sdk().getSessionId() + ": " + String.join(" ", seen);
    }

    /** A session receiver may use receive-and-delete. */
    static void receiveAndDelete(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"));
        var sessions = namespace.sessions(
                namespace.clients,
                builder -> builder.queueName("carts").receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE));
        Receiver session = namespace.accepted(sessions, receivers -> receivers.acceptSession("1"));
        Expect.equal("bodies", bodies(session.receive(2)), List.of("a", "c"));
        namespace.expectCounts("carts", Map.of("active", 1, "locked", 0));
    }

    /** A subscription may require sessions, whether or not others of the topic do. */
    static void subscription(Namespace namespace) {
        namespace.publish("steps", cart("1", "a"), cart("2", "b"), cart("1", "c"));
        var sessions = ofSubscription(namespace);
        Receiver session = namespace.accepted(sessions, receivers -> receivers.acceptSession("1"));
        expectAll(session, "1", "a", "c");
        Receiver neighbour = namespace.subscriber("steps", "all");
        var copies = neighbour.receive(3);
        Expect.equal("bodies of the neighbour", bodies(copies), List.of("a", "b", "c"));
        Expect.equal("session ids", ids(copies), List.of("1", "2", "1"));
        neighbour.complete(copies);
        namespace.expectCounts("steps/Subscriptions/by-cart", Map.of("active", 1));
        Receiver next = namespace.accepted(sessions, ServiceBusSessionReceiverClient::acceptNextSession);
        Expect.equal("session id", next.sdk().getSessionId(), "2");
    }

    /** A session queue or subscription rejects receivers without a session. */
    static void plainReceiver(Namespace namespace) {
        String description =
                "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.";
        for (Receiver receiver : List.of(namespace.receiver("carts"), namespace.subscriber("steps", "by-cart"))) {
            Expect.errorText(description, Expect.notAllowed(receiver::refused));
        }
    }

    /** An entity without sessions rejects session receivers, and so does a dead-letter queue. */
    static void onPlainQueue(Namespace namespace) {
        String description =
                "A sessionful message receiver cannot be created on an entity that does not require sessions.";
        var all = namespace.sessions(
                namespace.clients, builder -> builder.topicName("steps").subscriptionName("all"));
        for (var sessions : List.of(namespace.sessions("orders"), all, namespace.sessions("carts/$DeadLetterQueue"))) {
            Expect.errorText(description, Expect.notAllowed(sessions::acceptNextSession));
            Expect.errorText(description, Expect.notAllowed(() -> sessions.acceptSession("1")));
        }
    }

    /** A session id has at most 128 characters. */
    static void longId(Namespace namespace) {
        String longest = "c".repeat(128);
        Expect.equal("session id", namespace.session("carts", longest).sdk().getSessionId(), longest);
        Expect.condition(
                AmqpErrorCondition.ARGUMENT_ERROR, () -> namespace.session("carts", longest + "c"));
    }

    /** A disabled queue detaches its session receivers and rejects new ones. */
    static void disabled(Namespace namespace) {
        Receiver session = namespace.session("carts", "1");
        var lost = Namespace.start(() -> Expect.failure(session::refused));
        namespace.configure("carts", Map.of("Status", "ReceiveDisabled"));
        namespace.send("carts", cart("1", "kept"));
        // This SDK does not report why a session receiver ends.
        Expect.errorText("The receiver client is terminated.", Namespace.await("the end of the receiver", lost));
        Status.expectDisabled(() -> namespace.nextSession("carts"));
        Status.expectDisabled(() -> namespace.session("carts", "1"));
        namespace.configure("carts", Map.of("Status", "Active"));
        Expect.equal("session id", namespace.nextSession("carts").sdk().getSessionId(), "1");
    }

    static ServiceBusSessionReceiverClient ofSubscription(Namespace namespace) {
        return namespace.sessions(
                namespace.clients, builder -> builder.topicName("steps").subscriptionName("by-cart"));
    }

    /** Messages of three sessions in turn. */
    private static ServiceBusMessage[] ofThreeSessions() {
        return IntStream.range(0, 9)
                .mapToObj(index -> cart(String.valueOf(index % 3), String.valueOf(index)))
                .toArray(ServiceBusMessage[]::new);
    }

    static List<String> ids(Iterable<ServiceBusReceivedMessage> messages) {
        return Messages.mapped(messages, ServiceBusReceivedMessage::getSessionId);
    }

    /** Asserts that a started function has not ended yet. */
    static void expectWaiting(CompletableFuture<?> started) {
        try {
            throw new AssertionError("it does not wait: " + started.get(300, TimeUnit.MILLISECONDS));
        } catch (TimeoutException expected) {
            // It waits.
        } catch (Exception failure) {
            throw new AssertionError("it does not wait", failure);
        }
    }

    static void expectTaken(Runnable action) {
        Expect.condition(AmqpErrorCondition.SESSION_CANNOT_BE_LOCKED, action);
    }
}

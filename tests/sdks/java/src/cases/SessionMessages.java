package cases;

import static cases.Messages.at;
import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.cart;
import static cases.Messages.later;
import static cases.Messages.text;

import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * Messages of sessions: their strict order, and their state when a receiver does not complete them.
 *
 * <p>Source: message-sessions, message-deferral, message-browsing, service-bus-dead-letter-queues.
 */
final class SessionMessages {
    private SessionMessages() {
    }

    /** An abandoned message is the next one again, before the later messages of its session. */
    static void inOrder(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("1", "b"), cart("1", "c"), cart("1", "d"));
        Receiver session = namespace.session("carts", "1");
        session.abandon(session.one());
        var messages = session.receive(3);
        Expect.equal("bodies", bodies(messages), List.of("a", "b", "c"));
        session.abandon(messages.get(2));
        session.complete(messages.get(1));
        session.abandon(messages.get(0));
        messages = session.receive(3);
        Expect.equal("bodies", bodies(messages), List.of("a", "c", "d"));
        Expect.equal("deliveries", Messages.deliveries(messages), List.of(2L, 1L, 0L));
        session.complete(messages);
    }

    /** A deferred message is received by its sequence number, by a receiver of its session. */
    static void deferred(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("1", "b"));
        Receiver deferring = namespace.session("carts", "1");
        var messages = deferring.receive(2);
        deferring.defer(messages.get(0));
        deferring.complete(messages.get(1));
        deferring.receiveNothing();
        deferring.close();
        namespace.expectCounts("carts", Map.of("active", 1, "deferred", 1, "locked", 0));
        Receiver another = namespace.session("carts", "2");
        Expect.equal("received by another", bodies(another.deferred(1L)), List.of());
        Receiver session = namespace.session("carts", "1");
        var message = session.deferred(1L).get(0);
        Expect.equal("state", message.getState(), ServiceBusMessageState.DEFERRED);
        session.abandon(message);
        message = session.deferred(1L).get(0);
        Expect.equal("deliveries", message.getDeliveryCount(), 2L);
        session.complete(message);
        namespace.expectCounts("carts", Map.of("active", 0, "deferred", 0, "locked", 0));
    }

    /** A session that has only deferred messages is not the next available session. */
    static void deferredAlone(Namespace namespace) {
        namespace.send("carts", cart("1", "a"));
        Receiver session = namespace.session("carts", "1");
        session.defer(session.one());
        session.close();
        var opening = Namespace.start(() -> namespace.nextSession("carts"));
        Sessions.expectWaiting(opening);
        namespace.send("carts", cart("2", "b"));
        Expect.equal("session id", Namespace.await("a session", opening).sdk().getSessionId(), "2");
    }

    /** A session receiver peeks only its session, another receiver all sessions; neither locks messages. */
    static void peeked(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"));
        Receiver session = namespace.session("carts", "1");
        Expect.equal("bodies", bodies(session.peek(10)), List.of("a", "c"));
        Expect.equal("from the second on", bodies(session.peek(10, 2)), List.of("c"));
        var all = namespace.receiver("carts").peek(10, 1);
        Expect.equal("messages of the queue", bodies(all), List.of("a", "b", "c"));
        Expect.equal("session ids", Sessions.ids(all), List.of("1", "2", "1"));
        namespace.expectCounts("carts", Map.of("active", 3, "locked", 0));
    }

    /** Dead-lettered messages are received without a session, and keep its id. */
    static void deadLettered(Namespace namespace) {
        namespace.send("carts", cart("1", "bad"), cart("2", "worse"));
        for (String id : List.of("1", "2")) {
            Receiver session = namespace.session("carts", id);
            session.deadLetter(session.one(), "Rejected", "no total");
        }
        Receiver deadLetters = namespace.deadLetters("carts");
        var messages = deadLetters.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("bad", "worse"));
        Expect.equal("session ids", Sessions.ids(messages), List.of("1", "2"));
        Expect.equal("reasons", Messages.reasons(messages), List.of("Rejected", "Rejected"));
        deadLetters.complete(messages);
        namespace.expectCounts("carts", Map.of("active", 0, "dead_letter", 0));
    }

    /** After its last delivery a message leaves the session to the next messages. */
    static void abandonsToTheLimit(Namespace namespace) {
        namespace.send("limited-carts", cart("1", "poison"), cart("1", "good"));
        Receiver session = namespace.session("limited-carts", "1");
        for (long delivery = 0; delivery < 2; delivery++) {
            var message = session.one();
            Expect.equal("body", body(message), "poison");
            Expect.equal("deliveries", message.getDeliveryCount(), delivery);
            session.abandon(message);
        }
        var good = session.one();
        Expect.equal("body", body(good), "good");
        session.complete(good);
        Receiver deadLetters = namespace.deadLetters("limited-carts");
        var dead = deadLetters.one();
        Expect.equal("reason", dead.getDeadLetterReason(), "MaxDeliveryCountExceeded");
        deadLetters.complete(dead);
    }

    /** A session queue rejects a message without a session id, and a batch that contains one. */
    static void withoutId(Namespace namespace) {
        Sender sender = namespace.sender("carts");
        String description = "The SessionId was not set on a message, and it cannot be sent to the entity.";
        List<Runnable> attempts = List.of(
                () -> sender.send(text("lost")),
                () -> sender.sendBatch(cart("1", "with"), text("without")),
                () -> sender.schedule(later(60), text("later")));
        attempts.forEach(attempt -> Expect.errorText(description, Expect.notAllowed(attempt)));
        namespace.expectCounts("carts", Map.of("active", 0, "scheduled", 0, "dead_letter", 0));
    }

    /** A topic accepts a message without a session id, and a session subscription dead-letters it. */
    static void withoutIdAtSubscription(Namespace namespace) {
        namespace.publish("steps", text("stray"), cart("1", "a"));
        namespace.expectCounts("steps/Subscriptions/all", Map.of("active", 2, "dead_letter", 0));
        namespace.expectCounts("steps/Subscriptions/by-cart", Map.of("active", 1, "dead_letter", 1));
        expectDeadWithoutSessionId(namespace.deadLetters("steps", "by-cart"));
    }

    /** A forwarded message joins its session, or is dead-lettered if it has none. */
    static void forwarded(Namespace namespace) {
        namespace.send("inbox", cart("1", "a"), text("stray"));
        Receiver session = namespace.session("carts", "1");
        var message = session.one();
        Expect.equal("body", body(message), "a");
        session.complete(message);
        expectDeadWithoutSessionId(namespace.deadLetters("carts"));
    }

    /** A scheduled message joins its session when it becomes active. */
    static void scheduled(Namespace namespace) {
        Sender sender = namespace.sender("carts");
        sender.schedule(later(300), cart("1", "asked"), cart("2", "another's"));
        sender.send(at(later(200), cart("1", "annotated")));
        namespace.expectCounts("carts", Map.of("active", 0, "scheduled", 3));
        Receiver early = namespace.session("carts", "1");
        early.receiveNothing();
        early.close();
        namespace.advance(301);
        Receiver session = namespace.nextSession("carts");
        Expect.equal("session id", session.sdk().getSessionId(), "1");
        var messages = session.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("annotated", "asked"));
        session.complete(messages);
        namespace.expectCounts("carts", Map.of("active", 1, "scheduled", 0));
    }

    /** A message of a session expires like any other, and the following ones are delivered next. */
    static void expires(Namespace namespace) {
        namespace.send("carts", cart("1", "old").setTimeToLive(Duration.ofSeconds(30)), cart("1", "new"));
        namespace.advance(31);
        Receiver session = namespace.session("carts", "1");
        var message = session.one();
        Expect.equal("body", body(message), "new");
        session.complete(message);
        Receiver deadLetters = namespace.deadLetters("carts");
        var dead = deadLetters.one();
        Expect.equal("reason", dead.getDeadLetterReason(), Messages.EXPIRED);
        deadLetters.complete(dead);
    }

    /** A reply arrives in the session that the request specifies. */
    static void replies(Namespace namespace) {
        namespace.send("carts", cart("requests", "ask").setReplyTo("carts").setReplyToSessionId("answers-7"));
        Receiver requests = namespace.session("carts", "requests");
        var request = requests.one();
        namespace.send(request.getReplyTo(), cart(request.getReplyToSessionId(), "answer"));
        requests.complete(request);
        Receiver answers = namespace.session("carts", "answers-7");
        var answer = answers.one();
        Expect.equal("body", body(answer), "answer");
        Expect.equal("session to reply to", answer.getReplyToSessionId(), null);
        answers.complete(answer);
    }

    /** Receives the only dead-lettered message, which has no session id. */
    private static void expectDeadWithoutSessionId(Receiver receiver) {
        var message = receiver.one();
        Expect.equal("body", body(message), "stray");
        Expect.equal("session id", message.getSessionId(), null);
        Expect.equal("reason", message.getDeadLetterReason(), "Session ID is null.");
        String description = "Session enabled entity doesn't allow a message whose session identifier is null.";
        Expect.equal("description", message.getDeadLetterErrorDescription(), description);
        receiver.complete(message);
    }
}

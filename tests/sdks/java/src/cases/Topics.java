package cases;

import static cases.Messages.at;
import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.identified;
import static cases.Messages.later;
import static cases.Messages.price;
import static cases.Messages.text;
import static cases.Messages.texts;
import static cases.Messages.with;

import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Topics: subscriptions receive the messages that their rules match.
 *
 * <p>Source: service-bus-queues-topics-subscriptions, topic-filters, service-bus-auto-forwarding, duplicate-detection,
 * service-bus-dead-letter-queues. The topic prices has the subscriptions all, cheap (price &lt; 10) and eu (subject and
 * region are equal); alarms has marked, which has two rules without an action and one with; jobs has limited, of two
 * deliveries; calls finds duplicates and has to-orders and complaints, which forward; the rules of checks can fail.
 */
final class Topics {
    private static final String ALL = "prices/Subscriptions/all";

    private Topics() {
    }

    /** Every subscription that matches a message has its own copy, with its own sequence number. */
    static void fansOut(Namespace namespace) {
        var second = price("b", 8).setMessageId("p-17").setCorrelationId("c").setSubject("changed");
        namespace.publish("prices", price("a", 12), second);
        namespace.expectCounts(ALL, Map.of("active", 2));
        namespace.expectCounts("prices/Subscriptions/cheap", Map.of("active", 1));
        namespace.expectCounts("prices/Subscriptions/eu", Map.of("active", 0));
        for (var subscription : Map.of("all", 2, "cheap", 1).entrySet()) {
            Receiver receiver = namespace.subscriber("prices", subscription.getKey());
            int count = subscription.getValue();
            var messages = receiver.receive(count);
            var message = messages.get(count - 1);
            Expect.equal("body", body(message), "b");
            Expect.equal("message id", message.getMessageId(), "p-17");
            Expect.equal("correlation id", message.getCorrelationId(), "c");
            Expect.equal("subject", message.getSubject(), "changed");
            Expect.equal("application properties", message.getApplicationProperties(), Map.of("price", 8.0));
            Expect.equal("deliveries", message.getDeliveryCount(), 0L);
            Expect.equal("sequence number", message.getSequenceNumber(), (long) count);
            Expect.equal("number in the topic", message.getEnqueuedSequenceNumber(), 2L);
            receiver.complete(messages);
            receiver.receiveNothing();
        }
        namespace.expectCounts(ALL, Map.of("active", 0, "locked", 0));
    }

    /** The messages of a batch are matched separately; values are compared by type, texts by case. */
    static void filtered(Namespace namespace) {
        namespace.publisher("prices").sendBatch(
                with(text("text"), Map.of("price", "5")),
                price("float", 9.5),
                text("none"),
                with(text("eu"), Map.of("price", 20, "region", "eu")).setSubject("changed"),
                with(text("EU"), Map.of("price", 20, "region", "EU")).setSubject("changed"),
                with(text("new"), Map.of("price", 10, "region", "eu")).setSubject("new"));
        var expected = Map.of(
                "all", List.of("text", "float", "none", "eu", "EU", "new"),
                "cheap", List.of("float"),
                "eu", List.of("eu"));
        expected.forEach((subscription, bodies) -> {
            Receiver receiver = namespace.subscriber(
                    "prices", subscription, builder -> builder.receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE));
            Expect.equal("received from " + subscription, bodies(receiver.receive(bodies.size())), bodies);
            receiver.receiveNothing();
        });
    }

    /** Rules without an action create one copy together; one with an action creates another, changed copy. */
    static void actions(Namespace namespace) {
        var fire = with(text("fire"), Map.of("level", 2L, "secret", "s", "kept", "k")).setSubject("new");
        namespace.publish("alarms", fire, with(text("smoke"), Map.of("level", 1L)));
        Receiver receiver = namespace.subscriber("alarms", "marked");
        var messages = receiver.receive(3);
        var copies = messages.stream()
                .map(message -> body(message) + " " + message.getSubject() + " "
                        + new TreeMap<>(message.getApplicationProperties()))
                .sorted()
                .toList();
        Expect.equal("copies", copies, List.of(
                "fire new {kept=k, level=2, secret=s}",
                "fire raised {RuleName=raised, kept=k, level=3, seen=true}",
                "smoke null {level=1}"));
        receiver.complete(messages);
    }

    /** A subscription's messages are settled like a queue's, independently of other copies. */
    static void settled(Namespace namespace) {
        namespace.publish("prices", price("a", 1), price("b", 2), price("c", 3));
        Receiver receiver = namespace.subscriber("prices", "all");
        var messages = receiver.receive(3);
        Expect.freshLock(receiver.sdk().renewMessageLock(messages.get(0)));
        receiver.complete(messages.get(0));
        receiver.defer(messages.get(1));
        receiver.abandon(messages.get(2));
        namespace.expectCounts(ALL, Map.of("active", 2, "deferred", 1, "locked", 0));
        var again = receiver.one();
        Expect.equal("abandoned", body(again), "c");
        Expect.equal("deliveries", again.getDeliveryCount(), 1L);
        receiver.complete(again);
        var peeked = receiver.peek(10);
        Expect.equal("peeked", bodies(peeked), List.of("b"));
        Expect.equal("state", peeked.get(0).getState(), ServiceBusMessageState.DEFERRED);
        receiver.complete(receiver.deferred(messages.get(1).getSequenceNumber()));
        namespace.expectCounts(ALL, Map.of("active", 0, "deferred", 0, "locked", 0));
        namespace.expectCounts("prices/Subscriptions/cheap", Map.of("active", 3));
    }

    /** Every subscription has a dead-letter queue, for rejected messages, the delivery limit and expired locks. */
    static void deadLetters(Namespace namespace) {
        String limited = "jobs/Subscriptions/limited";
        namespace.publish("jobs", texts("bad", "poison", "stuck"));
        Receiver receiver = namespace.subscriber("jobs", "limited");
        var messages = receiver.receive(3);
        receiver.deadLetter(messages.get(0), "Rejected", "no total");
        receiver.abandon(messages.get(1));
        receiver.abandon(receiver.one());
        namespace.advance(61);
        var stuck = receiver.one();
        Expect.equal("delivered again", body(stuck), "stuck");
        Expect.equal("deliveries", stuck.getDeliveryCount(), 1L);
        namespace.advance(61);
        receiver.receiveNothing();
        namespace.expectCounts(limited, Map.of("active", 0, "dead_letter", 3));
        Receiver deadLetters = namespace.deadLetters("jobs", "limited");
        var dead = deadLetters.receive(3);
        Expect.equal("bodies", bodies(dead), List.of("bad", "poison", "stuck"));
        var reasons = List.of("Rejected", "MaxDeliveryCountExceeded", "MaxDeliveryCountExceeded");
        Expect.equal("reasons", Messages.reasons(dead), reasons);
        Expect.equal("description", dead.get(0).getDeadLetterErrorDescription(), "no total");
        deadLetters.complete(dead);
        namespace.expectCounts(limited, Map.of("dead_letter", 0));
    }

    /** A topic keeps scheduled messages; rules evaluate them when they are due, and cancelled ones never. */
    static void scheduled(Namespace namespace) {
        var time = later(300);
        Sender sender = namespace.publisher("prices");
        sender.send(at(time, price("annotated", 1)));
        var numbers = sender.schedule(time, price("asked", 20), price("cancelled", 2));
        sender.cancel(numbers.get(1));
        namespace.expectCounts("prices", Map.of("scheduled", 2));
        namespace.expectCounts(ALL, Map.of("active", 0, "scheduled", 0));
        namespace.advance(301);
        namespace.expectCounts("prices", Map.of("scheduled", 0));
        Map.of("all", List.of("annotated", "asked"), "cheap", List.of("annotated")).forEach((name, expected) -> {
            Receiver receiver = namespace.subscriber("prices", name);
            var messages = receiver.receive(expected.size());
            Expect.equal("received from " + name, bodies(messages), expected);
            Expect.equal("state", messages.get(0).getState(), ServiceBusMessageState.SCHEDULED);
            receiver.complete(messages);
        });
    }

    /** The time to live applies in every subscription separately. */
    static void expires(Namespace namespace) {
        namespace.publish("prices", price("old", 1).setTimeToLive(Duration.ofSeconds(30)));
        Receiver receiver = namespace.subscriber("prices", "all");
        receiver.complete(receiver.one());
        namespace.advance(31);
        namespace.subscriber("prices", "cheap").receiveNothing();
        namespace.expectCounts("prices/Subscriptions/cheap", Map.of("active", 0, "dead_letter", 0));
    }

    /** A subscription's own time to live applies, and its dead-lettered messages have that reason. */
    static void expiresByDefault(Namespace namespace) {
        namespace.publish("checks", text("old"));
        namespace.advance(301);
        Receiver deadLetters = namespace.deadLetters("checks", "fleeting");
        var message = deadLetters.one();
        Expect.equal("reason", message.getDeadLetterReason(), Messages.EXPIRED);
        deadLetters.complete(message);
    }

    /** A message whose filter fails is dead-lettered by a subscription configured so; no other subscription gets it. */
    static void evaluationErrors(Namespace namespace) {
        namespace.publish("checks", with(text("0"), Map.of("parts", 0L)), with(text("5"), Map.of("parts", 5L)));
        for (String subscription : List.of("strict", "lenient")) {
            Receiver receiver = namespace.subscriber("checks", subscription);
            var message = receiver.one();
            Expect.equal("body", body(message), "5");
            receiver.complete(message);
            receiver.receiveNothing();
        }
        namespace.expectCounts("checks/Subscriptions/lenient", Map.of("dead_letter", 0));
        Receiver deadLetters = namespace.deadLetters("checks", "strict");
        var message = deadLetters.one();
        Expect.equal("body", body(message), "0");
        Expect.equal("reason", message.getDeadLetterReason(), "FilterException");
        deadLetters.complete(message);
    }

    /** A subscription forwards like a queue: messages and dead-lettered messages to different queues. */
    static void forwards(Namespace namespace) {
        namespace.publish("calls", with(identified("call", "c-1"), Map.of("n", 1L)));
        Receiver orders = namespace.receiver("orders");
        var call = orders.one();
        Expect.equal("body", body(call), "call");
        Expect.equal("message id", call.getMessageId(), "c-1");
        Expect.equal("application properties", call.getApplicationProperties(), Map.of("n", 1L));
        Expect.equal("source of a message that is not a dead letter", call.getDeadLetterSource(), null);
        orders.complete(call);
        Receiver complaints = namespace.subscriber("calls", "complaints");
        complaints.abandon(complaints.one());
        Receiver failures = namespace.receiver("failures");
        var failure = failures.one();
        Expect.equal("source", failure.getDeadLetterSource(), "calls/Subscriptions/complaints");
        Expect.equal("reason", failure.getDeadLetterReason(), "MaxDeliveryCountExceeded");
        failures.complete(failure);
        Expect.notAllowed(() -> namespace.subscriber("calls", "to-orders").refused());
    }

    /** A topic drops a duplicate message for all its subscriptions. */
    static void duplicates(Namespace namespace) {
        namespace.publish("calls", identified("first", "c-1"), identified("again", "c-1"));
        namespace.advance(301);
        namespace.publish("calls", identified("late", "c-1"));
        Receiver receiver = namespace.subscriber("calls", "complaints");
        var messages = receiver.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("first", "late"));
        receiver.complete(messages);
        receiver.receiveNothing();
    }

    /** Names are case-insensitive, and a queue sender can send to a topic. */
    static void addresses(Namespace namespace) {
        namespace.send("PRICES", price("a", 1));
        Receiver receiver = namespace.subscriber("Prices", "ALL");
        receiver.complete(receiver.one());
        namespace.expectCounts(ALL, Map.of("active", 0));
        // The SDK states the kind of entity that it expects (observed 60).
        Expect.notAllowed(() -> namespace.receiver(ALL).refused());
    }

    /** Clients cannot send to a subscription or receive from a topic. */
    static void wrongDirection(Namespace namespace) {
        Expect.notAllowed(() -> namespace.publish(ALL, text("lost")));
        Expect.notAllowed(() -> namespace.receiver("prices").refused());
        Expect.notAllowed(() -> namespace.deadLetters("prices").refused());
        namespace.expectCounts(ALL, Map.of("active", 0));
    }

    /** A topic or subscription that does not exist, and a subscription of a queue. */
    static void notFound(Namespace namespace) {
        NotFound.expectMissing(() -> namespace.publish("missing", text("lost")));
        Map<String, String> paths = Map.of("missing", "all", "prices", "missing", "orders", "all");
        paths.forEach((topic, subscription) -> {
            NotFound.expectMissing(() -> namespace.subscriber(topic, subscription).refused());
            NotFound.expectMissing(() -> namespace.subscriber(topic, subscription).peek(1));
        });
    }
}

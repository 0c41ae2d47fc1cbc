package cases;

import static cases.Messages.at;
import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.later;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * Scheduled messages: scheduled, waiting, active with a new sequence number, or cancelled.
 *
 * <p>Source: message-sequencing. The client's clock sets the time, to which the namespace's clock is advanced (D20).
 */
final class Scheduling {
    private Scheduling() {
    }

    /** A message with a scheduled enqueue time waits until then, visible only to peeks, and gets a new number. */
    static void annotated(Namespace namespace) {
        var time = later(300);
        namespace.send("orders", at(time, text("later")));
        namespace.expectCounts("orders", Map.of("active", 0, "scheduled", 1));
        Receiver receiver = namespace.receiver("orders");
        receiver.receiveNothing();
        var peeked = receiver.peek(10).get(0);
        Expect.equal("state", peeked.getState(), ServiceBusMessageState.SCHEDULED);
        Expect.equal("sequence number", peeked.getSequenceNumber(), 1L);
        Expect.close("scheduled time", peeked.getScheduledEnqueueTime(), time);
        namespace.advance(240);
        receiver.receiveNothing();
        namespace.advance(61);
        var message = receiver.one();
        Expect.equal("body", body(message), "later");
        // Observed 6.
        Expect.equal("state", message.getState(), ServiceBusMessageState.SCHEDULED);
        Expect.equal("sequence number", message.getSequenceNumber(), 2L);
        Expect.close("enqueued time", message.getEnqueuedTime(), later(0));
        receiver.complete(message);
        namespace.expectCounts("orders", Map.of("active", 0, "scheduled", 0));
    }

    /** The response to a schedule request has a sequence number for each message, in order. */
    static void byRequest(Namespace namespace) {
        Sender sender = namespace.sender("orders");
        Expect.equal("sequence numbers", sender.schedule(later(300), texts("a", "b")), List.of(1L, 2L));
        Expect.equal("another", sender.sdk().scheduleMessage(text("c"), later(200)), 3L);
        namespace.expectCounts("orders", Map.of("active", 0, "scheduled", 3));
        namespace.advance(301);
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(3);
        Expect.equal("messages in the order of their times", bodies(messages), List.of("c", "a", "b"));
        Expect.equal("their numbers", Messages.numbers(messages), List.of(4L, 5L, 6L));
        receiver.complete(messages);
    }

    /** A message scheduled for a time in the past is active at once. */
    static void past(Namespace namespace) {
        namespace.send("orders", at(later(-60), text("late")));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("sequence number", message.getSequenceNumber(), 1L);
        receiver.complete(message);
    }

    /** A batch may contain scheduled and other messages. */
    static void batch(Namespace namespace) {
        namespace.sender("orders").sendBatch(at(later(60), text("later")), text("now"));
        namespace.expectCounts("orders", Map.of("active", 1, "scheduled", 1));
        namespace.advance(61);
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(2);
        Expect.equal("bodies", bodies(messages), List.of("now", "later"));
        receiver.complete(messages);
    }

    /** A cancelled message is never delivered; the others are. */
    static void cancelled(Namespace namespace) {
        Sender sender = namespace.sender("orders");
        var numbers = sender.schedule(later(60), texts("a", "b", "c"));
        sender.sdk().cancelScheduledMessage(numbers.get(0));
        sender.cancel(numbers.get(2));
        namespace.expectCounts("orders", Map.of("active", 0, "scheduled", 1));
        namespace.advance(61);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("body", body(message), "b");
        receiver.complete(message);
        receiver.receiveNothing();
    }

    /**
     * Unknown, cancelled and active messages cannot be cancelled; either all are cancelled or none. This SDK ignores the
     * error.
     */
    static void cancelRefused(Namespace namespace) {
        Sender sender = namespace.sender("orders");
        long first = sender.schedule(later(60), text("first")).get(0);
        sender.cancel(4711L);
        sender.cancel(first, 4711L);
        namespace.expectCounts("orders", Map.of("scheduled", 1));
        long second = sender.schedule(later(60), text("second")).get(0);
        sender.cancel(second);
        sender.cancel(second);
        namespace.advance(61);
        sender.cancel(first);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("body", body(message), "first");
        sender.cancel(message.getSequenceNumber());
        receiver.complete(message);
    }

    /** The time to live starts when the message becomes active: at 5:00, so that it ends at 15:00. */
    static void expires(Namespace namespace) {
        namespace.send("expiring", at(later(300), text("short")).setTimeToLive(Duration.ofMinutes(10)));
        namespace.advance(840);
        namespace.expectCounts("expiring", Map.of("active", 1, "scheduled", 0, "dead_letter", 0));
        namespace.advance(61);
        int left = namespace.expiresEagerly() ? 0 : 1;
        namespace.expectCounts("expiring", Map.of("active", left, "dead_letter", 1 - left));
        namespace.receiver("expiring").receiveNothing();
        Receiver deadLetters = namespace.deadLetters("expiring");
        var message = deadLetters.one();
        Expect.equal("reason", message.getDeadLetterReason(), Messages.EXPIRED);
        deadLetters.complete(message);
    }
}

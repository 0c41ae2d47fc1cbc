package cases;

import static cases.Messages.bodies;
import static cases.Messages.numbered;
import static cases.Messages.numbers;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.models.ServiceBusMessageState;
import java.util.List;
import java.util.Map;

/** Peeking: messages and their states, from a sequence number on. */
final class Peek {
    private Peek() {
    }

    /** Peeking shows locked and waiting messages, and both are active. */
    static void states(Namespace namespace) {
        namespace.send("orders", texts("locked", "waiting"));
        Receiver receiver = namespace.receiver("orders");
        var locked = receiver.one();
        var peeked = receiver.peek(10);
        Expect.equal("numbers", numbers(peeked), List.of(1L, 2L));
        Expect.equal("bodies", bodies(peeked), List.of("locked", "waiting"));
        var active = List.of(ServiceBusMessageState.ACTIVE, ServiceBusMessageState.ACTIVE);
        Expect.equal("states", Messages.mapped(peeked, ServiceBusReceivedMessage::getState), active);
        receiver.complete(locked);
    }

    /** A peek starts at a sequence number, continues where the last one ended, and changes no message. */
    static void fromSequenceNumber(Namespace namespace) {
        namespace.sender("orders").sendBatch(texts(numbered(1, 11)));
        Receiver receiver = namespace.receiver("orders");
        Expect.equal("the first", numbers(receiver.peek(2)), List.of(1L, 2L));
        Expect.equal("those behind", numbers(receiver.peek(20)), List.of(3L, 4L, 5L, 6L, 7L, 8L, 9L, 10L));
        var peeked = receiver.peek(3, 5);
        Expect.equal("sequence numbers", numbers(peeked), List.of(5L, 6L, 7L));
        Expect.equal("bodies", bodies(peeked), numbered(5, 8));
        Expect.equal("deliveries", Messages.deliveries(peeked), List.of(0L, 0L, 0L));
        Expect.equal("the last", numbers(receiver.peek(3, 10)), List.of(10L));
        Expect.equal("past the end", bodies(receiver.peek(3, 11)), List.of());
        namespace.expectCounts("orders", Map.of("active", 10, "locked", 0));
    }

    /** A peek at an empty queue returns an empty list, or null for a peek of one message. */
    static void empty(Namespace namespace) {
        Receiver receiver = namespace.receiver("orders");
        Expect.equal("peeked", bodies(receiver.peek(5)), List.of());
        Expect.equal("one peeked", receiver.sdk().peekMessage(), null);
    }
}

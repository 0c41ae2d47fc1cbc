package cases;

import static cases.Messages.bodies;
import static cases.Messages.reasons;
import static cases.Messages.text;

import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.util.List;
import java.util.Map;

/** The dead-letter queue: clients receive from it as from any queue, until it is empty. */
final class DeadLetter {
    private DeadLetter() {
    }

    /** Every dead-lettered message is received in order, with its reason, and then removed. */
    static void drains(Namespace namespace) {
        fill(namespace, 5);
        Receiver receiver = namespace.deadLetters("orders");
        var expected = List.of("R0", "R1", "R2", "R3", "R4");
        Expect.equal("reasons peeked", reasons(receiver.peek(10)), expected);
        var messages = receiver.receive(5);
        Expect.equal("bodies", bodies(messages), List.of("b0", "b1", "b2", "b3", "b4"));
        Expect.equal("reasons", reasons(messages), expected);
        receiver.complete(messages);
        receiver.receiveNothing();
        Expect.equal("peeked afterwards", bodies(namespace.deadLetters("orders").peek(10)), List.of());
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", 0));
    }

    /** Receive-and-delete also empties a dead-letter queue. */
    static void drainsDestructively(Namespace namespace) {
        fill(namespace, 3);
        Receiver receiver = namespace.receiver("orders", builder -> builder
                .subQueue(SubQueue.DEAD_LETTER_QUEUE)
                .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE));
        Expect.equal("bodies", bodies(receiver.receive(3)), List.of("b0", "b1", "b2"));
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", 0));
    }

    /** Dead-letters this number of messages, each with its own reason. */
    private static void fill(Namespace namespace, int count) {
        Sender sender = namespace.sender("orders");
        for (int index = 0; index < count; index++) {
            sender.send(text("b" + index));
        }
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(count);
        for (int index = 0; index < count; index++) {
            receiver.deadLetter(messages.get(index), "R" + index, "");
        }
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", count));
    }
}

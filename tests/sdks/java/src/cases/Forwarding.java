package cases;

import static cases.Messages.body;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.models.SubQueue;
import java.util.Map;

/**
 * Auto-forwarding of messages and dead-lettered messages to another queue, at most four times (D3).
 *
 * <p>Source: service-bus-auto-forwarding, service-bus-dead-letter-queues. The queue inbox forwards to orders, hop1 over
 * the others to hop6, and complaints forwards its dead letters to orders.
 */
final class Forwarding {
    private Forwarding() {
    }

    /** A message is forwarded unchanged from queue to queue, with a new sequence number in each. */
    static void chain(Namespace namespace) {
        namespace.send("orders", text("direct"));
        var sent = Messages.identified("over", "o-17").setSubject("placed");
        namespace.send("inbox", Messages.with(sent, Map.of("total", 3L)));
        namespace.expectCounts("inbox", Map.of("active", 0, "transfer", 0));
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(2);
        var over = messages.get(1);
        Expect.equal("body", body(over), "over");
        Expect.equal("message id", over.getMessageId(), "o-17");
        Expect.equal("subject", over.getSubject(), "placed");
        Expect.equal("application properties", over.getApplicationProperties(), Map.of("total", 3L));
        Expect.equal("sequence number", over.getSequenceNumber(), 2L);
        Expect.equal("number where it was sent", over.getEnqueuedSequenceNumber(), 1L);
        Expect.equal("deliveries", over.getDeliveryCount(), 0L);
        receiver.complete(messages);
    }

    /** A forwarded dead-lettered message keeps its reason and its dead-letter source. */
    static void deadLetters(Namespace namespace) {
        namespace.send("complaints", text("bad"));
        Receiver complaints = namespace.receiver("complaints");
        var fresh = complaints.one();
        Expect.equal("source of a message that is none", fresh.getDeadLetterSource(), null);
        complaints.abandon(fresh);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("source", message.getDeadLetterSource(), "complaints");
        Expect.equal("reason", message.getDeadLetterReason(), "MaxDeliveryCountExceeded");
        receiver.complete(message);
        namespace.expectCounts("complaints", Map.of("active", 0, "dead_letter", 0));
    }

    /** Four forwards are allowed: the fifth fails at its source. */
    static void hops(Namespace namespace) {
        namespace.send("hop2", text("four"));
        Receiver receiver = namespace.receiver("hop6");
        var message = receiver.one();
        Expect.equal("body", body(message), "four");
        receiver.complete(message);
        namespace.send("hop1", text("five"));
        var failed = expectNotForwarded(namespace, "hop5", "five", "MaxTransferHopCountExceeded");
        String description = "The maximum number of allowed hops when forwarding between queues. Value is set to 4.";
        Expect.equal("description", failed.getDeadLetterErrorDescription(), description);
        receiver.receiveNothing();
    }

    /** A message whose target does not exist is moved to the transfer dead-letter queue of its source. */
    static void targetDeleted(Namespace namespace) {
        namespace.delete("orders");
        namespace.send("inbox", text("lost"));
        expectNotForwarded(namespace, "inbox", "lost", "MessagingEntityNotFoundException");
    }

    /** So is a message that its target rejects. */
    static void targetDisabled(Namespace namespace) {
        namespace.configure("orders", Map.of("Status", "SendDisabled"));
        namespace.send("inbox", text("early"));
        expectNotForwarded(namespace, "inbox", "early", "MessagingEntityDisabledException");
    }

    /** So is a message for which its target has no space. */
    static void targetFull(Namespace namespace) {
        String large = "x".repeat(200_000);
        namespace.send("tiny", texts(large, large, large, large, large));
        namespace.send("to-tiny", text(large));
        namespace.expectCounts("tiny", Map.of("active", 5));
        expectNotForwarded(namespace, "to-tiny", large, "QuotaExceededException");
    }

    /** A queue that forwards cannot be received from; its dead-letter queues can. */
    static void notReceivedFrom(Namespace namespace) {
        Expect.notAllowed(() -> namespace.receiver("inbox").refused());
        namespace.deadLetters("inbox").receiveNothing();
    }

    /** Receives the only message that a queue could not forward. */
    private static ServiceBusReceivedMessage expectNotForwarded(
            Namespace namespace, String queue, String expected, String why) {
        namespace.expectCounts(queue, Map.of("active", 0, "dead_letter", 0, "transfer_dead_letter", 1));
        Receiver receiver = namespace.receiver(
                queue, builder -> builder.subQueue(SubQueue.TRANSFER_DEAD_LETTER_QUEUE));
        var message = receiver.one();
        Expect.equal("body", body(message), expected);
        Expect.equal("reason", message.getDeadLetterReason(), why);
        receiver.complete(message);
        namespace.expectCounts(queue, Map.of("transfer_dead_letter", 0));
        return message;
    }
}

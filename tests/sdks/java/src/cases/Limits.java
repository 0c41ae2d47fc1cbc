package cases;

import static cases.Messages.sized;
import static cases.Messages.text;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import java.util.Map;

/**
 * Limits: a message that is too large, a queue that is full, a batch that is rejected as a whole.
 *
 * <p>Source: service-bus-quotas. The queue tiny holds a mebibyte, five messages of 200,000 bytes.
 */
final class Limits {
    private Limits() {
    }

    /** The SDK rejects a message over the link's limit; the link accepts the next one. */
    static void tooLarge(Namespace namespace) {
        Sender sender = namespace.sender("orders");
        sender.send(text("small"));
        expectTooLarge(() -> sender.send(sized(300_000)));
        sender.send(text("small"));
        namespace.expectCounts("orders", Map.of("active", 2));
    }

    /** A full queue rejects messages that do not fit until there is space again. */
    static void full(Namespace namespace) {
        Sender sender = namespace.sender("tiny");
        for (int index = 0; index < 5; index++) {
            sender.send(sized(200_000));
        }
        expectFull(() -> sender.send(sized(200_000)));
        sender.send(text("small enough"));
        Receiver receiver = namespace.receiver("tiny");
        receiver.complete(receiver.one());
        sender.send(sized(200_000));
        namespace.expectCounts("tiny", Map.of("active", 6));
    }

    /** Dead-lettered messages take space, too. */
    static void fullOfDeadLetters(Namespace namespace) {
        Sender sender = namespace.sender("tiny");
        Receiver receiver = namespace.receiver("tiny");
        for (int index = 0; index < 5; index++) {
            sender.send(sized(200_000));
            receiver.sdk().deadLetter(receiver.one());
        }
        expectFull(() -> sender.send(sized(200_000)));
        namespace.expectCounts("tiny", Map.of("active", 0, "dead_letter", 5));
    }

    /** A batch of which only a part would fit is rejected as a whole. */
    static void batchIsAllOrNothing(Namespace namespace) {
        Sender sender = namespace.sender("tiny");
        for (int index = 0; index < 4; index++) {
            sender.send(sized(200_000));
        }
        sender.send(sized(100_000));
        expectFull(() -> sender.sendBatch(sized(100_000), sized(100_000)));
        namespace.expectCounts("tiny", Map.of("active", 5));
        sender.sendBatch(sized(100_000));
        namespace.expectCounts("tiny", Map.of("active", 6));
    }

    /** A batch accepts messages up to the link's limit, and can be sent. */
    static void batchFillsUp(Namespace namespace) {
        var sender = namespace.sender("orders").sdk();
        var batch = sender.createMessageBatch();
        while (batch.tryAddMessage(sized(50_000))) {
            Expect.isTrue("the batch reports that it is full", batch.getCount() < 6);
        }
        Expect.equal("messages of 50,000 bytes in a batch", batch.getCount(), 5);
        sender.sendMessages(batch);
        namespace.expectCounts("orders", Map.of("active", 5));
    }

    static void expectTooLarge(Runnable action) {
        Expect.refused(ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED, action);
    }

    private static void expectFull(Runnable action) {
        Expect.refused(ServiceBusFailureReason.QUOTA_EXCEEDED, action);
    }
}

package cases;

import static cases.Messages.sized;
import static cases.Messages.text;

import com.azure.messaging.servicebus.ServiceBusMessage;
import java.util.Arrays;
import java.util.Map;

/**
 * The premium tier: messages of any size that their queue allows.
 *
 * <p>Source: service-bus-premium-messaging. The queue large allows ten mebibytes, the others one.
 */
final class Premium {
    private Premium() {
    }

    /** A message of 5 MB arrives unchanged if the queue allows it. */
    static void largeMessage(Namespace namespace) {
        var body = new byte[5_000_000];
        for (int index = 0; index < body.length; index++) {
            body[index] = (byte) (index * 7 % 251);
        }
        namespace.send("large", new ServiceBusMessage(body));
        Receiver receiver = namespace.receiver("large");
        var message = receiver.one();
        Expect.isTrue("the body is what was sent", Arrays.equals(message.getBody().toBytes(), body));
        receiver.complete(message);
        namespace.expectCounts("large", Map.of("active", 0));
    }

    /** Other queues have the tier's default limit of a mebibyte. */
    static void tooLarge(Namespace namespace) {
        Sender sender = namespace.sender("orders");
        sender.send(sized(1_000_000));
        Limits.expectTooLarge(() -> sender.send(sized(1_100_000)));
        sender.send(text("small"));
        namespace.expectCounts("orders", Map.of("active", 2));
    }

    /** A batch has a mebibyte at most, also where a single message may have more; this SDK leaves that to the broker. */
    static void batch(Namespace namespace) {
        Sender sender = namespace.sender("large");
        Throwable failure = Expect.failure(() -> sender.sendBatch(sized(500_000), sized(500_000), sized(500_000)));
        Expect.isTrue("the error has the reason", String.valueOf(failure).contains("a batch message with no data in it"));
        namespace.expectCounts("large", Map.of("active", 0));
        sender.sendBatch(sized(500_000), sized(500_000));
        namespace.expectCounts("large", Map.of("active", 2));
    }
}

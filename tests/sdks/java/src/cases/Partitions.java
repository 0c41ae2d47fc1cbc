package cases;

import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.later;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Partitioned queues: sequence numbers have a partition in their top 16 bits, and work as any other (D18).
 *
 * <p>Source: service-bus-partitioning.
 */
final class Partitions {
    private Partitions() {
    }

    /** Messages with one partition key are in one partition, in the order sent, and keep the key. */
    static void keys(Namespace namespace) {
        namespace.send("partitioned", keyed("a", "eu"), keyed("b", "eu"), keyed("c", "eu"));
        namespace.send("partitioned", texts(Messages.numbered(0, 20)));
        Receiver receiver = namespace.receiver("partitioned");
        var messages = receiver.receive(23);
        var ofKey = messages.stream().filter(message -> "eu".equals(message.getPartitionKey())).toList();
        Expect.equal("bodies of one key", bodies(ofKey), List.of("a", "b", "c"));
        Expect.equal("partitions of one key", partitions(ofKey), 1);
        Expect.isTrue("there is more than one partition", partitions(messages) > 1);
        receiver.complete(messages);
    }

    /** A sequence number with a partition cancels a scheduled message, receives a deferred one, and starts a peek. */
    static void numbers(Namespace namespace) {
        // Of eight keys most are not in partition 0.
        var sent = IntStream.range(0, 8).mapToObj(key -> keyed("b" + key, "key " + key)).toList();
        Sender sender = namespace.sender("partitioned");
        Receiver receiver = namespace.receiver("partitioned");
        sender.send(sent);
        receiver.defer(receiver.receive(8));
        var peeked = receiver.peek(10);
        for (var message : peeked) {
            long number = message.getSequenceNumber();
            Expect.equal("peeked from its number", body(receiver.peek(1, number).get(0)), body(message));
            var deferred = receiver.deferred(number);
            Expect.equal("received by its number", bodies(deferred), List.of(body(message)));
            receiver.complete(deferred);
        }
        Expect.isTrue("some are in a partition", peeked.stream().anyMatch(message -> partition(message) > 0));
        for (var message : sent) {
            sender.cancel(sender.schedule(later(60), message).get(0));
        }
        namespace.expectCounts("partitioned", Map.of("active", 0, "deferred", 0, "scheduled", 0));
    }

    /** All messages of a batch go to one partition: a batch with two keys is rejected as a whole. */
    static void batchOfOneKey(Namespace namespace) {
        Sender sender = namespace.sender("partitioned");
        Expect.notAllowed(() -> sender.sendBatch(keyed("a", "eu"), keyed("b", "us")));
        sender.sendBatch(keyed("a", "eu"), keyed("b", "eu"));
        namespace.expectCounts("partitioned", Map.of("active", 2));
    }

    private static ServiceBusMessage keyed(String body, String key) {
        return text(body).setPartitionKey(key);
    }

    private static int partitions(List<ServiceBusReceivedMessage> messages) {
        return messages.stream().map(Partitions::partition).collect(Collectors.toSet()).size();
    }

    /** The top 16 bits of a message's sequence number. */
    private static long partition(ServiceBusReceivedMessage message) {
        return message.getSequenceNumber() >> 48;
    }
}

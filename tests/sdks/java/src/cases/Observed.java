package cases;

import static cases.Messages.body;
import static cases.Messages.text;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.models.CompleteOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * Observed behaviour of the service, by the numbers of tests/conformance/OBSERVED.md.
 *
 * <p>Source: spec/observed.md.
 */
final class Observed {
    private Observed() {
    }

    /** A receiver states the kind of its entity, and is rejected if the entity is of another kind (60). */
    static void entityType(Namespace namespace) {
        var refusal = Expect.notAllowed(() -> namespace.receiver("prices/Subscriptions/all").refused());
        Expect.errorText("Cannot open a Queue client for entity type Subscriber.", refusal);
        namespace.publish("prices", text("m"));
        Receiver receiver = namespace.subscriber("prices", "all");
        receiver.complete(receiver.one());
    }

    /** An entity that a client sends to via another one cannot be received from on the same connection (43). */
    static void receivedVia(Namespace namespace) {
        ServiceBusClientBuilder across = across(namespace);
        namespace.sender(across, "limited").send(text("a"));
        namespace.sender(across, "orders").send(text("b"));
        Receiver receiver = namespace.receiver(
                across, builder -> builder.queueName("orders").maxAutoLockRenewDuration(Duration.ZERO));
        Expect.notAllowed(receiver::refused);
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 0));
    }

    /** A settlement in a transaction of another partition is rejected, and releases its message (42). */
    static void otherPartition(Namespace namespace) {
        namespace.send("partitioned", text("1").setPartitionKey("one"), text("2").setPartitionKey("two"));
        Receiver receiver = namespace.receiver("partitioned");
        var messages = receiver.receive(2);
        var transaction = receiver.sdk().createTransaction();
        var options = new CompleteOptions().setTransactionContext(transaction);
        receiver.sdk().complete(messages.get(0), options);
        Expect.notAllowed(() -> receiver.sdk().complete(messages.get(1), options));
        receiver.sdk().commitTransaction(transaction);
        namespace.expectCounts("partitioned", Map.of("active", 1, "locked", 0));
        var again = receiver.one();
        Expect.equal("message", List.of(body(again), again.getDeliveryCount()), List.of(body(messages.get(1)), 1L));
        receiver.complete(again);
    }

    /** A basic namespace has no transactions (65). */
    static void noTransactions(Namespace namespace) {
        var refusal = Expect.notAllowed(() -> namespace.sender("orders").sdk().createTransaction());
        Expect.errorText("Transaction is unsupported because the namespace", refusal);
        Expect.errorText("is of 'Basic' tier.", refusal);
    }

    /** Clients of one connection, whose first entity is the via entity of the others. */
    private static ServiceBusClientBuilder across(Namespace namespace) {
        return namespace.clients(namespace.connectionString()).enableCrossEntityTransactions();
    }
}

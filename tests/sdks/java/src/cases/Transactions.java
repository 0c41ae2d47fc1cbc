package cases;

import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.later;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.models.AbandonOptions;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * Transactions: sends and settlements that take effect together or not at all.
 *
 * <p>Source: service-bus-transactions.
 */
final class Transactions {
    private Transactions() {
    }

    /** Messages sent in a transaction are delivered when it is committed, and discarded when it is rolled back. */
    static void sends(Namespace namespace) {
        var sender = namespace.sender("orders").sdk();
        var committed = sender.createTransaction();
        sender.sendMessage(text("a"), committed);
        sender.sendMessages(List.of(texts("b", "c")), committed);
        namespace.expectCounts("orders", Map.of("active", 0));
        var rolledBack = sender.createTransaction();
        sender.sendMessage(text("never"), rolledBack);
        sender.rollbackTransaction(rolledBack);
        sender.commitTransaction(committed);
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(3);
        Expect.equal("bodies", bodies(messages), List.of("a", "b", "c"));
        receiver.complete(messages);
        receiver.receiveNothing();
    }

    /** Settlements take effect when the transaction is committed; after a rollback the lock is unchanged. */
    static void settles(Namespace namespace) {
        namespace.send("orders", texts("done", "bad", "again"));
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(3);
        var transaction = receiver.sdk().createTransaction();
        receiver.sdk().complete(messages.get(0), new CompleteOptions().setTransactionContext(transaction));
        receiver.sdk().deadLetter(messages.get(1), new DeadLetterOptions().setTransactionContext(transaction));
        receiver.sdk().abandon(messages.get(2), new AbandonOptions().setTransactionContext(transaction));
        namespace.expectCounts("orders", Map.of("active", 3, "locked", 3, "dead_letter", 0));
        receiver.sdk().commitTransaction(transaction);
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 0, "dead_letter", 1));
        var again = receiver.one();
        Expect.equal("deliveries", again.getDeliveryCount(), 1L);
        receiver.complete(again);
    }

    /** After a rollback a message stays locked: no other receiver gets it, and its lock can be renewed. */
    static void rollsBack(Namespace namespace) {
        namespace.send("orders", text("kept"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        var transaction = receiver.sdk().createTransaction();
        receiver.sdk().complete(message, new CompleteOptions().setTransactionContext(transaction));
        receiver.sdk().rollbackTransaction(transaction);
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 1));
        Expect.freshLock(receiver.sdk().renewMessageLock(message));
        namespace.advance(61);
        var again = receiver.one();
        Expect.equal("deliveries", again.getDeliveryCount(), 1L);
        receiver.complete(again);
    }

    /** A message scheduled in a transaction is scheduled when the transaction is committed. */
    static void schedules(Namespace namespace) {
        var sender = namespace.sender("orders").sdk();
        var transaction = sender.createTransaction();
        sender.scheduleMessage(text("later"), later(60), transaction);
        namespace.expectCounts("orders", Map.of("scheduled", 0));
        sender.commitTransaction(transaction);
        namespace.expectCounts("orders", Map.of("scheduled", 1));
        var another = sender.createTransaction();
        sender.scheduleMessage(text("never"), later(60), another);
        sender.rollbackTransaction(another);
        namespace.advance(61);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("body", body(message), "later");
        receiver.complete(message);
        receiver.receiveNothing();
    }

    /** A message is completed in one entity, and a reply is sent to another via that entity. */
    static void acrossEntities(Namespace namespace) {
        namespace.send("orders", texts("first", "second"));
        ServiceBusClientBuilder across =
                namespace.clients(namespace.connectionString()).enableCrossEntityTransactions();
        // The first client's entity is the via entity of the others.
        Receiver receiver = namespace.receiver(
                across, builder -> builder.queueName("orders").maxAutoLockRenewDuration(Duration.ZERO));
        var messages = receiver.receive(2);
        var sender = namespace.sender(across, "limited").sdk();
        for (var message : messages) {
            var transaction = receiver.sdk().createTransaction();
            receiver.sdk().complete(message, new CompleteOptions().setTransactionContext(transaction));
            sender.sendMessage(text("answer to " + body(message)), transaction);
            namespace.expectCounts("limited", Map.of("active", 0));
            if (body(message).equals("second")) {
                receiver.sdk().commitTransaction(transaction);
            } else {
                receiver.sdk().rollbackTransaction(transaction);
            }
        }
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 1));
        Receiver answers = namespace.receiver("limited");
        var answer = answers.one();
        Expect.equal("body", body(answer), "answer to second");
        answers.complete(answer);
    }

    /** Sending in a transaction that has ended is rejected; this SDK requests no outcome for sends in a transaction. */
    static void over(Namespace namespace) {
        var sender = namespace.sender("orders").sdk();
        var transaction = sender.createTransaction();
        sender.commitTransaction(transaction);
        sender.sendMessage(text("late"), transaction);
        namespace.expectCounts("orders", Map.of("active", 0));
        sender.sendMessage(text("by itself"));
        namespace.expectCounts("orders", Map.of("active", 1));
    }
}

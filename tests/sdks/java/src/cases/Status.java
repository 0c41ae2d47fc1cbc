package cases;

import static cases.Messages.body;
import static cases.Messages.text;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import java.util.Map;

/**
 * Entity status: operations that a disabled queue rejects, when a link attaches and when one is attached.
 *
 * <p>Source: entity-suspend, and D27 for what is locked.
 */
final class Status {
    private Status() {
    }

    /** A disabled queue accepts neither senders nor receivers, and keeps its messages. */
    static void disabled(Namespace namespace) {
        namespace.send("orders", text("kept"));
        set(namespace, "Disabled");
        expectSendDisabled(() -> namespace.send("orders", text("refused")));
        expectDisabled(() -> namespace.receiver("orders").refused());
        set(namespace, "Active");
        expectNext(namespace, "kept");
    }

    /** Clients can receive from a queue that is disabled for sends. */
    static void sendDisabled(Namespace namespace) {
        namespace.send("orders", text("kept"));
        set(namespace, "SendDisabled");
        expectSendDisabled(() -> namespace.send("orders", text("refused")));
        expectNext(namespace, "kept");
    }

    /** Clients can send to a queue that is disabled for receives. */
    static void receiveDisabled(Namespace namespace) {
        set(namespace, "ReceiveDisabled");
        namespace.send("orders", text("kept"));
        expectDisabled(() -> namespace.receiver("orders").refused());
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 0));
    }

    /** An open sender is rejected while the queue is disabled, and can send afterwards. */
    static void openSender(Namespace namespace) {
        Sender sender = namespace.sender("orders");
        sender.send(text("before"));
        set(namespace, "Disabled");
        expectSendDisabled(() -> sender.send(text("meanwhile")));
        set(namespace, "Active");
        sender.send(text("after"));
        expectNext(namespace, "before");
        expectNext(namespace, "after");
    }

    /** An open receiver ends with its link; the SDK needs a new receiver when the queue is active again. */
    static void openReceiver(Namespace namespace) {
        Receiver receiver = namespace.receiver("orders");
        receiver.receiveNothing();
        var lost = Namespace.start(() -> Expect.failure(receiver::refused));
        set(namespace, "ReceiveDisabled");
        namespace.send("orders", text("kept"));
        Throwable failure = Namespace.await("the end of the link", lost);
        Expect.condition(AmqpErrorCondition.ENTITY_DISABLED_ERROR, failure);
        set(namespace, "Active");
        expectNext(namespace, "kept");
    }

    /** A lock keeps its expiry time while its queue is disabled (D27), unless it ends with its link (D2). */
    static void locked(Namespace namespace) {
        namespace.send("orders", text("held"));
        Receiver receiver = namespace.receiver("orders");
        var held = receiver.one();
        set(namespace, "Disabled");
        Expect.refused(
                ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, () -> receiver.sdk().renewMessageLock(held));
        set(namespace, "Active");
        Receiver another = namespace.receiver("orders");
        if (namespace.keepsLocks()) {
            namespace.expectCounts("orders", Map.of("active", 1, "locked", 1));
            another.complete(held);
        } else {
            namespace.expectCounts("orders", Map.of("active", 1, "locked", 0));
            Expect.refused(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> another.complete(held));
            expectNext(namespace, "held");
        }
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
    }

    private static void set(Namespace namespace, String status) {
        namespace.configure("orders", Map.of("Status", status));
    }

    private static void expectSendDisabled(Runnable action) {
        Expect.refused(ServiceBusFailureReason.MESSAGING_ENTITY_DISABLED, action);
    }

    static void expectDisabled(Runnable action) {
        Expect.condition(AmqpErrorCondition.ENTITY_DISABLED_ERROR, action);
    }

    /** Receives and completes the next message. */
    private static void expectNext(Namespace namespace, String expected) {
        try (Receiver receiver = namespace.receiver("orders")) {
            var message = receiver.one();
            Expect.equal("body", body(message), expected);
            receiver.complete(message);
        }
    }
}

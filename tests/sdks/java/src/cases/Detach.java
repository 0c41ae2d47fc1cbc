package cases;

import static cases.Messages.text;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.io.IOException;
import java.util.Map;

/** Receivers that close with a message locked, under both settings of D2. */
final class Detach {
    private Detach() {
    }

    /** A receiver is closed with a message locked; the lock is kept, or released at once. */
    static void closed(Namespace namespace) {
        var held = receiveAndClose(namespace);
        Receiver receiver = namespace.receiver("orders");
        if (namespace.keepsLocks()) {
            receiver.receiveNothing();
            namespace.expectCounts("orders", Map.of("active", 1, "locked", 1));
            // The lock is kept: its token still renews it.
            Expect.freshLock(receiver.sdk().renewMessageLock(held));
        } else {
            var again = receiver.one();
            Expect.equal("deliveries", again.getDeliveryCount(), 0L);
            Expect.refused(
                    ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> receiver.sdk().renewMessageLock(held));
            receiver.abandon(again);
        }
        expectReturn(namespace);
    }

    /** After its receiver is closed, a message is settled by its lock token while the lock is valid. */
    static void settledByToken(Namespace namespace) {
        var held = receiveAndClose(namespace);
        Receiver receiver = namespace.receiver("orders");
        if (namespace.keepsLocks()) {
            receiver.complete(held);
            namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
        } else {
            Expect.refused(ServiceBusFailureReason.MESSAGE_LOCK_LOST, () -> receiver.complete(held));
            var again = receiver.one();
            Expect.equal("deliveries", again.getDeliveryCount(), 0L);
            receiver.complete(again);
        }
    }

    /** A process is killed with a message locked, which ends its connection. */
    static void dropped(Namespace namespace) throws IOException, InterruptedException {
        namespace.send("orders", text("held"));
        Expect.equal("answer", Alone.run("detach.dies", namespace), Map.of());
        if (namespace.keepsLocks()) {
            namespace.expectCounts("orders", Map.of("active", 1, "locked", 1));
        } else {
            namespace.expectCounts("orders", Map.of("active", 1, "locked", 0));
            Receiver receiver = namespace.receiver("orders");
            var message = receiver.one();
            Expect.equal("deliveries", message.getDeliveryCount(), 0L);
            receiver.abandon(message);
        }
        expectReturn(namespace);
    }

    /** Receives one message and exits without closing anything: the system closes the socket. */
    static void dies(Namespace namespace) {
        namespace.receiver("orders").one();
        Runtime.getRuntime().halt(0);
    }

    private static ServiceBusReceivedMessage receiveAndClose(Namespace namespace) {
        namespace.send("orders", text("held"));
        try (Receiver receiver = namespace.receiver("orders")) {
            return receiver.one();
        }
    }

    /** After a minute the message is available again, counted once, by its expired lock or by the abandon. */
    private static void expectReturn(Namespace namespace) {
        namespace.advance(61);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("deliveries", message.getDeliveryCount(), 1L);
        receiver.complete(message);
        namespace.expectCounts("orders", Map.of("active", 0, "dead_letter", 0));
    }
}

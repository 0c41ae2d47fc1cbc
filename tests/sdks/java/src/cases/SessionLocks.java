package cases;

import static cases.Messages.body;
import static cases.Messages.cart;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * Session locks: renewed in time, by the application or the SDK, or lost with the locks of received messages.
 *
 * <p>Source: message-sessions, and D17 for a changed queue. The locks of quick-carts last twenty seconds.
 */
final class SessionLocks {
    private SessionLocks() {
    }

    /** Renewing a session's lock in time also extends the locks of its messages. */
    static void renews(Namespace namespace) {
        namespace.send("carts", cart("1", "slow"));
        Receiver session = namespace.session("carts", "1");
        var message = session.one();
        for (int renewal = 0; renewal < 2; renewal++) {
            namespace.advance(40);
            Expect.freshLock(session.sdk().renewSessionLock());
        }
        namespace.advance(40);
        session.complete(message);
        namespace.expectCounts("carts", Map.of("active", 0, "locked", 0));
    }

    /** Settling after the lock has expired throws the SDK's error, and the message is redelivered and counted. */
    static void losesLock(Namespace namespace) {
        namespace.send("carts", cart("1", "late"));
        List<BiConsumer<Receiver, ServiceBusReceivedMessage>> settlements =
                List.of(Receiver::complete, Receiver::abandon, Receiver::defer);
        long delivery = 0;
        for (var settle : settlements) {
            Receiver session = namespace.session("carts", "1");
            var message = session.one();
            Expect.equal("deliveries", message.getDeliveryCount(), delivery++);
            namespace.advance(61);
            expectLost(() -> settle.accept(session, message));
            session.close();
        }
        namespace.expectCounts("carts", Map.of("active", 1, "locked", 0));
    }

    /** Renewing after the lock has expired throws the same error. */
    static void losesLockOnRenewal(Namespace namespace) {
        Receiver session = namespace.session("carts", "1");
        namespace.advance(61);
        expectLost(() -> session.sdk().renewSessionLock());
    }

    /** A waiting receiver gets a session whose lock expires, although its receiver is still attached. */
    static void passesOn(Namespace namespace) {
        namespace.send("carts", cart("1", "stuck"));
        namespace.session("carts", "1").one();
        var opening = Namespace.start(() -> namespace.nextSession("carts"));
        Sessions.expectWaiting(opening);
        namespace.advance(61);
        Receiver session = Namespace.await("a session", opening);
        var message = session.one();
        Expect.equal("body", body(message), "stuck");
        Expect.equal("deliveries", message.getDeliveryCount(), 1L);
        session.complete(message);
    }

    /** Expired locks count as deliveries, as abandons do, until the message is dead-lettered. */
    static void expiresToTheLimit(Namespace namespace) {
        namespace.send("limited-carts", cart("1", "forgotten"), cart("1", "unseen"));
        for (long delivery = 0; delivery < 2; delivery++) {
            var message = namespace.session("limited-carts", "1").one();
            Expect.equal("body", body(message), "forgotten");
            Expect.equal("deliveries", message.getDeliveryCount(), delivery);
            namespace.advance(61);
        }
        Receiver deadLetters = namespace.deadLetters("limited-carts");
        var dead = deadLetters.one();
        Expect.equal("reason", dead.getDeadLetterReason(), "MaxDeliveryCountExceeded");
        Expect.equal("deliveries", dead.getDeliveryCount(), 2L);
        deadLetters.complete(dead);
        Receiver session = namespace.session("limited-carts", "1");
        var message = session.one();
        Expect.equal("body", body(message), "unseen");
        Expect.equal("deliveries", message.getDeliveryCount(), 0L);
        session.complete(message);
    }

    /** A changed queue loses the locks of its sessions (D17). */
    static void changed(Namespace namespace) {
        namespace.send("carts", cart("1", "held"));
        Receiver holder = namespace.session("carts", "1");
        var held = holder.one();
        namespace.configure("carts", Map.of("MaxDeliveryCount", 5));
        // The response arrives after the detach, so that the SDK knows of the detach when it settles.
        expectLost(() -> holder.sdk().renewSessionLock());
        expectLost(() -> holder.complete(held));
        holder.close();
        Receiver session = namespace.nextSession("carts");
        var message = session.one();
        Expect.equal("deliveries", message.getDeliveryCount(), 1L);
        session.complete(message);
    }

    /** The SDK renews a session's lock automatically, well before it expires by the client's clock. */
    static void autoRenewed(Namespace namespace) {
        namespace.send("quick-carts", cart("1", "slow"));
        var sessions = namespace.closing(namespace.clients
                .sessionReceiver()
                .queueName("quick-carts")
                .maxAutoLockRenewDuration(Duration.ofMinutes(5))
                .buildClient());
        Receiver session = namespace.accepted(sessions, receivers -> receivers.acceptSession("1"));
        var message = session.one();
        Expect.eventually("a renewal", () -> namespace.count("quick-carts", "session-lock-renewed") > 0);
        namespace.advance(12);
        session.complete(message);
        namespace.expectCounts("quick-carts", Map.of("active", 0, "locked", 0));
    }

    /** The error of an operation after the session's lock has expired. */
    private static void expectLost(Runnable action) {
        Expect.condition(AmqpErrorCondition.SESSION_LOCK_LOST, action);
    }
}

package cases;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Queue;
import jakarta.jms.TransactionRolledBackRuntimeException;
import java.util.Collections;
import java.util.Enumeration;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Connections: JMS 2.0, chapter 6.1, and what Qpid JMS does when one is lost. */
final class Connections {
    private Connections() {
    }

    static void metaData(Namespace namespace) throws JMSException {
        ConnectionMetaData metaData = namespace.connection().getMetaData();
        Expect.isTrue(metaData.getJMSVersion(), metaData.getJMSMajorVersion() >= 2);
        Enumeration<?> names = metaData.getJMSXPropertyNames();
        Expect.isTrue("JMSXDeliveryCount", Collections.list(names).contains("JMSXDeliveryCount"));
    }

    static void clientIdAfterUse(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        connection.createSession();
        Expect.fails(IllegalStateException.class, () -> connection.setClientID("late"));
    }

    static void clientIdTwice(Namespace namespace) throws JMSException {
        JMSContext first = namespace.client("audit");
        first.createConsumer(namespace.orders(first));
        if (namespace.differs(Difference.CLIENT_ID)) {
            JMSContext second = namespace.client("audit");
            second.createProducer().send(namespace.orders(second), "one");
        } else {
            Expect.fails(InvalidClientIDRuntimeException.class, () -> namespace.client("audit"));
        }
    }

    static void closesTwice(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        connection.close();
        connection.close();
        Expect.fails(IllegalStateException.class, connection::createSession);
    }

    static void many(Namespace namespace) throws JMSException {
        var seen = new TreeSet<String>();
        for (int index = 0; index < 30; index++) {
            try (JMSContext context = namespace.factory().createContext()) {
                context.createProducer().send(namespace.orders(context), "text " + index);
            }
        }
        JMSContext context = namespace.context();
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        for (int index = 0; index < 30; index++) {
            seen.add(Expect.message(consumer).getBody(String.class));
        }
        Expect.equal(30, seen.size());
    }

    static void manySessions(Namespace namespace) throws JMSException {
        JMSContext first = namespace.context();
        for (int index = 0; index < 20; index++) {
            JMSContext session = namespace.closing(first.createContext(JMSContext.AUTO_ACKNOWLEDGE));
            session.createProducer().send(namespace.orders(session), "text");
        }
        JMSConsumer consumer = first.createConsumer(namespace.orders(first));
        for (int index = 0; index < 20; index++) {
            Expect.message(consumer);
        }
        Expect.nothing(consumer);
    }

    static void reportsItsLoss(Namespace namespace) throws Exception {
        Cutter cutter = namespace.cutter();
        var lost = new CountDownLatch(1);
        Connection connection = namespace.closing(
                Clients.once(namespace.environment, cutter.port(), Map.of()).createConnection());
        connection.setExceptionListener(problem -> lost.countDown());
        connection.start();
        cutter.cut();
        Expect.isTrue("it was reported", lost.await(Expect.TIMEOUT, TimeUnit.MILLISECONDS));
        Expect.fails(JMSException.class, connection::createSession);
    }

    static void recovers(Namespace namespace) throws Exception {
        Cutter cutter = namespace.cutter();
        JMSContext context = namespace.closing(factory(namespace, cutter).createContext());
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        for (int index = 0; index < 3; index++) {
            context.createProducer().send(namespace.orders(context), "text " + index);
            isReceived(consumer, "text " + index);
            cutter.cut();
        }
        context.createProducer().send(namespace.orders(context), "last");
        isReceived(consumer, "last");
    }

    /** The message arrives in the end; earlier messages may be redelivered if their acknowledgements were lost. */
    private static void isReceived(JMSConsumer consumer, String text) throws JMSException {
        while (!Expect.message(consumer).getBody(String.class).equals(text)) {
            // An earlier one.
        }
    }

    static void recoversListeners(Namespace namespace) throws Exception {
        Cutter cutter = namespace.cutter();
        JMSContext context = namespace.closing(factory(namespace, cutter).createContext());
        var seen = Collections.synchronizedSet(new TreeSet<String>());
        context.createConsumer(namespace.orders(context)).setMessageListener(message -> seen.add(Queues.text(message)));
        for (int index = 0; index < 3; index++) {
            String text = "text " + index;
            namespace.send("orders", text);
            Expect.eventually(text, () -> seen.contains(text));
            cutter.cut();
        }
        namespace.send("orders", "last");
        Expect.eventually("last", () -> seen.contains("last"));
    }

    /** A transaction is rolled back when the connection is lost, and the session continues. */
    static void recoversTransactions(Namespace namespace) throws Exception {
        Cutter cutter = namespace.cutter();
        JMSContext context = namespace.closing(factory(namespace, cutter).createContext(JMSContext.SESSION_TRANSACTED));
        context.createProducer().send(namespace.orders(context), "gone");
        cutter.cut();
        Expect.fails(TransactionRolledBackRuntimeException.class, () -> {
            context.createProducer().send(namespace.orders(context), "gone too");
            context.commit();
        });
        namespace.expectLeft("orders", "kept " + commits(context, namespace.orders(context)));
    }

    /** Tries until a transaction is committed, and returns which one. */
    private static int commits(JMSContext context, Queue orders) throws Exception {
        var attempt = new AtomicInteger();
        Expect.eventually("a transaction is committed", () -> {
            try {
                context.createProducer().send(orders, "kept " + attempt.incrementAndGet());
                context.commit();
                return true;
            } catch (TransactionRolledBackRuntimeException lost) {
                // The transaction began before the session knew of its new connection.
                return false;
            }
        });
        return attempt.get();
    }

    static void recoversSubscriptions(Namespace namespace) throws Exception {
        Cutter cutter = namespace.cutter();
        JMSContext context = namespace.closing(factory(namespace, cutter).createContext());
        context.setClientID(namespace.name("audit"));
        JMSConsumer durable = context.createDurableConsumer(namespace.prices(context), "all");
        namespace.publish("before");
        Expect.texts(durable, "before");
        cutter.cut();
        namespace.publish("after");
        isReceived(durable, "after");
    }

    static void refused(Namespace namespace) {
        // No program listens on this port.
        ConnectionFactory factory = Clients.once(namespace.environment, 1, Map.of());
        Expect.fails(JMSRuntimeException.class, () -> factory.createContext().start());
    }

    private static ConnectionFactory factory(Namespace namespace, Cutter cutter) {
        return Clients.reconnecting(namespace.environment, cutter.port(), Map.of());
    }
}

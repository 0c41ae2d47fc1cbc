package cases;

import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;

/** Modes of acknowledgement: JMS 2.0, 6.2.10, and Qpid JMS' individual mode. */
final class Acknowledge {
    private static final int INDIVIDUAL = 101;

    private Acknowledge() {
    }

    static void auto(Namespace namespace) throws Exception {
        isGone(namespace, JMSContext.AUTO_ACKNOWLEDGE);
    }

    static void duplicatesOk(Namespace namespace) throws Exception {
        isGone(namespace, JMSContext.DUPS_OK_ACKNOWLEDGE);
    }

    private static void isGone(Namespace namespace, int mode) throws Exception {
        namespace.send("orders", "one", "two");
        try (JMSContext context = namespace.factory().createContext(mode)) {
            Expect.texts(context.createConsumer(namespace.orders(context)), "one", "two");
        }
        namespace.endLocks();
        namespace.expectLeft("orders");
    }

    static void client(Namespace namespace) throws Exception {
        namespace.send("orders", "one", "two", "three");
        try (JMSContext context = namespace.factory().createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
            JMSConsumer consumer = context.createConsumer(namespace.orders(context));
            Expect.texts(consumer, "one");
            // Acknowledges all received messages, not those that were only fetched.
            Expect.message(consumer).acknowledge();
        }
        namespace.endLocks();
        namespace.expectLeft("orders", "three");
    }

    static void clientContext(Namespace namespace) throws Exception {
        namespace.send("orders", "one", "two");
        try (JMSContext context = namespace.factory().createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
            Expect.texts(context.createConsumer(namespace.orders(context)), "one", "two");
            context.acknowledge();
        }
        namespace.endLocks();
        namespace.expectLeft("orders");
    }

    static void notAcknowledged(Namespace namespace) throws Exception {
        namespace.send("orders", "one", "two");
        // Without prefetch, so that the client does not get back the messages that it releases when it closes.
        var factory = namespace.factory(Map.of("jms.prefetchPolicy.all", "0"));
        try (JMSContext context = factory.createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
            Expect.texts(context.createConsumer(namespace.orders(context)), "one", "two");
        }
        namespace.endLocks();
        JMSContext context = namespace.context();
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Message message = Expect.message(consumer);
        Expect.equal("one", message.getBody(String.class));
        Expect.equal(true, message.getJMSRedelivered());
        Expect.equal(2, message.getIntProperty("JMSXDeliveryCount"));
        Expect.texts(consumer, "two");
    }

    static void recovered(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two", "three");
        JMSContext context = namespace.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, "one", "two");
        context.recover();
        Message message = Expect.message(consumer);
        Expect.equal("one", message.getBody(String.class));
        Expect.equal(true, message.getJMSRedelivered());
        Expect.texts(consumer, "two", "three");
        context.acknowledge();
        Expect.nothing(consumer);
    }

    static void individual(Namespace namespace) throws Exception {
        namespace.send("orders", "one", "two", "three");
        try (Connection connection = namespace.factory().createConnection()) {
            connection.start();
            Session session = connection.createSession(INDIVIDUAL);
            MessageConsumer consumer = session.createConsumer(session.createQueue(namespace.name("orders")));
            Expect.message(consumer);
            Expect.message(consumer).acknowledge();
            Expect.message(consumer);
        }
        namespace.endLocks();
        namespace.expectLeft("orders", "one", "three");
    }

    static void listenerThrows(Namespace namespace) throws Exception {
        namespace.send("orders", "one");
        JMSContext context = namespace.context();
        var texts = new LinkedBlockingQueue<String>();
        context.createConsumer(namespace.orders(context)).setMessageListener(message -> {
            texts.add(Queues.text(message));
            if (texts.size() < 3) {
                throw new IllegalStateException("on purpose");
            }
        });
        Expect.eventually("a third delivery", () -> texts.size() == 3);
        Expect.equal(List.of("one", "one", "one"), List.copyOf(texts));
        context.close();
        namespace.endLocks();
        namespace.expectLeft("orders");
    }

    static void consumerClosedBefore(Namespace namespace) throws Exception {
        namespace.send("orders", "one");
        JMSContext context = namespace.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Message message = Expect.message(consumer);
        consumer.close();
        message.acknowledge();
        namespace.endLocks();
        namespace.expectLeft("orders");
    }
}

package cases;

import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.Map;

/** The outcomes that a consumer of Qpid JMS sets by a property of the message; for Service Bus only. */
final class Outcomes {
    private static final int INDIVIDUAL = 101;
    private static final int ACCEPTED = 1;
    private static final int REJECTED = 2;
    private static final int RELEASED = 3;
    private static final int MODIFIED_FAILED = 4;
    private static final int MODIFIED_UNDELIVERABLE = 5;

    private Outcomes() {
    }

    static void accepted(Namespace namespace) throws JMSException {
        settle(namespace, ACCEPTED);
        namespace.expectLeft("orders");
        Expect.equal(0, namespace.count("orders", "dead_letter"));
    }

    static void rejected(Namespace namespace) throws Exception {
        settle(namespace, REJECTED);
        Expect.eventually("a dead letter", () -> namespace.count("orders", "dead_letter") == 1);
        namespace.expectLeft("orders");
        namespace.expectLeft("orders/$DeadLetterQueue", "one");
    }

    static void released(Namespace namespace) throws JMSException {
        settle(namespace, RELEASED);
        Expect.equal(1, nextCount(namespace));
    }

    static void modified(Namespace namespace) throws JMSException {
        settle(namespace, MODIFIED_FAILED);
        Expect.equal(2, nextCount(namespace));
    }

    static void undeliverable(Namespace namespace) throws Exception {
        settle(namespace, MODIFIED_UNDELIVERABLE);
        Expect.eventually("a deferred message", () -> namespace.count("orders", "deferred") == 1);
        namespace.expectLeft("orders");
    }

    private static int nextCount(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        return Expect.message(consumer).getIntProperty("JMSXDeliveryCount");
    }

    /** Receives one message and settles it by this outcome. */
    private static void settle(Namespace namespace, int outcome) throws JMSException {
        namespace.send("orders", "one");
        // Without prefetch, so that this consumer does not get the message back.
        var factory = namespace.factory(Map.of("jms.prefetchPolicy.all", "0"));
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(INDIVIDUAL);
            MessageConsumer consumer = session.createConsumer(session.createQueue(namespace.name("orders")));
            Message message = Expect.message(consumer);
            message.setIntProperty("JMS_AMQP_ACK_TYPE", outcome);
            message.acknowledge();
            consumer.close();
        }
    }
}

package cases;

import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityRuntimeException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ResourceAllocationRuntimeException;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TransactionRolledBackRuntimeException;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/** Errors of Service Bus, after which other operations continue. */
final class Refusals {
    private Refusals() {
    }

    /** The namespace has as many queues and topics as it may have. */
    static void fullNamespace(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        Class<ResourceAllocationRuntimeException> full = ResourceAllocationRuntimeException.class;
        Expect.fails(full, () -> context.createProducer().send(context.createQueue("one-more"), "x"));
        Expect.fails(full, () -> context.createConsumer(context.createQueue("one-more")));
        Expect.fails(full, () -> context.createConsumer(context.createTopic("one-more")));
        Expect.fails(full, context::createTemporaryQueue);
        // A subscription is neither a queue nor a topic.
        JMSConsumer consumer = context.createConsumer(namespace.prices(context));
        context.createProducer().send(namespace.prices(context), "one");
        Expect.texts(consumer, "one");
    }

    /** A key without the Manage claim cannot create or delete entities. */
    static void withoutManage(Namespace namespace) throws JMSException {
        Map<String, ?> keys = Map.of("Tier", "premium", "Keys", List.of(
                Map.of("Name", "owner", "Key", "o"),
                Map.of("Name", "clerk", "Key", "c", "Claims", List.of("Send", "Listen"))));
        Map<String, ?> declared = Map.of("Name", "clerks", "Emulator", keys);
        namespace.control("PUT", "../clerks", Map.of("UserConfig", Map.of("Namespaces", List.of(declared))));
        JMSContext clerk = namespace.closing(namespace.factory().createContext("clerk", "c"));
        Class<JMSSecurityRuntimeException> refused = JMSSecurityRuntimeException.class;
        Expect.fails(refused, () -> clerk.createProducer().send(clerk.createQueue("fresh"), "x"));
        Expect.fails(refused, () -> clerk.createConsumer(clerk.createTopic("news")));
        Expect.fails(refused, clerk::createTemporaryQueue);
        JMSContext owner = namespace.closing(namespace.factory().createContext("owner", "o"));
        owner.createSharedDurableConsumer(owner.createTopic("news"), "all").close();
        Expect.fails(refused, () -> clerk.createSharedDurableConsumer(clerk.createTopic("news"), "more"));
        try (JMSConsumer consumer = clerk.createSharedDurableConsumer(clerk.createTopic("news"), "all")) {
            clerk.createProducer().send(clerk.createTopic("news"), "one");
            Expect.texts(consumer, "one");
        }
        Expect.fails(refused, () -> clerk.unsubscribe("all"));
        owner.unsubscribe("all");
    }

    /** A transaction whose lock was lost, or whose target is gone, is rolled back, not undecided. */
    static void commits(Namespace namespace) throws Exception {
        namespace.send("orders", "one");
        // Without prefetch, so that the lock of one message alone is lost.
        var factory = namespace.factory(Map.of("jms.prefetchPolicy.all", "0"));
        JMSContext context = namespace.closing(factory.createContext(JMSContext.SESSION_TRANSACTED));
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, "one");
        namespace.elapse(Duration.ofSeconds(61));
        Class<TransactionRolledBackRuntimeException> rolledBack = TransactionRolledBackRuntimeException.class;
        Expect.fails(rolledBack, context::commit);
        Expect.equal(2, Expect.message(consumer).getIntProperty("JMSXDeliveryCount"));
        context.commit();

        // By a session without a consumer, whose queue would accept the message for the other one; and with sends that wait.
        factory = namespace.factory(Map.of("jms.forceSyncSend", "true"));
        JMSContext sending = namespace.closing(factory.createContext(JMSContext.SESSION_TRANSACTED));
        TemporaryQueue gone = namespace.context().createTemporaryQueue();
        sending.createProducer().send(gone, "late");
        gone.delete();
        Expect.fails(rolledBack, sending::commit);
        sending.createProducer().send(namespace.orders(sending), "next");
        sending.commit();
        Expect.texts(consumer, "next");
    }

    /** A bar and a dollar sign are special in the names of links and of subscriptions. */
    static void names(Namespace namespace) {
        JMSContext context = namespace.client("audit");
        for (String name : new String[] {"a|b", "a$b", "$b"}) {
            Expect.fails(JMSRuntimeException.class, () -> context.createProducer().send(context.createQueue(name), "x"));
            Expect.fails(JMSRuntimeException.class, () -> context.createConsumer(context.createTopic(name)));
        }
        var prices = namespace.prices(context);
        Expect.fails(JMSRuntimeException.class, () -> context.createDurableConsumer(prices, "a|b"));
        Expect.fails(JMSRuntimeException.class, () -> context.createSharedConsumer(prices, "a|b"));
        context.createDurableConsumer(prices, "a$b");
        Expect.equal(0, namespace.count("prices/Subscriptions/a$b$audit$D", "active"));
    }

    /** Two connections have one client identifier, and one of them the subscription. */
    static void durableElsewhere(Namespace namespace) throws JMSException {
        JMSContext one = namespace.client("audit");
        JMSContext two = namespace.client("audit");
        JMSConsumer first = one.createDurableConsumer(namespace.prices(one), "all");
        Expect.fails(JMSRuntimeException.class, () -> two.createDurableConsumer(namespace.prices(two), "all"));
        namespace.publish("one");
        Expect.texts(first, "one");
        first.close();
        namespace.publish("two");
        Expect.texts(two.createDurableConsumer(namespace.prices(two), "all"), "two");
    }

    static void unsubscribedElsewhere(Namespace namespace) throws JMSException {
        JMSContext one = namespace.client("audit");
        JMSContext two = namespace.client("audit");
        JMSConsumer consumer = one.createDurableConsumer(namespace.prices(one), "all");
        Expect.fails(JMSRuntimeException.class, () -> two.unsubscribe("all"));
        namespace.publish("one");
        Expect.texts(consumer, "one");
        consumer.close();
        two.unsubscribe("all");
    }

    /** A producer of another connection loses the temporary queue when the connection that created it ends. */
    static void temporaryQueueGone(Namespace namespace) throws Exception {
        JMSContext creator = namespace.context();
        TemporaryQueue queue = creator.createTemporaryQueue();
        Connection other = namespace.connection();
        Session session = other.createSession();
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createTextMessage("one"));
        creator.close();
        Expect.eventually("the producer is refused", () -> {
            try {
                producer.send(session.createTextMessage("to no one"));
                return false;
            } catch (JMSException gone) {
                return true;
            }
        });
        Expect.fails(JMSException.class, () -> session.createProducer(queue));
        // The connection still works.
        session.createProducer(session.createQueue("orders")).send(session.createTextMessage("kept"));
        namespace.expectLeft("orders", "kept");
    }
}

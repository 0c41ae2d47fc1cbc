package cases;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import jakarta.jms.TopicSubscriber;
import java.util.Set;
import java.util.TreeSet;

/** Subscriptions of all six kinds: JMS 2.0, 4.2 and 8.3. */
final class Topics {
    private Topics() {
    }

    static void each(Namespace namespace) throws JMSException {
        JMSContext one = namespace.context();
        JMSContext two = namespace.context();
        JMSConsumer first = one.createConsumer(namespace.prices(one));
        JMSConsumer second = two.createConsumer(namespace.prices(two));
        JMSConsumer third = two.createConsumer(namespace.prices(two));
        namespace.publish("one", "two");
        for (JMSConsumer consumer : new JMSConsumer[] {first, second, third}) {
            Expect.texts(consumer, "one", "two");
            Expect.nothing(consumer);
        }
    }

    static void fromNowOn(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        Topic prices = namespace.prices(context);
        context.createConsumer(prices).close();
        namespace.publish("before");
        JMSConsumer consumer = context.createConsumer(prices);
        namespace.publish("after");
        Expect.texts(consumer, "after");
        Expect.nothing(consumer);
    }

    static void withoutSubscribers(Namespace namespace) throws JMSException {
        namespace.publish("to no one");
        JMSContext context = namespace.context();
        Expect.nothing(context.createConsumer(namespace.prices(context)));
    }

    static void durable(Namespace namespace) throws JMSException {
        try (JMSContext context = namespace.client("audit")) {
            JMSConsumer consumer = context.createDurableConsumer(namespace.prices(context), "all");
            namespace.publish("one");
            Expect.texts(consumer, "one");
        }
        namespace.publish("two", "three");
        JMSContext context = namespace.client("audit");
        JMSConsumer consumer = context.createDurableConsumer(namespace.prices(context), "all");
        Expect.texts(consumer, "two", "three");
        consumer.close();
        context.unsubscribe("all");
    }

    static void durableByAnotherClient(Namespace namespace) throws JMSException {
        JMSContext one = namespace.client("audit");
        JMSContext two = namespace.client("billing");
        JMSConsumer first = one.createDurableConsumer(namespace.prices(one), "all");
        JMSConsumer second = two.createDurableConsumer(namespace.prices(two), "all");
        namespace.publish("one");
        Expect.texts(first, "one");
        Expect.texts(second, "one");
        Expect.nothing(first);
    }

    static void durableClassic(Namespace namespace) throws JMSException {
        Connection connection = namespace.closing(namespace.factory().createConnection());
        connection.setClientID(namespace.name("audit"));
        connection.start();
        Session session = connection.createSession();
        Topic prices = session.createTopic(namespace.name("prices"));
        TopicSubscriber subscriber = session.createDurableSubscriber(prices, "all");
        Expect.equal(prices.getTopicName(), subscriber.getTopic().getTopicName());
        session.createProducer(prices).send(session.createTextMessage("one"));
        Expect.equal("one", Expect.message(subscriber).getBody(String.class));
        subscriber.close();
        session.unsubscribe("all");
    }

    static void changedTopic(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        Topic prices = namespace.prices(context);
        Topic sums = context.createTopic(namespace.name("sums"));
        context.createDurableConsumer(prices, "all").close();
        context.createProducer().send(prices, "of the former");
        try (JMSConsumer consumer = context.createDurableConsumer(sums, "all")) {
            context.createProducer().send(prices, "a price");
            context.createProducer().send(sums, "a sum");
            Expect.texts(consumer, "a sum");
            Expect.nothing(consumer);
        }
        context.unsubscribe("all");
    }

    static void durableTwice(Namespace namespace) {
        JMSContext context = namespace.client("audit");
        context.createDurableConsumer(namespace.prices(context), "all");
        Expect.fails(JMSRuntimeException.class, () -> context.createDurableConsumer(namespace.prices(context), "all"));
    }

    static void durableWithoutClient(Namespace namespace) {
        JMSContext context = namespace.context();
        Expect.fails(IllegalStateRuntimeException.class,
                () -> context.createDurableConsumer(namespace.prices(context), "all"));
    }

    static void sharedDurable(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        JMSConsumer first = context.createSharedDurableConsumer(namespace.prices(context), "all");
        JMSConsumer second = context.createSharedDurableConsumer(namespace.prices(context), "all");
        sharesAll(namespace, first, second);
        first.close();
        second.close();
        namespace.publish("while closed");
        try (JMSConsumer third = context.createSharedDurableConsumer(namespace.prices(context), "all")) {
            Expect.texts(third, "while closed");
        }
        context.unsubscribe("all");
    }

    static void sharedDurableWithoutClient(Namespace namespace) throws JMSException {
        String name = namespace.name("all");
        JMSContext one = namespace.context();
        JMSContext two = namespace.context();
        JMSConsumer first = one.createSharedDurableConsumer(namespace.prices(one), name);
        JMSConsumer second = two.createSharedDurableConsumer(namespace.prices(two), name);
        sharesAll(namespace, first, second);
        first.close();
        second.close();
        namespace.publish("while closed");
        try (JMSConsumer third = one.createSharedDurableConsumer(namespace.prices(one), name)) {
            Expect.texts(third, "while closed");
        }
        one.unsubscribe(name);
    }

    static void sharedVolatile(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        JMSConsumer first = context.createSharedConsumer(namespace.prices(context), "all");
        JMSConsumer second = context.createSharedConsumer(namespace.prices(context), "all");
        sharesAll(namespace, first, second);
        first.close();
        namespace.publish("while one is left");
        Expect.texts(second, "while one is left");
        second.close();
        namespace.publish("while none is left");
        Expect.nothing(context.createSharedConsumer(namespace.prices(context), "all"));
    }

    static void sharedVolatileWithoutClient(Namespace namespace) throws JMSException {
        String name = namespace.name("all");
        JMSContext one = namespace.context();
        JMSContext two = namespace.context();
        JMSConsumer first = one.createSharedConsumer(namespace.prices(one), name);
        JMSConsumer second = two.createSharedConsumer(namespace.prices(two), name);
        sharesAll(namespace, first, second);
        first.close();
        second.close();
        namespace.publish("while none is left");
        Expect.nothing(one.createSharedConsumer(namespace.prices(one), name));
    }

    /** Two consumers together get each text once; either may get any. */
    private static void sharesAll(Namespace namespace, JMSConsumer first, JMSConsumer second) throws JMSException {
        Set<String> sent = new TreeSet<>();
        for (int index = 0; index < 20; index++) {
            sent.add("text " + index);
        }
        namespace.publish(sent.toArray(String[]::new));
        Set<String> seen = new TreeSet<>();
        long deadline = System.nanoTime() + Expect.TIMEOUT * 1_000_000;
        while (seen.size() < sent.size()) {
            Expect.isTrue("there came " + seen, System.nanoTime() < deadline);
            for (JMSConsumer consumer : new JMSConsumer[] {first, second}) {
                var message = consumer.receive(20);
                Expect.isTrue("it came twice: " + message, message == null || seen.add(Queues.text(message)));
            }
        }
        Expect.equal(sent, seen);
        Expect.nothing(first);
        Expect.nothing(second);
    }

    static void unsubscribes(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        context.createDurableConsumer(namespace.prices(context), "all").close();
        namespace.publish("gone");
        context.unsubscribe("all");
        JMSConsumer consumer = context.createDurableConsumer(namespace.prices(context), "all");
        namespace.publish("kept");
        Expect.texts(consumer, "kept");
        consumer.close();
        context.unsubscribe("all");
    }

    static void unsubscribesWhileActive(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        JMSConsumer consumer = context.createDurableConsumer(namespace.prices(context), "all");
        Expect.fails(JMSRuntimeException.class, () -> context.unsubscribe("all"));
        namespace.publish("one");
        Expect.texts(consumer, "one");
    }

    static void unsubscribesNothing(Namespace namespace) {
        JMSContext context = namespace.client("audit");
        Expect.fails(InvalidDestinationRuntimeException.class, () -> context.unsubscribe("unknown"));
    }

    static void noLocal(Namespace namespace) throws JMSException {
        Connection connection = namespace.closing(namespace.factory().createConnection());
        connection.start();
        Session session = connection.createSession();
        Topic prices = session.createTopic(namespace.name("prices"));
        MessageConsumer consumer = session.createConsumer(prices, null, true);
        session.createProducer(prices).send(session.createTextMessage("own"));
        namespace.publish("of another");
        if (namespace.differs(Difference.NO_LOCAL)) {
            Expect.equal("own", Expect.message(consumer).getBody(String.class));
        }
        Expect.equal("of another", Expect.message(consumer).getBody(String.class));
    }

    static void transacted(Namespace namespace) throws JMSException {
        JMSContext other = namespace.context();
        JMSConsumer consumer = other.createConsumer(namespace.prices(other));
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        Namespace.send(context.createProducer(), namespace.prices(context), "gone");
        context.rollback();
        Namespace.send(context.createProducer(), namespace.prices(context), "kept");
        Expect.nothing(consumer);
        context.commit();
        Expect.texts(consumer, "kept");
        Expect.nothing(consumer);
    }
}

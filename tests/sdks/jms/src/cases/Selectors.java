package cases;

import jakarta.jms.InvalidSelectorRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;

/** Selectors, on subscriptions and on queues: JMS 2.0, 3.8. */
final class Selectors {
    /** The names of the messages that {@link #publish} publishes. */
    private static final List<String> ALL = List.of("apple", "banana", "cherry", "none");

    private Selectors() {
    }

    static void comparisons(Namespace namespace) throws JMSException {
        selects(namespace, "price = 10", "banana");
        selects(namespace, "price <> 10", "apple", "cherry");
        selects(namespace, "price >= 10", "banana", "cherry");
        selects(namespace, "price < 10.5", "apple", "banana");
        selects(namespace, "fruit = 'apple'", "apple");
        selects(namespace, "ripe = TRUE", "apple", "cherry");
    }

    static void logic(Namespace namespace) throws JMSException {
        selects(namespace, "price > 5 AND ripe = TRUE", "cherry");
        selects(namespace, "price = 5 OR price = 15", "apple", "cherry");
        selects(namespace, "NOT (price = 10)", "apple", "cherry");
        selects(namespace, "NOT (price = 10 OR ripe = TRUE)");
        if (namespace.differs(Difference.NOT)) {
            selects(namespace, "NOT price = 10", "apple", "cherry");
        }
        selects(namespace, "price > 1 AND ripe = TRUE OR fruit = 'banana'", "apple", "banana", "cherry");
    }

    static void ranges(Namespace namespace) throws JMSException {
        selects(namespace, "price BETWEEN 5 AND 10", "apple", "banana");
        selects(namespace, "price NOT BETWEEN 5 AND 10", "cherry");
        selects(namespace, "fruit IN ('apple', 'cherry')", "apple", "cherry");
        selects(namespace, "fruit NOT IN ('apple', 'cherry')", "banana");
    }

    static void patterns(Namespace namespace) throws JMSException {
        selects(namespace, "fruit LIKE '%an%'", "banana");
        selects(namespace, "fruit LIKE 'a____'", "apple");
        selects(namespace, "fruit NOT LIKE '%e%'", "banana");
        selects(namespace, "code LIKE 'a\\_%' ESCAPE '\\'", "apple");
    }

    /** A missing property is null, for which all comparisons except IS NULL are unknown. */
    static void nulls(Namespace namespace) throws JMSException {
        selects(namespace, "fruit IS NULL", "none");
        selects(namespace, "fruit IS NOT NULL", "apple", "banana", "cherry");
        selects(namespace, "other = 1");
        selects(namespace, "NOT (other = 1)");
    }

    static void arithmetic(Namespace namespace) throws JMSException {
        selects(namespace, "price * 2 = 20", "banana");
        selects(namespace, "price + 5 > 15", "cherry");
        selects(namespace, "price / 5 - 1 = 0", "apple");
        selects(namespace, "-price < -10", "cherry");
    }

    static void headers(Namespace namespace) throws JMSException {
        selects(namespace, "JMSType = 'red'", "apple", "cherry");
        selects(namespace, "JMSCorrelationID = 'c-2'", "banana");
        selects(namespace, "JMSXGroupID = 'basket'", "cherry");
        if (namespace.differs(Difference.HEADERS)) {
            selects(namespace, "JMSTimestamp > 1000000", "apple", "banana", "cherry", "none");
            selects(namespace, "JMSPriority > 4", "cherry");
            selects(namespace, "JMSDeliveryMode = 'PERSISTENT'", "apple", "banana", "cherry", "none");
        }
    }

    /** Strings are compared only for equality, and never with numbers. */
    static void types(Namespace namespace) throws JMSException {
        selects(namespace, "fruit = 10");
        selects(namespace, "code = 'it''s'", "banana");
        selects(namespace, "weight = 1.5E0", "apple");
        selects(namespace, "price = 5.0", "apple");
    }

    static void malformed(Namespace namespace) {
        JMSContext context = namespace.context();
        for (String selector : new String[] {"price >", "AND", "fruit LIKE 3", "price = = 1", "nowhere(price) = 1"}) {
            Expect.fails(InvalidSelectorRuntimeException.class,
                    () -> context.createConsumer(namespace.prices(context), selector));
        }
    }

    static void queue(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        for (int index = 0; index < 10; index++) {
            context.createProducer().setProperty("number", index).send(namespace.orders(context), "text " + index);
        }
        try (JMSConsumer consumer = context.createConsumer(namespace.orders(context), "number > 3 AND number <> 8")) {
            Expect.texts(consumer, "text 4", "text 5", "text 6", "text 7", "text 9");
            Expect.nothing(consumer);
        }
        namespace.expectLeft("orders", "text 0", "text 1", "text 2", "text 3", "text 8");
    }

    static void queueSharedBySelectors(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        JMSConsumer red = context.createConsumer(namespace.orders(context), "colour = 'red'");
        JMSConsumer blue = context.createConsumer(namespace.orders(context), "colour = 'blue'");
        for (String colour : new String[] {"blue", "red", "red", "green", "blue"}) {
            context.createProducer().setProperty("colour", colour).send(namespace.orders(context), colour);
        }
        Expect.texts(red, "red", "red");
        Expect.texts(blue, "blue", "blue");
        Expect.nothing(red);
        red.close();
        blue.close();
        namespace.expectLeft("orders", "green");
    }

    static void queueTransacted(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        for (int index = 0; index < 6; index++) {
            context.createProducer().setProperty("number", index).send(namespace.orders(context), "text " + index);
        }
        JMSContext transacted = namespace.context(JMSContext.SESSION_TRANSACTED);
        try (JMSConsumer consumer = transacted.createConsumer(namespace.orders(transacted), "number > 3")) {
            Expect.texts(consumer, "text 4", "text 5");
            transacted.rollback();
            Expect.texts(consumer, "text 4", "text 5");
            transacted.commit();
        }
        namespace.expectLeft("orders", "text 0", "text 1", "text 2", "text 3");
    }

    static void durableSelector(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        Topic prices = namespace.prices(context);
        try (JMSConsumer consumer = context.createDurableConsumer(prices, "high", "price > 10", false)) {
            context.createProducer().setProperty("price", 9).send(prices, "low");
            context.createProducer().setProperty("price", 11).send(prices, "high");
            Expect.texts(consumer, "high");
            Expect.nothing(consumer);
        }
        context.createProducer().setProperty("price", 12).send(prices, "while closed");
        try (JMSConsumer consumer = context.createDurableConsumer(prices, "high", "price > 10", false)) {
            Expect.texts(consumer, "while closed");
        }
        context.unsubscribe("high");
    }

    /** A changed selector creates the subscription again, without the messages that it held. */
    static void changedSelector(Namespace namespace) throws JMSException {
        JMSContext context = namespace.client("audit");
        Topic prices = namespace.prices(context);
        context.createDurableConsumer(prices, "some", "price > 10", false).close();
        context.createProducer().setProperty("price", 11).send(prices, "of the former");
        try (JMSConsumer consumer = context.createDurableConsumer(prices, "some", "price < 10", false)) {
            context.createProducer().setProperty("price", 9).send(prices, "low");
            context.createProducer().setProperty("price", 11).send(prices, "high");
            Expect.texts(consumer, "low");
            Expect.nothing(consumer);
        }
        context.unsubscribe("some");
    }

    /** A subscription with this selector receives exactly these messages. */
    private static void selects(Namespace namespace, String selector, String... expected) throws JMSException {
        JMSContext context = namespace.context();
        Topic prices = namespace.prices(context);
        try (JMSConsumer consumer = context.createConsumer(prices, selector);
                JMSConsumer all = context.createConsumer(prices)) {
            publish(context, prices);
            // When one consumer has received the last message, the other has received all its messages.
            Expect.textsInAnyOrder(all, ALL.toArray(String[]::new));
            List<String> names = new ArrayList<>();
            for (Message message = consumer.receive(expected.length > names.size() ? Expect.TIMEOUT : 50);
                    message != null;
                    message = consumer.receive(expected.length > names.size() ? Expect.TIMEOUT : 50)) {
                names.add(message.getBody(String.class));
            }
            Collections.sort(names);
            Expect.isTrue(selector + ": " + names, names.equals(Stream.of(expected).sorted().toList()));
        } catch (AssertionError failure) {
            throw new AssertionError(selector + ": " + failure.getMessage(), failure);
        }
    }

    private static void publish(JMSContext context, Topic topic) {
        context.createProducer().setJMSType("red").setJMSCorrelationID("c-1")
                .setProperty("fruit", "apple").setProperty("price", 5).setProperty("ripe", true)
                .setProperty("code", "a_1").setProperty("weight", 1.5)
                .send(topic, "apple");
        context.createProducer().setJMSType("yellow").setJMSCorrelationID("c-2")
                .setProperty("fruit", "banana").setProperty("price", 10).setProperty("ripe", false)
                .setProperty("code", "it's")
                .send(topic, "banana");
        context.createProducer().setJMSType("red").setPriority(8)
                .setProperty("fruit", "cherry").setProperty("price", 15L).setProperty("ripe", true)
                .setProperty("code", "ab1").setProperty("JMSXGroupID", "basket")
                .send(topic, "cherry");
        context.createProducer().send(topic, "none");
    }
}

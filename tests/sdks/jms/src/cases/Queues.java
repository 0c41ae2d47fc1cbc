package cases;

import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** Sending to queues and receiving from them: JMS 2.0, chapters 4.1, 7 and 8. */
final class Queues {
    private Queues() {
    }

    static void order(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        var texts = new String[100];
        for (int index = 0; index < texts.length; index++) {
            texts[index] = "text " + index;
        }
        Namespace.send(context.createProducer(), namespace.orders(context), texts);
        Expect.texts(context.createConsumer(namespace.orders(context)), texts);
    }

    static void classic(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue orders = session.createQueue(namespace.name("orders"));
        try (MessageProducer producer = session.createProducer(orders)) {
            producer.send(session.createTextMessage("one"));
        }
        try (MessageConsumer consumer = session.createConsumer(orders)) {
            Expect.equal("one", Expect.message(consumer).getBody(String.class));
            Expect.nothing(consumer);
        }
    }

    static void anonymousProducer(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(null);
        for (String name : new String[] {"orders", "answers", "orders"}) {
            producer.send(session.createQueue(namespace.name(name)), session.createTextMessage("to " + name));
        }
        namespace.expectLeft("orders", "to orders", "to orders");
        namespace.expectLeft("answers", "to answers");
        Expect.fails(UnsupportedOperationException.class, () -> producer.send(session.createMessage()));
    }

    static void timesOut(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.nothing(consumer);
        Expect.isTrue("a message came", consumer.receiveNoWait() == null);
        namespace.send("orders", "late");
        Expect.texts(consumer, "late");
    }

    static void noWait(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two");
        JMSContext context = namespace.context();
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        // It asks the broker, so it finds available messages at once.
        Expect.equal("one", consumer.receiveNoWait().getBody(String.class));
        Expect.equal("two", consumer.receiveNoWait().getBody(String.class));
        Expect.isTrue("a third came", consumer.receiveNoWait() == null);
    }

    static void listener(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        var texts = new LinkedBlockingQueue<String>();
        context.createConsumer(namespace.orders(context)).setMessageListener(message -> texts.add(text(message)));
        namespace.send("orders", "one", "two", "three");
        for (String expected : new String[] {"one", "two", "three"}) {
            Expect.equal(expected, texts.poll(Expect.TIMEOUT, TimeUnit.MILLISECONDS));
        }
    }

    static void competing(Namespace namespace) throws Exception {
        Set<String> seen = new ConcurrentSkipListSet<>();
        for (int index = 0; index < 3; index++) {
            JMSContext context = namespace.context();
            context.createConsumer(namespace.orders(context)).setMessageListener(message -> seen.add(text(message)));
        }
        Set<String> sent = new TreeSet<>();
        for (int index = 0; index < 60; index++) {
            sent.add("text " + index);
        }
        namespace.send("orders", sent.toArray(String[]::new));
        Expect.eventually("each text once", () -> seen.equals(sent));
        Expect.nothing(consumerOfItsOwn(namespace));
    }

    private static JMSConsumer consumerOfItsOwn(Namespace namespace) {
        JMSContext context = namespace.context();
        return context.createConsumer(namespace.orders(context));
    }

    static void asynchronousSend(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        var done = new CompletableFuture<String>();
        context.createProducer().setAsync(new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                done.complete(text(message));
            }

            @Override
            public void onException(Message message, Exception failure) {
                done.completeExceptionally(failure);
            }
        }).send(namespace.orders(context), "sent beside");
        Expect.equal("sent beside", done.get(Expect.TIMEOUT, TimeUnit.MILLISECONDS));
        namespace.expectLeft("orders", "sent beside");
    }

    static void expires(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        context.createProducer().setTimeToLive(300).send(namespace.orders(context), "late");
        context.createProducer().setTimeToLive(600_000).send(namespace.orders(context), "in time");
        namespace.elapse(Duration.ofMillis(500));
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Message message = Expect.message(consumer);
        Expect.equal("in time", message.getBody(String.class));
        Expect.isTrue("the message has an expiry time", message.getJMSExpiration() > message.getJMSTimestamp());
        Expect.nothing(consumer);
    }

    static void priority(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        context.createProducer().setPriority(1).send(namespace.orders(context), "low");
        context.createProducer().setPriority(9).send(namespace.orders(context), "high");
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        if (namespace.differs(Difference.PRIORITY)) {
            Expect.texts(consumer, "low", "high");
        } else {
            Expect.texts(consumer, "high", "low");
        }
    }

    static void stopped(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        connection.stop();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(session.createQueue(namespace.name("orders")));
        namespace.send("orders", "one");
        Expect.nothing(consumer);
        connection.start();
        Expect.equal("one", Expect.message(consumer).getBody(String.class));
    }

    static void closedConsumer(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two");
        JMSContext context = namespace.closing(namespace.factory(java.util.Map.of("jms.prefetchPolicy.all", "0"))
                .createContext());
        try (JMSConsumer consumer = context.createConsumer(namespace.orders(context))) {
            Expect.texts(consumer, "one");
        }
        namespace.expectLeft("orders", "two");
    }

    static String text(Message message) {
        try {
            return message.getBody(String.class);
        } catch (JMSException problem) {
            throw new IllegalStateException(problem);
        }
    }
}

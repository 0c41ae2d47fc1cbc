package cases;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;

/** Transacted sessions: JMS 2.0, 6.2.7. */
final class Transacted {
    private Transacted() {
    }

    static void commitsSends(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        Namespace.send(context.createProducer(), namespace.orders(context), "one", "two");
        JMSContext other = namespace.context();
        JMSConsumer consumer = other.createConsumer(namespace.orders(other));
        Expect.nothing(consumer);
        context.commit();
        Expect.texts(consumer, "one", "two");
    }

    static void rollsBackSends(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        Namespace.send(context.createProducer(), namespace.orders(context), "gone");
        context.rollback();
        Namespace.send(context.createProducer(), namespace.orders(context), "kept");
        context.commit();
        namespace.expectLeft("orders", "kept");
    }

    static void commitsReceipts(Namespace namespace) throws Exception {
        namespace.send("orders", "one", "two");
        try (JMSContext context = namespace.factory().createContext(JMSContext.SESSION_TRANSACTED)) {
            Expect.texts(context.createConsumer(namespace.orders(context)), "one", "two");
            context.commit();
        }
        namespace.endLocks();
        namespace.expectLeft("orders");
    }

    /** At once, without waiting for a lock. */
    static void rollsBackForOthers(Namespace namespace) throws JMSException {
        namespace.send("orders", "one");
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, "one");
        context.stop();
        context.rollback();
        consumer.close();
        namespace.expectLeft("orders", "one");
    }

    static void movesAtOnce(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two");
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Queue answers = namespace.queue(context, "answers");
        JMSContext other = namespace.context();
        JMSConsumer answered = other.createConsumer(answers);
        for (String text : new String[] {"one", "two"}) {
            Message message = Expect.message(consumer);
            Expect.equal(text, message.getBody(String.class));
            context.createProducer().send(answers, "answer to " + text);
            Expect.nothing(answered);
            context.commit();
            Expect.texts(answered, "answer to " + text);
        }
    }

    static void endsWithItsConnection(Namespace namespace) throws Exception {
        namespace.send("orders", "one");
        try (JMSContext context = namespace.factory().createContext(JMSContext.SESSION_TRANSACTED)) {
            Expect.texts(context.createConsumer(namespace.orders(context)), "one");
            Namespace.send(context.createProducer(), namespace.queue(context, "answers"), "gone");
        }
        namespace.endLocks();
        namespace.expectLeft("orders", "one");
        namespace.expectLeft("answers");
    }

    static void classic(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Expect.equal(true, session.getTransacted());
        Queue orders = session.createQueue(namespace.name("orders"));
        session.createProducer(orders).send(session.createTextMessage("one"));
        session.commit();
        MessageConsumer consumer = session.createConsumer(orders);
        Expect.equal("one", Expect.message(consumer).getBody(String.class));
        session.commit();
        Expect.nothing(consumer);
    }

    static void notTransacted(Namespace namespace) {
        JMSContext context = namespace.context();
        Expect.fails(IllegalStateRuntimeException.class, context::commit);
        Expect.fails(IllegalStateRuntimeException.class, context::rollback);
    }

    /** As Spring's listener containers do: receive, throw and roll back, until the listener succeeds. */
    static void largeRollback(Namespace namespace) throws JMSException {
        var texts = new String[50];
        for (int index = 0; index < texts.length; index++) {
            texts[index] = "text " + index;
        }
        namespace.send("orders", texts);
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, texts);
        context.rollback();
        Expect.texts(consumer, texts);
        context.commit();
        namespace.expectLeft("orders");
    }
}

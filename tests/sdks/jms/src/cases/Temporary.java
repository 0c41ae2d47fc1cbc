package cases;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;

/** Temporary queues and topics: JMS 2.0, 6.2.2. */
final class Temporary {
    private Temporary() {
    }

    static void replies(Namespace namespace) throws Exception {
        JMSContext service = namespace.context();
        service.createConsumer(namespace.orders(service)).setMessageListener(question -> {
            try {
                Message answer = service.createTextMessage("answer to " + question.getBody(String.class));
                answer.setJMSCorrelationID(question.getJMSMessageID());
                service.createProducer().send(question.getJMSReplyTo(), answer);
            } catch (JMSException problem) {
                throw new IllegalStateException(problem);
            }
        });
        JMSContext context = namespace.context();
        TemporaryQueue answers = context.createTemporaryQueue();
        JMSConsumer consumer = context.createConsumer(answers);
        for (String text : new String[] {"one", "two"}) {
            Message question = context.createTextMessage(text);
            question.setJMSReplyTo(answers);
            context.createProducer().send(namespace.orders(context), question);
            Message answer = Expect.message(consumer);
            Expect.equal("answer to " + text, answer.getBody(String.class));
            Expect.equal(question.getJMSMessageID(), answer.getJMSCorrelationID());
        }
    }

    static void topic(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        TemporaryTopic topic = context.createTemporaryTopic();
        JMSConsumer first = context.createConsumer(topic);
        JMSConsumer second = context.createConsumer(topic);
        context.createProducer().send(topic, "one");
        Expect.texts(first, "one");
        Expect.texts(second, "one");
    }

    static void differ(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        TemporaryQueue first = context.createTemporaryQueue();
        TemporaryQueue second = context.createTemporaryQueue();
        Expect.isTrue("one name for two", !first.getQueueName().equals(second.getQueueName()));
        context.createProducer().send(first, "to the first");
        Expect.nothing(context.createConsumer(second));
        Expect.texts(context.createConsumer(first), "to the first");
    }

    static void ofAnotherConnection(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        TemporaryQueue queue = context.createTemporaryQueue();
        JMSContext other = namespace.context();
        other.createProducer().send(queue, "from another");
        Expect.texts(context.createConsumer(queue), "from another");
        Expect.fails(JMSRuntimeException.class, () -> other.createConsumer(queue));
    }

    static void deleted(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        TemporaryQueue queue = context.createTemporaryQueue();
        context.createProducer().send(queue, "gone");
        queue.delete();
        Expect.fails(JMSRuntimeException.class, () -> context.createProducer().send(queue, "to no one"));
    }

    static void deletedWhileInUse(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        TemporaryQueue queue = context.createTemporaryQueue();
        JMSConsumer consumer = context.createConsumer(queue);
        Expect.fails(JMSException.class, queue::delete);
        context.createProducer().send(queue, "still there");
        Expect.texts(consumer, "still there");
        consumer.close();
        queue.delete();
    }

    static void goesWithItsConnection(Namespace namespace) throws JMSException {
        TemporaryQueue queue;
        try (JMSContext context = namespace.factory().createContext()) {
            queue = context.createTemporaryQueue();
            context.createProducer().send(queue, "gone");
        }
        JMSContext other = namespace.context();
        Expect.fails(JMSRuntimeException.class, () -> other.createProducer().send(queue, "to no one"));
    }

    static void transacted(Namespace namespace) throws JMSException {
        Connection connection = namespace.connection();
        Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
        Destination queue = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(queue);
        session.createProducer(queue).send(session.createTextMessage("one"));
        session.commit();
        Expect.equal("one", Expect.message(consumer).getBody(String.class));
        session.rollback();
        Expect.equal("one", Expect.message(consumer).getBody(String.class));
        session.commit();
        Expect.nothing(consumer);
    }

    static void browsed(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        TemporaryQueue queue = context.createTemporaryQueue();
        context.createProducer().send(queue, "one");
        try (var browser = context.createBrowser(queue)) {
            var first = (Message) browser.getEnumeration().nextElement();
            Expect.equal("one", first.getBody(String.class));
        }
        Expect.texts(context.createConsumer(queue), "one");
    }
}

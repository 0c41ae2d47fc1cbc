package cases;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.TransactionRolledBackRuntimeException;

/** Redelivery after a rollback: JMS 2.0, 6.2.7 and 6.2.9. */
final class Rollbacks {
    private Rollbacks() {
    }

    static void comesAgain(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two");
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, "one", "two");
        context.rollback();
        Message message = Expect.message(consumer);
        Expect.equal("one", message.getBody(String.class));
        Expect.equal(true, message.getJMSRedelivered());
        Expect.equal(2, message.getIntProperty("JMSXDeliveryCount"));
        Expect.texts(consumer, "two");
        context.commit();
        Expect.nothing(consumer);
    }

    static void movesAndRollsBack(Namespace namespace) throws JMSException {
        namespace.send("orders", "one");
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Queue answers = namespace.queue(context, "answers");
        for (int attempt = 1; attempt <= 3; attempt++) {
            Message message = Expect.message(consumer);
            Expect.equal(attempt, message.getIntProperty("JMSXDeliveryCount"));
            context.createProducer().send(answers, "answer " + attempt);
            if (attempt < 3) {
                context.rollback();
            }
        }
        context.commit();
        namespace.expectLeft("answers", "answer 3");
        Expect.nothing(consumer);
    }

    /** Each consumer of a session gets its messages again at once, after every rollback. */
    static void twoQueues(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer orders = context.createConsumer(namespace.orders(context));
        JMSConsumer answers = context.createConsumer(namespace.queue(context, "answers"));
        for (int round = 0; round < 50; round++) {
            namespace.send("orders", "order " + round);
            namespace.send("answers", "answer " + round);
            for (int attempt = 1; attempt <= 3; attempt++) {
                expect(orders, "order " + round, attempt);
                expect(answers, "answer " + round, attempt);
                if (attempt < 3) {
                    context.rollback();
                } else if (namespace.differs(Difference.ONE_ENTITY)) {
                    Expect.fails(TransactionRolledBackRuntimeException.class, context::commit);
                    expect(orders, "order " + round, 4);
                    context.commit();
                    expect(answers, "answer " + round, 4);
                }
            }
            context.commit();
        }
    }

    private static void expect(JMSConsumer consumer, String text, int delivery) throws JMSException {
        Message message = Expect.message(consumer);
        Expect.equal(text, message.getBody(String.class));
        Expect.equal(delivery, message.getIntProperty("JMSXDeliveryCount"));
    }

    /** A poison message is removed from the queue after ten deliveries, which both brokers allow. */
    static void deadLetters(Namespace namespace) throws JMSException {
        namespace.send("orders", "poison");
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        for (int delivery = 1; delivery <= 10; delivery++) {
            Expect.equal(delivery, Expect.message(consumer).getIntProperty("JMSXDeliveryCount"));
            context.rollback();
        }
        Expect.nothing(consumer);
        if (namespace.differs(Difference.DEAD_LETTER_QUEUE)) {
            JMSContext other = namespace.context();
            JMSConsumer dead = other.createConsumer(other.createQueue("orders/$DeadLetterQueue"));
            Message message = Expect.message(dead);
            Expect.equal("poison", message.getBody(String.class));
            Expect.equal("MaxDeliveryCountExceeded", message.getStringProperty("DeadLetterReason"));
        }
    }
}

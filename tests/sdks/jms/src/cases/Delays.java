package cases;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import java.time.Duration;

/** Delivery delays: JMS 2.0, 7.9. */
final class Delays {
    private static final long DELAY = 2000;

    private Delays() {
    }

    static void overtakes(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        context.createProducer().setDeliveryDelay(DELAY).send(namespace.orders(context), "later");
        context.createProducer().send(namespace.orders(context), "now");
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, "now");
        namespace.elapse(Duration.ofMillis(DELAY));
        Expect.texts(consumer, "later");
    }

    static void transacted(Namespace namespace) throws Exception {
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        context.createProducer().setDeliveryDelay(DELAY).send(namespace.orders(context), "gone");
        context.rollback();
        context.createProducer().setDeliveryDelay(DELAY).send(namespace.orders(context), "later");
        context.commit();
        JMSContext other = namespace.context();
        JMSConsumer consumer = other.createConsumer(namespace.orders(other));
        namespace.elapse(Duration.ofMillis(DELAY));
        Expect.texts(consumer, "later");
        Expect.nothing(consumer);
    }

    static void published(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        JMSConsumer consumer = context.createConsumer(namespace.prices(context));
        context.createProducer().setDeliveryDelay(DELAY).send(namespace.prices(context), "later");
        Expect.nothing(consumer);
        namespace.elapse(Duration.ofMillis(DELAY));
        Expect.texts(consumer, "later");
    }

    /** Receivers read the delivery time that the sender got. */
    static void timeOfDelivery(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        JMSConsumer subscriber = context.createConsumer(namespace.prices(context));
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Message published = context.createTextMessage("published");
        Message sent = context.createTextMessage("sent");
        context.createProducer().setDeliveryDelay(DELAY).send(namespace.prices(context), published);
        context.createProducer().setDeliveryDelay(DELAY).send(namespace.orders(context), sent);
        Expect.equal(sent.getJMSTimestamp() + DELAY, sent.getJMSDeliveryTime());
        Expect.equal(published.getJMSDeliveryTime(), Expect.message(subscriber).getJMSDeliveryTime());
        Expect.equal(sent.getJMSDeliveryTime(), Expect.message(consumer).getJMSDeliveryTime());
    }

    /** Without a delay the delivery time is the time of sending. */
    static void none(Namespace namespace) throws Exception {
        Message message = namespace.roundTrip(context -> context.createTextMessage("now"));
        Expect.equal(message.getJMSTimestamp(), message.getJMSDeliveryTime());
    }
}

package cases;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.Map;

/** Features of Service Bus only: entities that clients create, their names, keys and dead-letter queues. */
final class Entities {
    private Entities() {
    }

    static void createsQueue(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        Queue fresh = context.createQueue("fresh");
        context.createProducer().send(fresh, "one");
        Expect.equal(1, namespace.count("fresh", "active"));
        Expect.texts(context.createConsumer(fresh), "one");
        // A consumer creates one, too.
        Expect.nothing(context.createConsumer(context.createQueue("other")));
        Expect.equal(0, namespace.count("other", "active"));
    }

    static void createsTopic(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        Topic fresh = context.createTopic("fresh");
        JMSConsumer consumer = context.createConsumer(fresh);
        context.createProducer().send(fresh, "one");
        Expect.texts(consumer, "one");
    }

    static void refusesNames(Namespace namespace) {
        JMSContext context = namespace.context();
        for (String name : new String[] {"a?b", "a#b", "x".repeat(300)}) {
            Expect.fails(JMSRuntimeException.class, () -> context.createProducer().send(context.createQueue(name), "x"));
        }
    }

    static void namesOfSubscriptions(Namespace namespace) throws Exception {
        JMSContext context = namespace.client("audit");
        Topic prices = namespace.prices(context);
        JMSConsumer durable = context.createDurableConsumer(prices, "one");
        context.createSharedDurableConsumer(prices, "two");
        JMSConsumer shared = context.createSharedConsumer(prices, "three");
        JMSContext other = namespace.context();
        other.createSharedDurableConsumer(prices, "four");
        other.createSharedConsumer(prices, "five");
        for (String name : new String[] {"one$audit$D", "two$audit$D", "three$audit$ND", "four$$D", "five$$ND"}) {
            Expect.equal(0, namespace.count("prices/Subscriptions/" + name, "active"));
        }
        durable.close();
        shared.close();
        Expect.equal(0, namespace.count("prices/Subscriptions/one$audit$D", "active"));
        Expect.eventually("the volatile one is gone", () -> isMissing(namespace, "prices/Subscriptions/three$audit$ND"));
        context.unsubscribe("one");
        Expect.eventually("the durable one is gone", () -> isMissing(namespace, "prices/Subscriptions/one$audit$D"));
    }

    private static boolean isMissing(Namespace namespace, String entity) {
        try {
            namespace.count(entity, "active");
            return false;
        } catch (AssertionError refused) {
            return refused.getMessage().contains(": 404 ");
        }
    }

    static void temporaryQueuesGo(Namespace namespace) throws Exception {
        String name;
        try (JMSContext context = namespace.factory().createContext()) {
            name = context.createTemporaryQueue().getQueueName();
            Expect.equal(0, namespace.count(name, "active"));
        }
        Expect.eventually("the temporary queue is gone", () -> isMissing(namespace, name));
    }

    static void temporaryQueuesComeBack(Namespace namespace) throws Exception {
        Cutter cutter = namespace.cutter();
        JMSContext context = namespace.closing(
                Clients.reconnecting(namespace.environment, cutter.port(), Map.of()).createContext());
        var queue = context.createTemporaryQueue();
        JMSConsumer consumer = context.createConsumer(queue);
        context.createProducer().send(queue, "before");
        Expect.texts(consumer, "before");
        cutter.cut();
        context.createProducer().send(queue, "after");
        while (!Expect.message(consumer).getBody(String.class).equals("after")) {
            // The previous message, whose acknowledgement may have been lost.
        }
    }

    static void expiredAreDeadLettered(Namespace namespace) throws Exception {
        JMSContext context = namespace.context();
        context.createProducer().setTimeToLive(1000).send(context.createQueue("expiring"), "late");
        namespace.elapse(Duration.ofSeconds(2));
        JMSConsumer dead = context.createConsumer(context.createQueue("expiring/$DeadLetterQueue"));
        Message message = Expect.message(dead);
        Expect.equal("late", message.getBody(String.class));
        Expect.equal("TTLExpiredException", message.getStringProperty("DeadLetterReason"));
    }

    static void locksEnd(Namespace namespace) throws Exception {
        namespace.send("orders", "one");
        JMSContext context = namespace.context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = context.createConsumer(namespace.orders(context));
        Expect.texts(consumer, "one");
        consumer.close();
        namespace.elapse(Duration.ofSeconds(61));
        JMSContext other = namespace.context();
        Message message = Expect.message(other.createConsumer(namespace.orders(other)));
        Expect.equal(2, message.getIntProperty("JMSXDeliveryCount"));
    }

    static void sessions(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        context.createProducer().setProperty("JMSXGroupID", "cart-1").send(context.createQueue("carts"), "a teapot");
        var sessions = namespace.control("GET", "sessions?entity=carts", Map.of());
        Expect.isTrue(sessions.toString(), sessions.toString().contains("cart-1"));
        Expect.fails(JMSRuntimeException.class,
                () -> context.createProducer().send(context.createQueue("carts"), "of no session"));
    }

    static void developmentString(Namespace namespace) throws JMSException {
        String key = Clients.part(namespace.environment.get("SERVICEBUS_CONNECTION_STRING"), "SharedAccessKey");
        String name = Clients.part(namespace.environment.get("SERVICEBUS_CONNECTION_STRING"), "SharedAccessKeyName");
        // How Microsoft's library interprets the rest of a connection string.
        for (String rest : new String[] {"", ";", ";UseDevelopmentEmulator=true;"}) {
            try (JMSContext context = namespace.factory().createContext(name, key + rest)) {
                context.createProducer().send(namespace.orders(context), "one");
            }
        }
        Expect.equal(3, namespace.count("orders", "active"));
    }

    static void wrongPassword(Namespace namespace) {
        Expect.fails(JMSSecurityRuntimeException.class, () -> {
            try (JMSContext context = namespace.factory().createContext("RootManageSharedAccessKey", "wrong")) {
                context.start();
            }
        });
    }

    static void token(Namespace namespace) throws JMSException {
        String header = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
        long expiry = System.currentTimeMillis() / 1000 + 3600;
        String claims = "{\"aud\":\"https://servicebus.azure.net\",\"exp\":" + expiry + ",\"oid\":\"a-user\"}";
        String token = encoded(header) + "." + encoded(claims) + "." + encoded("signature");
        try (JMSContext context = namespace.factory().createContext("$jwt", token)) {
            context.createProducer().send(namespace.orders(context), "one");
        }
        Expect.equal(1, namespace.count("orders", "active"));
    }

    private static String encoded(String text) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}

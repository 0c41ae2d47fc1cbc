package cases;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Destination;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The parameters of a case: a broker as JMS sees it, and the emulator's control API.
 *
 * <p>SERVICEBUS_JMS_CLIENT is {@code control} (Qpid JMS to Artemis), {@code qpid} (Qpid JMS that asks for JMS 2.0),
 * {@code plain} (Qpid JMS as it is) or {@code microsoft}. For the last three there are SERVICEBUS_CONNECTION_STRING,
 * SERVICEBUS_TRANSPORT ({@code plain} or {@code tls}), SERVICEBUS_TRUST_STORE and SERVICEBUS_CONTROL_URL, the namespace's
 * part of the control API.
 */
final class Namespace implements AutoCloseable {
    /** The duration of the locks of all entities here, and a second. */
    private static final Duration LOCKS_END = Duration.ofSeconds(61);
    private static final AtomicInteger CASES = new AtomicInteger();

    final Map<String, String> environment;
    private final boolean isControl;
    private final String prefix;
    /** Closed at the end of the case, in reverse order. */
    private final ConcurrentLinkedDeque<AutoCloseable> opened = new ConcurrentLinkedDeque<>();

    Namespace(Map<String, String> environment) {
        this.environment = environment;
        isControl = client().equals("control");
        // All cases share the one Artemis.
        prefix = isControl ? "case-" + CASES.incrementAndGet() + "-" : "";
    }

    /** The client of the cases. */
    String client() {
        return environment.get("SERVICEBUS_JMS_CLIENT");
    }

    /** Whether this is Service Bus, which does it otherwise. */
    boolean differs(Difference difference) {
        return !isControl && difference != null;
    }

    /** The name of an entity, or of a client, here. */
    String name(String name) {
        return prefix + name;
    }

    ConnectionFactory factory() {
        return Clients.factory(environment, Map.of());
    }

    /** The same with options of Qpid JMS. */
    ConnectionFactory factory(Map<String, String> options) {
        return Clients.factory(environment, options);
    }

    JMSContext context() {
        return context(JMSContext.AUTO_ACKNOWLEDGE);
    }

    JMSContext context(int mode) {
        return closing(factory().createContext(mode));
    }

    /** With a client identifier. */
    JMSContext client(String id) {
        JMSContext context = context();
        context.setClientID(name(id));
        return context;
    }

    /** Started. */
    Connection connection() throws JMSException {
        Connection connection = closing(factory().createConnection());
        connection.start();
        return connection;
    }

    /** A way to the broker that can be cut. */
    Cutter cutter() throws IOException {
        return closing(new Cutter(Clients.address(environment)));
    }

    /** Registers a resource to be closed at the end of the case. */
    <T extends AutoCloseable> T closing(T client) {
        opened.push(client);
        return client;
    }

    Queue orders(JMSContext context) {
        return queue(context, "orders");
    }

    Queue queue(JMSContext context, String name) {
        return context.createQueue(name(name));
    }

    Topic prices(JMSContext context) {
        return context.createTopic(name("prices"));
    }

    /** Sends texts by a connection that is closed then. */
    void send(String queue, String... texts) {
        try (JMSContext context = factory().createContext()) {
            send(context.createProducer(), queue(context, queue), texts);
        }
    }

    /** Publishes texts at the topic, by a connection that is closed then. */
    void publish(String... texts) {
        try (JMSContext context = factory().createContext()) {
            send(context.createProducer(), prices(context), texts);
        }
    }

    static void send(JMSProducer producer, Destination to, String... texts) {
        for (String text : texts) {
            producer.send(to, text);
        }
    }

    /** The texts that are left in the queue for another connection. */
    void expectLeft(String queue, String... texts) throws JMSException {
        try (JMSContext context = factory().createContext();
                var consumer = context.createConsumer(queue(context, queue))) {
            Expect.texts(consumer, texts);
            Expect.nothing(consumer);
        }
    }

    /** Sends a message to a separate queue, and returns it as received. */
    Message roundTrip(Maker maker) throws JMSException {
        JMSContext context = context();
        Message message = maker.make(context);
        context.createProducer().send(orders(context), message);
        return Expect.message(context.createConsumer(orders(context)));
    }

    /** Makes a message. */
    interface Maker {
        Message make(JMSContext context) throws JMSException;
    }

    /** Lets time pass: on the emulator's clock, or in real time. */
    void elapse(Duration duration) throws InterruptedException {
        if (isControl) {
            Thread.sleep(duration.toMillis());
        } else {
            control("POST", "clock/advance", Map.of("seconds", duration.toMillis() / 1e3));
        }
    }

    /** Lets the locks of ended links expire, if there are any. */
    void endLocks() throws InterruptedException {
        if (differs(Difference.LOCKS_OUTLIVE_LINKS)) {
            elapse(LOCKS_END);
        }
    }

    /** Sends a request to the emulator. */
    Map<String, Object> control(String method, String path, Map<String, ?> body) {
        URI uri = URI.create(environment.get("SERVICEBUS_CONTROL_URL") + "/" + path).normalize();
        try {
            var connection = (HttpURLConnection) uri.toURL().openConnection();
            // A pooled connection may be closed as idle just when the next request uses it.
            connection.setRequestProperty("connection", "close");
            connection.setReadTimeout((int) Expect.TIMEOUT);
            connection.setRequestMethod(method);
            if (!method.equals("GET")) {
                connection.setDoOutput(true);
                connection.getOutputStream().write(Json.write(body).getBytes(StandardCharsets.UTF_8));
            }
            int status = connection.getResponseCode();
            try (InputStream answer = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
                String text = answer == null ? "" : new String(answer.readAllBytes(), StandardCharsets.UTF_8);
                Expect.isTrue(path + ": " + status + " " + text, status < 400);
                return Json.parse(text);
            }
        } catch (IOException problem) {
            throw new IllegalStateException(path, problem);
        }
    }

    /** One of the emulator's counts of an entity. */
    int count(String entity, String name) {
        String path = "counts?entity=" + URLEncoder.encode(entity, StandardCharsets.UTF_8);
        return ((Number) control("GET", path, Map.of()).get(name)).intValue();
    }

    @Override
    public void close() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }
}

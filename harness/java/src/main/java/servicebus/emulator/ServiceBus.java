package servicebus.emulator;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A namespace of an emulator: what an SDK needs to reach it, its time, its faults, and what happened in it.
 *
 * <p>In JUnit a test has one as its argument, with {@link ServiceBusEmulator}. Elsewhere {@code try (var servicebus =
 * ServiceBus.start(topology))} does the same.
 */
public final class ServiceBus implements AutoCloseable {
    static final Duration WITHIN = Duration.ofSeconds(5);

    private final Emulator emulator;
    private final Control control;
    private final String name;
    private final String path;
    private final String connectionString;
    private final String tlsConnectionString;
    private final Faults faults;

    /** A namespace with what this configuration file declares, a text, or with one queue, {@code queue.1}, where it is null. */
    public ServiceBus(Emulator emulator, String configuration) {
        this.emulator = emulator;
        control = emulator.control;
        Map<String, Object> made = control.ask("POST", "namespaces", configuration);
        name = (String) made.get("name");
        path = "namespaces/" + name;
        connectionString = (String) made.get("connection_string");
        tlsConnectionString = (String) made.get("tls_connection_string");
        faults = new Faults(control, path);
    }

    /** A namespace in the emulator of this JVM. */
    public static ServiceBus start(Topology topology) {
        return new ServiceBus(Emulator.shared(), topology.toString());
    }

    /** The emulator that serves it. */
    public Emulator emulator() {
        return emulator;
    }

    /** Its name, as failures tell it. */
    public String name() {
        return name;
    }

    /** What clients of an SDK take, over plain TCP. */
    public String connectionString() {
        return connectionString;
    }

    /** The connection string for TLS, as in production. */
    public String tlsConnectionString() {
        return tlsConnectionString;
    }

    /** The trust store for clients over TLS: {@code -Djavax.net.ssl.trustStore}, which any password opens. */
    public Path trustStore() {
        return Path.of(emulator.text("trust_store"));
    }

    /** What a connection factory of Qpid JMS takes, over plain TCP. */
    public String jmsUrl() {
        return "amqp://" + emulator.text("amqp") + "?jms.username=" + part("SharedAccessKeyName") + "&jms.password="
                + part("SharedAccessKey");
    }

    /** Operations that are to go wrong. */
    public Faults faults() {
        return faults;
    }

    /** Waits until something is true of an entity: {@code expect("orders", "completed")}. */
    public void expect(String entity, String assertion) {
        expect(entity, assertion, Map.of());
    }

    /**
     * Waits until something is true of an entity: {@code expect("orders", "dead_lettered", Map.of("reason", "late"))}.
     *
     * <p>Assertions and fields are those of the control API; bytes are text in UTF-8, but for those of a session's state.
     * The failure has what was found instead, and the timeline.
     */
    public void expect(String entity, String assertion, Map<String, ?> fields) {
        Map<String, Object> asked = new HashMap<>(fields);
        asked.putAll(Map.of("kind", assertion, "entity", entity));
        Map<String, Object> answer = ask("POST", "assertions", asked);
        if (!Boolean.TRUE.equals(answer.get("holds"))) {
            throw new AssertionError(answer.get("failure"));
        }
    }

    /** A text that has this one in it, for the fields of {@link #expect}. */
    public static Map<String, String> contains(String part) {
        return Map.of("contains", part);
    }

    /** What the clock of the namespace shows. */
    public Instant now() {
        return Instant.parse((String) ask("GET", "clock", null).get("now"));
    }

    /** Moves the clock; all that falls due on the way has happened when this returns. */
    public void advance(Duration duration) {
        ask("POST", "clock/advance", Map.of("seconds", duration));
    }

    /** Stops the clock. */
    public void freeze() {
        ask("POST", "clock/freeze", null);
    }

    /** Lets a stopped clock run on. */
    public void resume() {
        ask("POST", "clock/resume", null);
    }

    /** From now on the clock steps to the next deadline whenever the namespace is idle. */
    public void stepByItself() {
        ask("POST", "clock/auto", null);
    }

    /** Whether nothing is left to deliver to a receiver, and no message is locked. */
    public boolean isIdle() {
        return busy(Duration.ZERO) == null;
    }

    /** Waits until the namespace is idle, up to five seconds. */
    public void waitIdle() {
        waitIdle(WITHIN);
    }

    /** Waits until the namespace is idle. */
    public void waitIdle(Duration within) {
        String busy = busy(within);
        if (busy != null) {
            throw new AssertionError(busy);
        }
    }

    /** Waits until a client receives from a queue or subscription, up to five seconds. */
    public void waitForReceiver(String entity) {
        waitForReceiver(entity, WITHIN);
    }

    /** Waits until a client receives from a queue or subscription. */
    public void waitForReceiver(String entity, Duration within) {
        expect(entity, "attached", Map.of("within", within));
    }

    /** How many messages it holds: {@code active}, {@code dead_letter}, {@code locked}, {@code scheduled}, others. */
    public Map<String, Long> counts(String entity) {
        return ask("GET", "counts", null, "entity", entity).entrySet().stream()
                .collect(Collectors.toMap(Map.Entry::getKey, count -> (Long) count.getValue()));
    }

    /** The sessions of a queue or subscription, as the control API tells them. */
    public List<Map<String, Object>> sessions(String entity) {
        return Control.cast(ask("GET", "sessions", null, "entity", entity).get("sessions"));
    }

    /** Ends the lock of a session as if its time had run out. */
    public void loseSessionLock(String entity, String session) {
        ask("POST", "sessions/lose", Map.of("entity", entity, "session", session));
    }

    /** What happened in the namespace. */
    public Timeline timeline() {
        return timeline(null, null);
    }

    /** What happened in an entity, or anywhere (null), to one message, or to all (null). */
    public Timeline timeline(String entity, String messageId) {
        String[] query = {"entity", entity, "message_id", messageId, "lines", "true"};
        return new Timeline(Control.cast(ask("GET", "timeline", null, query).get("events")));
    }

    /**
     * What each rule of a subscription says of a message that is not sent: {@code matched}, {@code reason}.
     *
     * @param properties application properties of the message
     * @param system properties of the broker, such as {@code Map.of("Label", "order")}
     */
    public Map<String, Map<String, Object>> explain(
            String subscription, Map<String, ?> properties, Map<String, ?> system) {
        Object message = List.of(Map.of("Body", "", "UserProperties", properties, "BrokerProperties", system));
        List<Map<String, Object>> rules =
                Control.cast(ask("POST", "explain", message, "subscription", subscription).get("rules"));
        return rules.stream().collect(Collectors.toMap(rule -> (String) rule.get("rule"), rule -> rule));
    }

    /** Removes all messages, sessions and the record. */
    public void reset() {
        ask("POST", "reset", null);
    }

    /** Ends the namespace, and fails where a fault has not fired, or the emulator failed inside. */
    @Override
    public void close() {
        String problem = end(true);
        if (problem != null) {
            throw new AssertionError(problem);
        }
    }

    /** Ends the namespace: why a test that has passed fails nevertheless, or null; what happened in one that has failed. */
    String end(boolean passed) {
        return (String) ask("POST", "end", Map.of("passed", passed)).get("report");
    }

    /** What keeps the namespace from being idle after this time, or null. */
    private String busy(Duration within) {
        return (String) ask("POST", "settled", Map.of("within", within, "refuse", false)).get("failure");
    }

    private Map<String, Object> ask(String method, String what, Object body, String... query) {
        return control.ask(method, path + "/" + what, body, query);
    }

    private String part(String key) {
        int from = connectionString.indexOf(key + "=") + key.length() + 1;
        return connectionString.substring(from, connectionString.indexOf(';', from));
    }
}

package servicebus.emulator;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A namespace of an emulator: its connection strings, clock, faults and timeline.
 *
 * <p>In JUnit a test has one as its argument, with {@link ServiceBusEmulator}. Elsewhere {@code try (var servicebus =
 * ServiceBus.start(topology))} does the same.
 */
public final class ServiceBus implements AutoCloseable {
    static final Duration DEFAULT_TIMEOUT = Duration.ofSeconds(5);
    private static final Pattern KEY = Pattern.compile(".*;SharedAccessKeyName=(.*?);SharedAccessKey=(.*?);.*");

    private final Emulator emulator;
    private final Map<String, Object> created;
    private final Faults faults = new Faults(this);
    /** Whether a dynamic test with this namespace has failed, of which JUnit does not inform the end of its factory. */
    volatile boolean dynamicTestFailed;
    /** Whether the test had passed when the namespace ended; null before. */
    private Boolean endedPassed;
    private String report;

    /** Creates a namespace from the text of a configuration file; with null, it has one queue, {@code queue.1}. */
    public ServiceBus(Emulator emulator, String configuration) {
        this.emulator = emulator;
        created = emulator.ask("POST", "namespaces", configuration);
    }

    /** Creates a namespace in the emulator of this JVM. */
    public static ServiceBus start(Topology topology) {
        return new ServiceBus(Emulator.shared(), topology.toString());
    }

    /** The emulator of the namespace. */
    public Emulator emulator() {
        return emulator;
    }

    /** The name of the namespace, as in failures. */
    public String name() {
        return (String) created.get("name");
    }

    /** The connection string for clients over plain TCP. */
    public String connectionString() {
        return (String) created.get("connection_string");
    }

    /** The connection string for TLS, as in production. */
    public String tlsConnectionString() {
        return (String) created.get("tls_connection_string");
    }

    /** The trust store for clients over TLS, for {@code -Djavax.net.ssl.trustStore}; any password opens it. */
    public Path trustStore() {
        Object file = emulator.ready().get("trust_store");
        if (file == null) {
            throw new EmulatorException(
                    "the emulator has no directory for its certificate authority: pass `--tls-directory DIR`");
        }
        return Path.of((String) file);
    }

    /** The URI for a connection factory of Qpid JMS, over plain TCP. */
    public String jmsUrl() {
        String url = "amqp://" + emulator.ready().get("amqp");
        return KEY.matcher(connectionString()).replaceFirst(key ->
                url + "?jms.username=" + encoded(key.group(1)) + "&jms.password=" + encoded(key.group(2)));
    }

    /** The faults of the namespace. */
    public Faults faults() {
        return faults;
    }

    /** Waits until an assertion holds: {@code expect("orders", "completed")}. */
    public void expect(String entity, String assertion) {
        expect(entity, assertion, Map.of());
    }

    /**
     * Waits until an assertion holds: {@code expect("orders", "dead_lettered", Map.of("reason", "late"))}.
     *
     * <p>Assertions and fields are those of the control API; bytes are decoded as UTF-8, except a session's state. A
     * failure shows what was found instead, and the timeline.
     */
    public void expect(String entity, String assertion, Map<String, ?> fields) {
        Map<String, Object> request = new HashMap<>(fields);
        request.putAll(Map.of("kind", assertion, "entity", entity));
        Map<String, Object> answer = ask("POST", "assertions", request);
        if (!Boolean.TRUE.equals(answer.get("holds"))) {
            throw new AssertionError(answer.get("failure"));
        }
    }

    /** Matches a text that contains this part, for the fields of {@link #expect}. */
    public static Map<String, String> contains(String part) {
        return Map.of("contains", part);
    }

    /** The time of the namespace's clock. */
    public Instant now() {
        return Instant.parse((String) ask("GET", "clock", null).get("now"));
    }

    /** Advances the clock, and returns when everything that is due by then has been processed. */
    public void advance(Duration duration) {
        ask("POST", "clock/advance", Map.of("seconds", duration));
    }

    /** Stops the clock. */
    public void freeze() {
        ask("POST", "clock/freeze", null);
    }

    /** Restarts a stopped clock. */
    public void resume() {
        ask("POST", "clock/resume", null);
    }

    /** Makes the clock step to the next deadline whenever the namespace is idle. */
    public void stepByItself() {
        ask("POST", "clock/auto", null);
    }

    /** Keeps a clock that steps by itself from stepping while {@code work} runs, for at most ten minutes. */
    public void holdClock(Runnable work) {
        Object hold = ask("POST", "clock/hold", Map.of("seconds", 600)).get("id");
        try {
            work.run();
        } finally {
            ask("DELETE", "clock/hold/" + hold, null);
        }
    }

    /** Whether the namespace is idle: no message is locked, or can be delivered to a receiver. */
    public boolean isIdle() {
        return busy(Duration.ZERO) == null;
    }

    /** Waits until the namespace is idle, up to five seconds. */
    public void waitIdle() {
        waitIdle(DEFAULT_TIMEOUT);
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
        waitForReceiver(entity, DEFAULT_TIMEOUT);
    }

    /** Waits until a client receives from a queue or subscription. */
    public void waitForReceiver(String entity, Duration within) {
        expect(entity, "attached", Map.of("within", within));
    }

    /** How many messages it holds: {@code active}, {@code dead_letter}, {@code locked}, {@code scheduled}, others. */
    public Map<String, Long> counts(String entity) {
        return Json.cast(ask("GET", "counts", null, "entity", Objects.requireNonNull(entity, "entity is null")));
    }

    /** The sessions of a queue or subscription, as the control API tells them. */
    public List<Map<String, Object>> sessions(String entity) {
        Map<String, Object> answer = ask("GET", "sessions", null, "entity", Objects.requireNonNull(entity, "entity is null"));
        return Json.cast(answer.get("sessions"));
    }

    /** Ends the lock of a session as if its time had run out. */
    public void loseSessionLock(String entity, String session) {
        ask("POST", "sessions/lose", Map.of("entity", entity, "session", session));
    }

    /** The recorded events of the namespace. */
    public Timeline timeline() {
        return timeline(null, null);
    }

    /** The recorded events of an entity, or of all (null), and of a message, or of all (null). */
    public Timeline timeline(String entity, String messageId) {
        String[] query = {"entity", entity, "message_id", messageId, "lines", "true"};
        return new Timeline(Json.cast(ask("GET", "timeline", null, query).get("events")));
    }

    /**
     * How each rule of a subscription evaluates a message, without sending it: {@code matched}, {@code reason}.
     *
     * @param properties application properties of the message, or null
     * @param system broker properties, such as {@code Map.of("Label", "order")}, or null
     */
    public Map<String, Map<String, Object>> explain(
            String subscription, Map<String, ?> properties, Map<String, ?> system) {
        Object message = List.of(Map.of(
                "Body", "",
                "UserProperties", Objects.requireNonNullElse(properties, Map.of()),
                "BrokerProperties", Objects.requireNonNullElse(system, Map.of())));
        List<Map<String, Object>> rules =
                Json.cast(ask("POST", "explain", message, "subscription", subscription).get("rules"));
        return rules.stream().collect(Collectors.toMap(rule -> (String) rule.get("rule"), rule -> rule));
    }

    /** Removes all messages, sessions and recorded events. */
    public void reset() {
        ask("POST", "reset", null);
    }

    /** Ends the namespace, and fails if a fault has not fired, or after an internal error of the emulator. */
    @Override
    public void close() {
        String problem = end(true);
        if (problem != null) {
            throw new AssertionError(problem);
        }
    }

    /** The timeline for the report of a failure, or null if the namespace has ended as that of a passed test. */
    synchronized String timelineReport() {
        if (endedPassed != null) {
            return end(false);
        }
        try {
            return "timeline of " + name() + "\n" + uninterrupted(this::timeline);
        } catch (EmulatorException problem) {
            return problem.getMessage();
        }
    }

    /**
     * Ends the namespace if it has not ended; returns the problem that fails a passed test, or the timeline of a failed one,
     * or null. A test that fails after {@link #close} gets nothing more: {@link #close} has thrown the problem.
     */
    synchronized String end(boolean passed) {
        if (endedPassed == null) {
            report = (String) uninterrupted(() -> ask("POST", "end", Map.of("passed", passed))).get("report");
            endedPassed = passed;
        }
        return passed == endedPassed ? report : null;
    }

    private static <T> T uninterrupted(Supplier<T> request) {
        // The code under test may have left the flag, which would make the request fail.
        boolean isInterrupted = Thread.interrupted();
        try {
            return request.get();
        } finally {
            if (isInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Waits until the namespace is idle; returns the reason if it is not within this time, or null. */
    private String busy(Duration within) {
        return (String) ask("POST", "settled", Map.of("within", within, "refuse", false)).get("failure");
    }

    /** Sends a request to the control API; the path is relative to that of the namespace. */
    Map<String, Object> ask(String method, String path, Object body, String... query) {
        return emulator.ask(method, "namespaces/" + name() + "/" + path, body, query);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }
}

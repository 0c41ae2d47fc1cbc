package servicebus.emulator;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Topologies: the entities and settings of a namespace.
 *
 * <p>Properties have the names of the official emulator's configuration file, such as {@code Map.of("MaxDeliveryCount",
 * 3, "LockDuration", Duration.ofSeconds(30))}. The emulator validates them.
 */
public final class Topology {
    private final List<Object> queues = new ArrayList<>();
    private final List<Object> topics = new ArrayList<>();
    private final Map<String, Object> declared = new LinkedHashMap<>(Map.of("queues", queues, "topics", topics));

    /** Queues with default properties. */
    public Topology queues(String... names) {
        List.of(names).forEach(name -> queue(name, Map.of()));
        return this;
    }

    /** A queue with these properties. */
    public Topology queue(String name, Map<String, ?> properties) {
        queues.add(with(properties, Map.of("name", name)));
        return this;
    }

    /** A topic with subscriptions, each from {@link #subscription}. */
    public Topology topic(String name, Map<String, ?> properties, Map<?, ?>... subscriptions) {
        topics.add(with(properties, Map.of("name", name, "subscriptions", subscriptions)));
        return this;
    }

    /** The block {@code Emulator} of the namespace, such as {@code Map.of("Tier", "premium")}. */
    public Topology settings(Map<String, ?> settings) {
        declared.put("settings", settings);
        return this;
    }

    /** A subscription with rules from {@link #sql} or {@link #correlation}; without rules it receives all messages. */
    public static Map<?, ?> subscription(String name, Map<String, ?> properties, Map<?, ?>... rules) {
        return with(properties, Map.of("name", name, "rules", rules));
    }

    /** A rule: {@code sql("high", "price > 10")}. */
    public static Map<?, ?> sql(String name, String expression) {
        return Map.of("name", name, "sql", expression);
    }

    /** A rule: {@code correlation("orders", Map.of("Label", "order"))}. */
    public static Map<?, ?> correlation(String name, Map<String, ?> filter) {
        return Map.of("name", name, "correlation", filter);
    }

    private static Map<String, Object> with(Map<String, ?> properties, Map<String, ?> others) {
        Map<String, Object> entity = new LinkedHashMap<>(properties);
        entity.putAll(others);
        return entity;
    }

    /** The topology as JSON for the control API; without queues and topics, it has one queue, {@code queue.1}. */
    @Override
    public String toString() {
        Map<String, Object> whole = new LinkedHashMap<>(declared);
        if (queues.isEmpty() && topics.isEmpty()) {
            whole.put("queues", List.of("queue.1"));
        }
        return Json.write(whole);
    }
}

package servicebus.emulator;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a namespace holds, in the format of the official emulator's configuration file.
 *
 * <p>Properties have the names of that format, such as {@code Map.of("MaxDeliveryCount", 3, "LockDuration",
 * Duration.ofSeconds(30))}. The emulator checks all of it, and names what is wrong.
 */
public final class Topology {
    private final List<Object> queues = new ArrayList<>();
    private final List<Object> topics = new ArrayList<>();
    private final Map<String, Object> namespace =
            new LinkedHashMap<>(Map.of("Name", "tests", "Queues", queues, "Topics", topics));

    /** Queues that have their defaults. */
    public Topology queues(String... names) {
        for (String name : names) {
            queue(name, Map.of());
        }
        return this;
    }

    /** A queue with these properties. */
    public Topology queue(String name, Map<String, ?> properties) {
        queues.add(Map.of("Name", name, "Properties", properties));
        return this;
    }

    /** A topic with subscriptions, each made by {@link #subscription}. */
    public Topology topic(String name, Map<String, ?> properties, Map<?, ?>... subscriptions) {
        topics.add(Map.of("Name", name, "Properties", properties, "Subscriptions", List.of(subscriptions)));
        return this;
    }

    /** The block {@code Emulator} of the namespace, such as {@code Map.of("Tier", "premium")}. */
    public Topology settings(Map<String, ?> settings) {
        namespace.put("Emulator", settings);
        return this;
    }

    /** A subscription with rules, made by {@link #sql} or {@link #correlation}; without any it selects all messages. */
    public static Map<?, ?> subscription(String name, Map<String, ?> properties, Map<?, ?>... rules) {
        return Map.of("Name", name, "Properties", properties, "Rules", List.of(rules));
    }

    /** A rule: {@code sql("high", "price > 10")}. */
    public static Map<?, ?> sql(String name, String expression) {
        return rule(name, "Sql", Map.of("SqlExpression", expression));
    }

    /** A rule: {@code correlation("orders", Map.of("Label", "order"))}. */
    public static Map<?, ?> correlation(String name, Map<String, ?> filter) {
        return rule(name, "Correlation", filter);
    }

    private static Map<?, ?> rule(String name, String kind, Map<String, ?> filter) {
        return Map.of("Name", name, "Properties", Map.of("FilterType", kind, kind + "Filter", filter));
    }

    /** The configuration file. */
    @Override
    public String toString() {
        return Json.write(Map.of("UserConfig", Map.of("Namespaces", List.of(namespace))));
    }
}

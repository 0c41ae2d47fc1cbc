package servicebus.emulator;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What happened in a namespace, oldest first; as text it has a line for each event. */
public final class Timeline {
    private static final int SHOWN = 200;

    private final List<Map<String, Object>> events;

    Timeline(List<Map<String, Object>> events) {
        this.events = events;
    }

    /** The events, as the control API tells them. */
    public List<Map<String, Object>> events() {
        return events;
    }

    /** The kind of each event: {@code sent}, {@code delivered}, {@code completed}. */
    public List<String> kinds() {
        return events.stream().map(event -> (String) event.get("kind")).collect(Collectors.toList());
    }

    @Override
    public String toString() {
        int older = Math.max(0, events.size() - SHOWN);
        Stream<String> first = older > 0 ? Stream.of("  … " + older + " older events") : Stream.empty();
        Stream<String> lines = Stream.concat(first, events.stream().skip(older).map(Timeline::line));
        String text = lines.collect(Collectors.joining("\n"));
        return text.isEmpty() ? "  nothing happened" : text;
    }

    /** When, what, to which message, where, by which client, and why. */
    private static String line(Map<String, Object> event) {
        boolean isAdvance = "clock-advanced".equals(event.get("kind"));
        double offset = ((Number) event.get("offset")).doubleValue();
        String when = isAdvance ? "" : String.format(Locale.ROOT, "+%.3f s", offset);
        Object message = event.get("message_id") == null ? event.get("session") : event.get("message_id");
        String told = Stream.of(message, after("in ", event.get("entity")), after("by ", event.get("client")),
                        event.get("reason"), event.get("detail"))
                .filter(part -> part != null && !part.equals(""))
                .map(Object::toString)
                .collect(Collectors.joining(", "));
        return String.format("  %-12s%-16s%s", when, event.get("kind"), told).stripTrailing();
    }

    private static String after(String word, Object name) {
        return name == null || name.equals("") ? null : word + name;
    }
}

package servicebus.emulator;

import java.util.List;
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
        Stream<String> lines = events.stream().skip(older).map(event -> (String) event.get("line"));
        String text = Stream.concat(first, lines).collect(Collectors.joining("\n"));
        return text.isEmpty() ? "  nothing happened" : text;
    }
}

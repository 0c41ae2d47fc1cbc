package servicebus.emulator;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** The events of a namespace, oldest first; as text it has a line for each event. */
public final class Timeline {
    private final List<Map<String, Object>> events;

    Timeline(List<Map<String, Object>> events) {
        this.events = events;
    }

    /** The events, as in the control API. */
    public List<Map<String, Object>> events() {
        return events;
    }

    /** The kind of each event: {@code sent}, {@code delivered}, {@code completed}. */
    public List<String> kinds() {
        return events.stream().map(event -> (String) event.get("kind")).collect(Collectors.toList());
    }

    @Override
    public String toString() {
        String text = events.stream().map(event -> (String) event.get("line")).collect(Collectors.joining("\n"));
        return text.isEmpty() ? "  nothing happened" : text;
    }
}

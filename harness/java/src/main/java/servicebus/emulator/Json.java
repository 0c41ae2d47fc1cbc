package servicebus.emulator;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * JSON as maps, lists, strings, booleans, {@code Long}, {@code Double} and null. Durations are written in seconds, bytes
 * as in the control API, and other objects as their text.
 */
final class Json {
    /** Commas and colons are skipped, because the order of the other tokens is sufficient. */
    private static final Pattern TOKEN =
            Pattern.compile("[{}\\[\\]]|\"(?:[^\"\\\\]++|\\\\.)*+\"|[^\\s{}\\[\\],:\"]++", Pattern.DOTALL);
    private static final Pattern SPECIAL = Pattern.compile("[\\x00-\\x1f\"\\\\]");
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");

    /** Parses a response of the emulator. */
    static <T> T parse(String text) {
        Iterator<String> tokens = TOKEN.matcher(text).results().map(MatchResult::group).iterator();
        return cast(value(tokens.next(), tokens));
    }

    /** Casts a parsed value to its expected type. */
    @SuppressWarnings("unchecked")
    static <T> T cast(Object value) {
        return (T) value;
    }

    static String write(Object value) {
        if (value instanceof Map) {
            StringJoiner members = new StringJoiner(",", "{", "}");
            ((Map<?, ?>) value).forEach((name, member) -> members.add(quoted(name.toString()) + ":" + write(member)));
            return members.toString();
        }
        if (value instanceof Iterable) {
            StringJoiner items = new StringJoiner(",", "[", "]");
            ((Iterable<?>) value).forEach(item -> items.add(write(item)));
            return items.toString();
        }
        if (value instanceof Object[]) {
            return write(Arrays.asList((Object[]) value));
        }
        if (value instanceof byte[]) {
            return write(Map.of("$bytes", Base64.getEncoder().encodeToString((byte[]) value)));
        }
        if (value instanceof Duration) {
            Duration duration = (Duration) value;
            return write(duration.getSeconds() + duration.getNano() / 1e9);
        }
        if (value != null && value.getClass().isArray()) {
            String type = value.getClass().getSimpleName();
            throw new EmulatorException("a " + type + " cannot be converted to JSON: use a text or a list");
        }
        boolean isPlain = value == null || value instanceof Number || value instanceof Boolean;
        return isPlain ? String.valueOf(value) : quoted(value.toString());
    }

    private static String quoted(String text) {
        return '"' + SPECIAL.matcher(text).replaceAll(Json::escaped) + '"';
    }

    private static String escaped(MatchResult special) {
        return Matcher.quoteReplacement(String.format("\\u%04x", (int) special.group().charAt(0)));
    }

    /** The value that begins with this token; the others follow. */
    private static Object value(String token, Iterator<String> others) {
        switch (token) {
            case "{":
                Map<String, Object> members = new LinkedHashMap<>();
                for (String name = others.next(); !name.equals("}"); name = others.next()) {
                    members.put(string(name), value(others.next(), others));
                }
                return members;
            case "[":
                List<Object> items = new ArrayList<>();
                for (String item = others.next(); !item.equals("]"); item = others.next()) {
                    items.add(value(item, others));
                }
                return items;
            case "null":
                return null;
            case "true":
            case "false":
                return Boolean.valueOf(token);
            default:
                if (token.startsWith("\"")) {
                    return string(token);
                }
                return token.matches("-?\\d+") ? (Object) Long.valueOf(token) : Double.valueOf(token);
        }
    }

    private static String string(String token) {
        return ESCAPE.matcher(token.substring(1, token.length() - 1)).replaceAll(Json::unescaped);
    }

    private static String unescaped(MatchResult escape) {
        if (escape.group(1) != null) {
            return Matcher.quoteReplacement("" + (char) Integer.parseInt(escape.group(1), 16));
        }
        int index = "bfnrt".indexOf(escape.group(2));
        return Matcher.quoteReplacement(index < 0 ? escape.group(2) : "\b\f\n\r\t".substring(index, index + 1));
    }
}

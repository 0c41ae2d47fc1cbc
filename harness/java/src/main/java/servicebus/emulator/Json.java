package servicebus.emulator;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Deque;
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
    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");

    private final Deque<String> tokens = new ArrayDeque<>();

    private Json() {
    }

    /** Parses a response of the emulator. */
    static Object parse(String text) {
        Json json = new Json();
        Matcher token = TOKEN.matcher(text);
        while (token.find()) {
            json.tokens.add(token.group());
        }
        return json.value();
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
            return write(((Duration) value).toNanos() / 1e9);
        }
        if (value != null && value.getClass().isArray()) {
            String type = value.getClass().getSimpleName();
            throw new EmulatorException("a " + type + " cannot be converted to JSON: use a text or a list");
        }
        boolean isPlain = value == null || value instanceof Number || value instanceof Boolean;
        return isPlain ? String.valueOf(value) : quoted(value.toString());
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            quoted.append(c < ' ' ? String.format("\\u%04x", (int) c) : c == '"' || c == '\\' ? "\\" + c : c);
        }
        return quoted.append('"').toString();
    }

    private Object value() {
        String token = next();
        switch (token) {
            case "{":
                Map<String, Object> members = new LinkedHashMap<>();
                while (!skip("}")) {
                    members.put(string(next()), value());
                }
                return members;
            case "[":
                List<Object> items = new ArrayList<>();
                while (!skip("]")) {
                    items.add(value());
                }
                return items;
            case "null":
                return null;
            case "true":
            case "false":
                return Boolean.valueOf(token);
            default:
                return token.startsWith("\"") ? string(token) : number(token);
        }
    }

    private static Object number(String token) {
        return token.matches("-?\\d+") ? (Object) Long.valueOf(token) : Double.valueOf(token);
    }

    private static String string(String token) {
        if (token.length() < 2 || !token.startsWith("\"")) {
            throw new IllegalArgumentException("invalid JSON at: " + token);
        }
        return ESCAPE.matcher(token.substring(1, token.length() - 1)).replaceAll(Json::unescaped);
    }

    private static String unescaped(MatchResult escape) {
        if (escape.group(1) != null) {
            return Matcher.quoteReplacement("" + (char) Integer.parseInt(escape.group(1), 16));
        }
        int index = "bfnrt".indexOf(escape.group(2));
        return Matcher.quoteReplacement(index < 0 ? escape.group(2) : "\b\f\n\r\t".substring(index, index + 1));
    }

    private boolean skip(String token) {
        return token.equals(tokens.peek()) && tokens.remove() != null;
    }

    /** The next token; an empty one at the end. */
    private String next() {
        return tokens.isEmpty() ? "" : tokens.remove();
    }
}

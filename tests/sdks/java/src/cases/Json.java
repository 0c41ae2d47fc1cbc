package cases;

import com.azure.json.JsonProviders;
import com.azure.json.JsonReader;
import com.azure.json.JsonWriter;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.TreeMap;

/** JSON, by the library of the SDK. */
final class Json {
    private Json() {
    }

    /** Parses an object; an empty text is an empty object. */
    static Map<String, Object> parse(String text) {
        if (text.isEmpty()) {
            return Map.of();
        }
        try (JsonReader reader = JsonProviders.createReader(text)) {
            return reader.readMap(JsonReader::readUntyped);
        } catch (IOException problem) {
            throw new UncheckedIOException(text, problem);
        }
    }

    static String write(Map<String, ?> values) {
        var text = new StringWriter();
        try (JsonWriter writer = JsonProviders.createWriter(text)) {
            writer.writeUntyped(values);
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        }
        return text.toString();
    }

    /** Parses an object with only string values. */
    static Map<String, String> texts(Object object) {
        var texts = new TreeMap<String, String>();
        ((Map<?, ?>) object).forEach((name, value) -> texts.put((String) name, (String) value));
        return texts;
    }
}

package cases;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.TreeMap;

/** JSON, by the library of both of Microsoft's libraries. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {
    }

    /** Parses an object; an empty text is an empty object. */
    static Map<String, Object> parse(String text) {
        try {
            return text.isEmpty() ? Map.of() : MAPPER.readValue(text, new TypeReference<Map<String, Object>>() { });
        } catch (JsonProcessingException problem) {
            throw new IllegalArgumentException(text, problem);
        }
    }

    static String write(Map<String, ?> values) {
        try {
            return MAPPER.writeValueAsString(values);
        } catch (JsonProcessingException problem) {
            throw new IllegalArgumentException(problem);
        }
    }

    /** Parses an object with only string values. */
    static Map<String, String> texts(Object object) {
        var texts = new TreeMap<String, String>();
        ((Map<?, ?>) object).forEach((name, value) -> texts.put((String) name, (String) value));
        return texts;
    }
}

package cases;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.TreeMap;

/** JSON, by the library that both of Microsoft's bring. */
final class Json {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {
    }

    /** An object; an empty text is an empty one. */
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

    /** An object of which all values are texts. */
    static Map<String, String> texts(Object object) {
        var texts = new TreeMap<String, String>();
        ((Map<?, ?>) object).forEach((name, value) -> texts.put((String) name, (String) value));
        return texts;
    }
}

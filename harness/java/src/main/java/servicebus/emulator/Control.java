package servicebus.emulator;

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.StringJoiner;
import java.util.function.Supplier;

/** Requests to the control API of an emulator. */
final class Control {
    /** Longer than an assertion may wait. */
    private static final Duration TIMEOUT = Duration.ofMinutes(11);

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String address;
    private final Supplier<String> whyItEnded;

    Control(String address, Supplier<String> whyItEnded) {
        this.address = address;
        this.whyItEnded = whyItEnded;
    }

    /**
     * Sends a request and returns the response; an error is thrown.
     *
     * @param body a text that is sent unchanged, null, or a value to be encoded as JSON
     * @param query alternating names and values
     */
    Map<String, Object> ask(String method, String path, Object body, String... query) {
        StringJoiner parameters = new StringJoiner("&", "?", "").setEmptyValue("");
        for (int i = 0; i < query.length; i += 2) {
            if (query[i + 1] != null) {
                parameters.add(query[i] + "=" + URLEncoder.encode(query[i + 1], StandardCharsets.UTF_8));
            }
        }
        String target = "/$emulator/v1/" + path + parameters;
        String text = body == null ? "" : body instanceof String ? (String) body : Json.write(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + address + target))
                .timeout(TIMEOUT)
                .header("Content-Type", "application/json")
                .method(method, BodyPublishers.ofString(text))
                .build();
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            boolean isJson = response.headers().firstValue("Content-Type").orElse("").startsWith("application/json");
            String content = response.body();
            Map<String, Object> answer = isJson && !content.isEmpty() ? cast(Json.parse(content)) : Map.of();
            if (response.statusCode() >= 400) {
                Map<String, Object> error = cast(answer.get("error"));
                throw new EmulatorException(isJson ? (String) error.get("text")
                        : "the emulator responded with " + response.statusCode() + ": " + content);
            }
            return answer;
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            throw new EmulatorException("the test was interrupted while it waited for " + method + " " + target);
        } catch (IOException problem) {
            throw new EmulatorException(whyItEnded.get() + " (" + method + " " + target + ": " + problem + ")");
        }
    }

    /** Casts a value of JSON to its expected type. */
    @SuppressWarnings("unchecked")
    static <T> T cast(Object value) {
        return (T) value;
    }
}

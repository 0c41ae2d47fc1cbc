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
    /** Longer than any assertion may wait. */
    private static final Duration LONGEST = Duration.ofMinutes(11);

    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final String address;
    private final Supplier<String> whyItEnded;

    Control(String address, Supplier<String> whyItEnded) {
        this.address = address;
        this.whyItEnded = whyItEnded;
    }

    /**
     * Asks, and returns the answer; one that refuses is thrown as a sentence.
     *
     * @param body a text as it is, nothing, or what is made JSON
     * @param query names and values in turn
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
                .timeout(LONGEST)
                .header("Content-Type", "application/json")
                .method(method, BodyPublishers.ofString(text))
                .build();
        try {
            HttpResponse<String> response = client.send(request, BodyHandlers.ofString());
            boolean isJson = response.headers().firstValue("Content-Type").orElse("").startsWith("application/json");
            String said = response.body();
            Map<String, Object> answer = isJson && !said.isEmpty() ? cast(Json.parse(said)) : Map.of();
            if (response.statusCode() >= 400) {
                Map<String, Object> error = cast(answer.get("error"));
                throw new EmulatorException(isJson ? (String) error.get("text")
                        : "the emulator answered " + response.statusCode() + ": " + said);
            }
            return answer;
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            throw new EmulatorException("the test was interrupted while it waited for " + method + " " + target);
        } catch (IOException problem) {
            throw new EmulatorException(whyItEnded.get() + " (" + method + " " + target + ": " + problem + ")");
        }
    }

    /** A value of JSON as what it is known to be. */
    @SuppressWarnings("unchecked")
    static <T> T cast(Object value) {
        return (T) value;
    }
}

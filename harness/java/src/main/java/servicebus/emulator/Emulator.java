package servicebus.emulator;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.StringJoiner;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The process of an emulator. It ends when its standard input is closed, so it does not outlive this JVM. */
public final class Emulator implements AutoCloseable {
    private static final int START_SECONDS = 30;
    private static final int STOP_SECONDS = 10;
    /** Shorter than the 20 s after which the emulator closes a connection without requests. */
    private static final Duration CONNECTIONS_REUSED = Duration.ofSeconds(10);
    /** Longer than an assertion may wait. */
    private static final Duration RESPONSE_TIMEOUT = Duration.ofMinutes(11);
    private static final Pattern LOG_LINE = Pattern.compile("\\d{4}-\\d\\d-\\d\\dT\\S+ +(WARN|INFO|DEBUG|TRACE) ");
    private static final Map<List<String>, Supplier<Emulator>> SHARED = new ConcurrentHashMap<>();

    private HttpClient client;
    /** When the last request was sent, as {@link System#nanoTime}. */
    private long used;
    private final Process process;
    private final CompletableFuture<Void> errorsRead;
    private final Map<String, Object> ready;
    /** Why a start failed: the first line of standard error that is not of the log, with the indented ones after it. */
    private volatile String firstError;
    private volatile String lastError;
    private boolean isFirstErrorComplete;

    /** Starts an emulator on free ports, with further command-line options. */
    public Emulator(String... options) {
        Program program = Program.find();
        List<String> command = new ArrayList<>(List.of(program.path.toString(), "--for-tests"));
        command.addAll(List.of(options));
        try {
            process = new ProcessBuilder(command).start();
        } catch (IOException problem) {
            program.deleteExtracted();
            throw didNotStart(problem.getMessage() + program.hint());
        }
        errorsRead = CompletableFuture.runAsync(
                () -> lines(process.getErrorStream()).forEach(this::keep), Emulator::startDaemon);
        // Not in the common pool, whose threads the tests may occupy.
        String line = CompletableFuture.supplyAsync(
                        () -> lines(process.getInputStream()).findFirst().orElse(""), Emulator::startDaemon)
                .completeOnTimeout(null, START_SECONDS, TimeUnit.SECONDS)
                .join();
        program.deleteExtracted();
        if (line == null || !line.startsWith("{\"event\":\"ready\"")) {
            waitForErrors();
            process.destroyForcibly();
            String reason = line == null ? "it was not ready within " + START_SECONDS + " s"
                    : program.path + " is not the emulator's program";
            throw didNotStart(Objects.requireNonNullElse(firstError, reason));
        }
        ready = Json.parse(line);
        String version = Emulator.class.getPackage().getImplementationVersion();
        if (version != null && !version.equals(ready.get("version"))) {
            process.destroyForcibly();
            throw didNotStart(program.path + " is version " + ready.get("version") + ", but this artefact is version " + version);
        }
    }

    /** The emulator of this JVM with these options, started by the first call; a failed start is not repeated. */
    public static Emulator shared(String... options) {
        return SHARED.computeIfAbsent(List.of(options), same -> started(options)).get();
    }

    /** The members of its ready line, such as {@code pid}, {@code amqp} and {@code http}. */
    public Map<String, Object> ready() {
        return ready;
    }

    /** Ends the process. */
    @Override
    public void close() {
        try {
            process.getOutputStream().close();
        } catch (IOException ended) {
            return;
        }
        if (!endsWithin(STOP_SECONDS)) {
            process.destroyForcibly();
        }
    }

    /**
     * Sends a request to the control API and returns the response; an error is thrown.
     *
     * @param body a text that is sent unchanged, null, or a value to be encoded as JSON
     * @param query alternating names and values, which may be null
     */
    Map<String, Object> ask(String method, String path, Object body, String... query) {
        StringJoiner parameters = new StringJoiner("&", "?", "").setEmptyValue("");
        for (int i = 0; i < query.length; i += 2) {
            if (query[i + 1] != null) {
                parameters.add(query[i] + "=" + URLEncoder.encode(query[i + 1], StandardCharsets.UTF_8));
            }
        }
        String target = "/$emulator/v1/" + path + parameters;
        String content = body == null ? "" : body instanceof String ? (String) body : Json.write(body);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + ready.get("http") + target))
                .timeout(RESPONSE_TIMEOUT)
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(content))
                .build();
        try {
            return answer(client().send(request, HttpResponse.BodyHandlers.ofString()));
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            throw new EmulatorException("the test was interrupted while it waited for " + method + " " + target);
        } catch (IOException problem) {
            throw new EmulatorException(whyItEnded() + " (" + method + " " + target + ": " + problem + ")");
        }
    }

    /** One without old connections: a POST fails if the emulator closes the connection at that moment. */
    private synchronized HttpClient client() {
        long now = System.nanoTime();
        if (client == null || now - used > CONNECTIONS_REUSED.toNanos()) {
            client = HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1)
                    .proxy(HttpClient.Builder.NO_PROXY)
                    .build();
        }
        used = now;
        return client;
    }

    private static Map<String, Object> answer(HttpResponse<String> response) {
        String text = response.body();
        if (response.statusCode() < 400) {
            return text.isEmpty() ? Map.of() : Json.parse(text);
        }
        if (!response.headers().firstValue("Content-Type").orElse("").startsWith("application/json")) {
            throw new EmulatorException("the emulator responded with " + response.statusCode() + ": " + text);
        }
        Map<String, Map<String, String>> answer = Json.parse(text);
        throw new EmulatorException(answer.get("error").get("text"));
    }

    private static Supplier<Emulator> started(String[] options) {
        try {
            Emulator emulator = new Emulator(options);
            return () -> emulator;
        } catch (EmulatorException problem) {
            String message = problem.getMessage();
            return () -> {
                throw new EmulatorException(message);
            };
        }
    }

    private static EmulatorException didNotStart(String reason) {
        return new EmulatorException("the emulator did not start: " + reason
                + "; check its options (" + ServiceBusExtension.OPTIONS + ") and " + Program.VARIABLE);
    }

    /** Why the emulator does not respond. */
    private String whyItEnded() {
        if (!endsWithin(1)) {
            return "the emulator is running but does not respond: stop the test run, and start it again";
        }
        waitForErrors();
        int code = process.exitValue();
        String cause = code > 128 ? "was ended by signal " + (code - 128) : "exited with code " + code;
        String message = "the emulator " + cause + " during the test run: start the run again";
        return lastError == null ? message : message + "; " + lastError;
    }

    private boolean endsWithin(int seconds) {
        return process.onExit().completeOnTimeout(null, seconds, TimeUnit.SECONDS).join() != null;
    }

    private void keep(String line) {
        if (firstError == null && !LOG_LINE.matcher(line).lookingAt()) {
            firstError = line;
        } else if (firstError != null && !line.isBlank()) {
            isFirstErrorComplete |= !line.startsWith(" ");
            firstError += isFirstErrorComplete ? "" : " " + line.strip();
        }
        lastError = line;
    }

    /** Waits for the last lines of standard error, which cannot be read after the process was destroyed. */
    private void waitForErrors() {
        errorsRead.copy().completeOnTimeout(null, 1, TimeUnit.SECONDS).exceptionally(destroyed -> null).join();
    }

    private static void startDaemon(Runnable task) {
        Thread thread = new Thread(task, "output of the emulator");
        thread.setDaemon(true);
        thread.start();
    }

    private static Stream<String> lines(InputStream stream) {
        return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8)).lines();
    }
}

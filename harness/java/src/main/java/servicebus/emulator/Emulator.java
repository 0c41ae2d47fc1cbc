package servicebus.emulator;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** The process of an emulator. It ends when its standard input is closed, so it does not outlive this JVM. */
public final class Emulator implements AutoCloseable {
    private static final int START_SECONDS = 30;
    private static final int STOP_SECONDS = 10;
    private static final int KEPT_LINES = 20;
    private static final Map<List<String>, Emulator> SHARED = new ConcurrentHashMap<>();

    private final Deque<String> lastLines = new ConcurrentLinkedDeque<>();
    private final Process process;
    private final CompletableFuture<Void> errorsRead = new CompletableFuture<>();
    private final Map<String, Object> ready;
    final Control control;

    /** Starts an emulator on free ports, with further command-line options. */
    public Emulator(String... options) {
        Program program = Program.find();
        List<String> command = new ArrayList<>(List.of(program.path, "--for-tests"));
        command.addAll(List.of(options));
        try {
            process = new ProcessBuilder(command).start();
        } catch (IOException problem) {
            throw didNotStart(problem.getMessage());
        }
        Thread reader = new Thread(this::readErrors, "standard error of the emulator");
        reader.setDaemon(true);
        reader.start();
        ready = waitUntilReady(program);
        program.deleteExtracted();
        control = new Control(text("http"), this::whyItEnded);
    }

    /** The emulator of this JVM with these options, started by the first call. */
    public static Emulator shared(String... options) {
        return SHARED.computeIfAbsent(List.of(options), same -> new Emulator(options));
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

    String text(String member) {
        return (String) ready.get(member);
    }

    private Map<String, Object> waitUntilReady(Program program) {
        Stream<String> output = lines(process.getInputStream());
        CompletableFuture<String> line = CompletableFuture.supplyAsync(() -> output.findFirst().orElse(""));
        String reason = program.path + " is not the emulator's program";
        try {
            String readyLine = line.orTimeout(START_SECONDS, TimeUnit.SECONDS).join();
            if (readyLine.startsWith("{\"event\":\"ready\"")) {
                return Control.cast(Json.parse(readyLine));
            }
        } catch (CompletionException late) {
            reason = "it was not ready within " + START_SECONDS + " s";
        }
        waitForErrors();
        process.destroyForcibly();
        program.deleteExtracted();
        throw didNotStart(lastLines.isEmpty() ? reason : lastLines.getFirst());
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
        String line = lastLines.isEmpty() ? "" : "; " + lastLines.getLast();
        return "the emulator " + cause + " during the test run: start the run again" + line;
    }

    private void readErrors() {
        try {
            lines(process.getErrorStream()).forEach(line -> {
                lastLines.addLast(line);
                if (lastLines.size() > KEPT_LINES) {
                    lastLines.removeFirst();
                }
            });
        } catch (UncheckedIOException closed) {
            // The process was destroyed.
        }
        errorsRead.complete(null);
    }

    private void waitForErrors() {
        errorsRead.copy().completeOnTimeout(null, 1, TimeUnit.SECONDS).join();
    }

    private boolean endsWithin(int seconds) {
        try {
            return process.waitFor(seconds, TimeUnit.SECONDS);
        } catch (InterruptedException interruption) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private static Stream<String> lines(InputStream stream) {
        return new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8)).lines();
    }
}

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

/** The process of an emulator. It ends with its standard input, and so with this JVM, however that ends. */
public final class Emulator implements AutoCloseable {
    private static final int START_SECONDS = 30;
    private static final int STOP_SECONDS = 10;
    private static final int LAST_WORDS = 20;
    private static final Map<List<String>, Emulator> SHARED = new ConcurrentHashMap<>();

    private final Deque<String> said = new ConcurrentLinkedDeque<>();
    private final Process process;
    private final CompletableFuture<Void> allSaid = new CompletableFuture<>();
    private final Map<String, Object> ready;
    final Control control;

    /** Starts an emulator at free ports, with further options of its command line. */
    public Emulator(String... options) {
        Program program = Program.find();
        List<String> command = new ArrayList<>(List.of(program.path, "--for-tests"));
        command.addAll(List.of(options));
        try {
            process = new ProcessBuilder(command).start();
        } catch (IOException problem) {
            throw didNotStart(problem.getMessage());
        }
        Thread listener = new Thread(this::listen, "standard error of the emulator");
        listener.setDaemon(true);
        listener.start();
        ready = waitUntilReady(program);
        program.isRunning();
        control = new Control(text("http"), this::whyItEnded);
    }

    /** The emulator of this JVM with these options, started when it is first asked for. */
    public static Emulator shared(String... options) {
        return SHARED.computeIfAbsent(List.of(options), same -> new Emulator(options));
    }

    /** What its ready line says, such as {@code pid}, {@code amqp} and {@code http}. */
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
        String words = program.path + " is no emulator";
        try {
            String said = line.orTimeout(START_SECONDS, TimeUnit.SECONDS).join();
            if (said.startsWith("{\"event\":\"ready\"")) {
                return Control.cast(Json.parse(said));
            }
        } catch (CompletionException late) {
            words = "it was not ready within " + START_SECONDS + " s";
        }
        waitForLastWords();
        process.destroyForcibly();
        program.isRunning();
        throw didNotStart(said.isEmpty() ? words : said.getFirst());
    }

    private static EmulatorException didNotStart(String words) {
        return new EmulatorException("the emulator did not start: " + words
                + "; check its options (" + ServiceBusExtension.OPTIONS + ") and " + Program.VARIABLE);
    }

    /** What became of it, in a sentence. */
    private String whyItEnded() {
        if (!endsWithin(1)) {
            return "the emulator runs and does not answer: end the run, and start it again";
        }
        waitForLastWords();
        int code = process.exitValue();
        String cause = code > 128 ? "by signal " + (code - 128) : "with exit code " + code;
        String words = said.isEmpty() ? "" : "; " + said.getLast();
        return "the emulator ended " + cause + " in the middle of the run: start the run again" + words;
    }

    private void listen() {
        try {
            lines(process.getErrorStream()).forEach(line -> {
                said.addLast(line);
                if (said.size() > LAST_WORDS) {
                    said.removeFirst();
                }
            });
        } catch (UncheckedIOException closed) {
            // The process was destroyed.
        }
        allSaid.complete(null);
    }

    private void waitForLastWords() {
        allSaid.copy().completeOnTimeout(null, 1, TimeUnit.SECONDS).join();
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

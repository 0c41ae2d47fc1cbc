package cases;

import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;

/** A request: it runs a case, and is answered once, when the case ends or hangs. */
final class Run {
    private static final long DEADLINE_SECONDS = 180;
    /** The prefix of the names of all threads of cases. */
    private static final String CASE = "case ";
    private static final ScheduledExecutorService DEADLINES = Executors.newSingleThreadScheduledExecutor();
    private static final Map<Thread, Run> RUNS = new ConcurrentHashMap<>();

    private final Object id;
    private final String name;
    private final Map<String, String> environment;
    private final PrintStream answers;
    private final AtomicBoolean isAnswered = new AtomicBoolean();

    Run(Map<String, Object> request, PrintStream answers) {
        this.id = request.get("id");
        this.name = (String) request.get("case");
        this.environment = Json.texts(request.get("environment"));
        this.answers = answers;
    }

    void start() {
        thread("", this::run).start();
        var unused = DEADLINES.schedule(this::giveUp, DEADLINE_SECONDS, TimeUnit.SECONDS);
    }

    /** Starts another thread for the case of the calling thread. */
    static Thread beside(Runnable work) {
        return RUNS.get(Thread.currentThread()).thread(", beside", work);
    }

    private Thread thread(String role, Runnable work) {
        Thread thread = new Thread(() -> {
            RUNS.put(Thread.currentThread(), this);
            work.run();
            RUNS.remove(Thread.currentThread());
        }, CASE + id + " " + name + role);
        thread.setDaemon(true);
        return thread;
    }

    private void run() {
        try (Namespace namespace = new Namespace(environment)) {
            find().invoke(null, namespace);
            answer(true, "");
        } catch (InvocationTargetException failure) {
            answer(false, stackOf(failure.getCause()));
        } catch (Exception failure) {
            answer(false, stackOf(failure));
        }
    }

    /** The case {@code dead_letter.drains_destructively} is {@code DeadLetter.drainsDestructively}. */
    private Method find() throws ReflectiveOperationException {
        String[] parts = camel(name).split("\\.");
        String topic = Character.toUpperCase(parts[0].charAt(0)) + parts[0].substring(1);
        return Class.forName("cases." + topic).getDeclaredMethod(parts[1], Namespace.class);
    }

    private static String camel(String name) {
        var words = new StringBuilder();
        for (String word : name.split("_")) {
            words.append(words.isEmpty() ? word : Character.toUpperCase(word.charAt(0)) + word.substring(1));
        }
        return words.toString();
    }

    /** Describes where a case hangs: in its own threads, or in those of the SDK for all cases. */
    private void giveUp() {
        if (isAnswered.get()) {
            return;
        }
        var stacks = new StringBuilder("still running after " + DEADLINE_SECONDS + " s\n");
        var threads = Thread.getAllStackTraces();
        threads.forEach((thread, stack) -> {
            if (RUNS.get(thread) == this) {
                stacks.append(shown(thread, stack));
            }
        });
        threads.forEach((thread, stack) -> {
            boolean isOfSdk = Stream.of(stack).anyMatch(frame -> frame.getClassName().startsWith("com.azure."));
            if (!RUNS.containsKey(thread) && isOfSdk) {
                stacks.append(shown(thread, stack));
            }
        });
        answer(false, stacks.toString());
        RUNS.forEach((thread, run) -> {
            if (run == this) {
                thread.interrupt();
            }
        });
    }

    private static String shown(Thread thread, StackTraceElement[] stack) {
        var text = new StringBuilder("\n" + thread.getName() + " " + thread.getState() + "\n");
        for (StackTraceElement frame : stack) {
            text.append("    at ").append(frame).append('\n');
        }
        return text.toString();
    }

    private void answer(boolean hasPassed, String output) {
        if (isAnswered.compareAndSet(false, true)) {
            synchronized (answers) {
                answers.println(Json.write(Map.of("id", id, "passed", hasPassed, "output", output)));
                answers.flush();
            }
        }
    }

    private static String stackOf(Throwable failure) {
        var text = new StringWriter();
        failure.printStackTrace(new PrintWriter(text));
        return text.toString();
    }
}

package cases;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Runs named cases of JMS, in one process: against the emulator by Qpid JMS or by Microsoft's library, or, as the control,
 * against an embedded Artemis.
 *
 * <p>Every line of standard input is a request, {@code {"id": 1, "case": "queues.order", "environment": {…}}}. Each
 * runs on threads of its own and is answered by a line on standard output,
 * {@code {"id": 1, "passed": true, "output": ""}}. The environment is a case's own, see {@link Namespace}.
 * The process ends with its standard input.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws IOException {
        // The clients log intended failures.
        System.getProperties().putIfAbsent("org.slf4j.simpleLogger.defaultLogLevel", "off");
        PrintStream answers = System.out;
        // Other output must not be mistaken for a response.
        System.setOut(System.err);
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            new Run(Json.parse(line), answers).start();
        }
        // Threads of the clients and of hanging cases do not keep the process running.
        Runtime.getRuntime().halt(0);
    }
}

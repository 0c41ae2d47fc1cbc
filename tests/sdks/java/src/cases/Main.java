package cases;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Runs named cases against the emulator through the Java SDK, in one process: a JVM takes a second to start.
 *
 * <p>Every line of standard input is a request, {@code {"id": 1, "case": "locks.renews", "environment": {…}}}. Each
 * runs on threads of its own and is answered by a line on standard output,
 * {@code {"id": 1, "passed": true, "output": ""}}.
 * The environment is a case's own: SERVICEBUS_CONNECTION_STRING, SERVICEBUS_CONTROL_URL (the namespace's part of the
 * control API), SERVICEBUS_EXPIRY, SERVICEBUS_LOCKS_ON_DETACH, SERVICEBUS_CA_FILE and SERVICEBUS_TRANSPORT; for
 * administration clients also SERVICEBUS_ADMIN_CONNECTION_STRING. The
 * requests decide how many cases run side by side.
 * The process ends with its standard input.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws IOException {
        // The level of the SDK's logger, which tests of this program set to read its output.
        System.getProperties().putIfAbsent("org.slf4j.simpleLogger.defaultLogLevel", "off");
        PrintStream answers = System.out;
        // Other output must not be mistaken for a response.
        System.setOut(System.err);
        Trust.install();
        var requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            new Run(Json.parse(line), answers).start();
        }
        // Threads of the SDK and of hanging cases do not keep the process running.
        Runtime.getRuntime().halt(0);
    }
}

package cases;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Cases in a separate process: those that end it, and those about all of its threads. */
final class Alone {
    private Alone() {
    }

    /** Runs a case and returns its response, which is empty if the case has ended its process. */
    static Map<String, Object> run(String name, Namespace namespace) throws IOException, InterruptedException {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process = new ProcessBuilder(
                        java.toString(), "-Xmx256m", "-cp", System.getProperty("java.class.path"), "cases.Main")
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (var requests = process.outputWriter(StandardCharsets.UTF_8);
                var answers = process.inputReader(StandardCharsets.UTF_8)) {
            var request = Map.of("id", 1, "case", name, "environment", namespace.environment);
            requests.write(Json.write(request) + "\n");
            requests.flush();
            // Its standard input stays open meanwhile, because closing it would end the process first.
            String answer = Namespace.await("an answer", Namespace.start(() -> Namespace.unchecked(answers::readLine)));
            if (answer == null) {
                Expect.isTrue("it has ended", process.waitFor(Expect.TIMEOUT.toSeconds(), TimeUnit.SECONDS));
            }
            return Json.parse(answer == null ? "" : answer);
        } finally {
            process.destroyForcibly();
        }
    }
}

package tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import servicebus.emulator.Emulator;
import servicebus.emulator.EmulatorException;

/** The program that is started, and its end with the JVM, each in a JVM of its own. */
class EndTest {
    @TempDir
    Path temporary;

    /** Starts an emulator, prints where it is or why there is none, and waits. */
    static final class Run {
        public static void main(String[] arguments) throws Exception {
            try {
                System.out.println(new Emulator().ready().get("http"));
            } catch (EmulatorException problem) {
                System.out.println(problem.getMessage());
            }
            if (System.in.read() != -1) {
                System.exit(3);
            }
        }
    }

    private Process start(Map<String, String> environment, String... options) throws Exception {
        var command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElseThrow()));
        command.addAll(List.of("-Xmx64m", "-Djava.io.tmpdir=" + temporary, "-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(options));
        command.add(Run.class.getName());
        var builder = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().putAll(environment);
        return builder.start();
    }

    private static String line(Process run) throws Exception {
        return new BufferedReader(new InputStreamReader(run.getInputStream())).readLine();
    }

    @ParameterizedTest
    @ValueSource(strings = {"KILL", "TERM", "exit"})
    void anEmulatorEndsWithItsRun(String end) throws Exception {
        var run = start(Map.of());
        var address = URI.create("http://" + line(run) + "/$emulator/v1/hold");
        assertEquals(0, temporary.toFile().list().length, "the program stays in the temporary directory");
        var request = HttpRequest.newBuilder(address).timeout(Duration.ofSeconds(30)).build();
        var held = HttpClient.newHttpClient().send(request, BodyHandlers.ofInputStream()).body();
        if (end.equals("exit")) {
            run.getOutputStream().write('\n');
            run.getOutputStream().flush();
        } else {
            new ProcessBuilder("kill", "-" + end, "" + run.pid()).start().waitFor();
        }
        assertEquals(-1, held.read(), "it ends with the emulator");
        run.waitFor();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "/nowhere/emulator | SERVICEBUS_EMULATOR_BIN names /nowhere/emulator, which is no program: name one, or unset it",
        "nowhere | SERVICEBUS_EMULATOR_BIN names nowhere, which is no program: name one, or unset it",
        "true | the emulator did not start: .*/true is no emulator; check its options .* and SERVICEBUS_EMULATOR_BIN",
        "cat | the emulator did not start: .*cat: unrecognized option .*; check its options .* and SERVICEBUS_EMULATOR_BIN",
    })
    void whatIsNoEmulatorIsRefused(String program, String sentence) throws Exception {
        var run = start(Map.of("SERVICEBUS_EMULATOR_BIN", program));
        String said = line(run);
        assertTrue(said.matches(sentence), said);
        run.destroy();
    }

    @Test
    void settingsOfAnEmulatorBesideTheTestsAreNotTheirs() throws Exception {
        var run = start(Map.of(
                "SERVICEBUS_EMULATOR_DATA", "/dev/null/data",
                "SERVICEBUS_EMULATOR_CONFIG", "none.json",
                "SERVICEBUS_EMULATOR_HTTPS_PORT", "1"));
        String said = line(run);
        assertTrue(said.matches("127\\.0\\.0\\.1:\\d+"), said);
        run.destroy();
    }

    @Test
    void withoutAProgramItSaysHowToGetOne() throws Exception {
        var run = start(Map.of("PATH", "/nowhere"), "-Dos.arch=sparc");
        assertEquals(
                "this artefact has no emulator for linux-sparc, and there is none on the path: build it with "
                        + "`cargo build --release -p servicebus-emulator` and name it in SERVICEBUS_EMULATOR_BIN",
                line(run));
        run.destroy();
    }
}

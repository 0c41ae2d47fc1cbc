package tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
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

/** Starting the emulator, and its end with the JVM, each in a separate JVM. */
class EndTest {
    @TempDir
    Path temporary;

    /** Starts an emulator, prints its address or the error, and waits. */
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
    void theEmulatorEndsWithTheRun(String end) throws Exception {
        var run = start(Map.of());
        var address = URI.create("http://" + line(run) + "/$emulator/v1/hold");
        assertEquals(0, temporary.toFile().list().length, "the program was left in the temporary directory");
        var request = HttpRequest.newBuilder(address).timeout(Duration.ofSeconds(30)).build();
        var response = HttpClient.newHttpClient().send(request, BodyHandlers.ofInputStream()).body();
        if (end.equals("exit")) {
            run.getOutputStream().write('\n');
            run.getOutputStream().flush();
        } else {
            new ProcessBuilder("kill", "-" + end, "" + run.pid()).start().waitFor();
        }
        assertEquals(-1, response.read(), "the response ends when the emulator ends");
        run.waitFor();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "/nowhere/emulator | SERVICEBUS_EMULATOR_BIN is /nowhere/emulator, which is not an executable file: correct the path, or unset it",
        "nowhere | SERVICEBUS_EMULATOR_BIN is nowhere, which is not an executable file: correct the path, or unset it",
        "true | the emulator did not start: .*/true is not the emulator.s program; check its options .* and SERVICEBUS_EMULATOR_BIN",
        "cat | the emulator did not start: .*cat: unrecognized option .*; check its options .* and SERVICEBUS_EMULATOR_BIN",
    })
    void aProgramThatIsNotTheEmulatorIsAnError(String program, String message) throws Exception {
        var run = start(Map.of("SERVICEBUS_EMULATOR_BIN", program));
        String line = line(run);
        assertTrue(line.matches(message), line);
        run.destroy();
    }

    @Test
    void aProgramOfAnotherVersionIsAnError() throws Exception {
        var program = temporary.resolve("program");
        Files.writeString(program, "#!/bin/sh\necho '{\"event\":\"ready\",\"version\":\"9.9.9\"}'\nexec cat\n");
        assertTrue(program.toFile().setExecutable(true));
        var run = start(Map.of("SERVICEBUS_EMULATOR_BIN", program.toString()));
        String line = line(run);
        String message = "the emulator did not start: " + program + " is version 9\\.9\\.9, but this artefact is version \\d\\S+; "
                + "check its options .* and SERVICEBUS_EMULATOR_BIN";
        assertTrue(line.matches(message), line);
        run.destroy();
    }

    @Test
    void variablesForAnotherEmulatorAreIgnored() throws Exception {
        var run = start(Map.of(
                "SERVICEBUS_EMULATOR_DATA", "/dev/null/data",
                "SERVICEBUS_EMULATOR_CONFIG", "none.json",
                "SERVICEBUS_EMULATOR_HTTPS_PORT", "1"));
        String line = line(run);
        assertTrue(line.matches("127\\.0\\.0\\.1:\\d+"), line);
        run.destroy();
    }

    @Test
    void withoutAProgramTheErrorSaysHowToBuildOne() throws Exception {
        var run = start(Map.of("PATH", "/nowhere"), "-Dos.arch=sparc");
        assertEquals(
                "this artefact has no emulator for linux-sparc, and PATH has none: build it with "
                        + "`cargo build --release -p servicebus-emulator` and set SERVICEBUS_EMULATOR_BIN to the program",
                line(run));
        run.destroy();
    }
}

package servicebus.emulator;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** The program in {@code SERVICEBUS_EMULATOR_BIN}, else that of this artefact, else the one on {@code PATH}. */
final class Program {
    static final String VARIABLE = "SERVICEBUS_EMULATOR_BIN";

    final String path;
    private final Path extracted;

    private Program(Path path, Path extracted) {
        this.path = path.toString();
        this.extracted = extracted;
    }

    static Program find() {
        String named = System.getenv(VARIABLE);
        if (named != null && !named.isEmpty()) {
            Path path = named.contains(File.separator) ? executable(Path.of(named)) : onPath(named);
            if (path == null) {
                throw new EmulatorException(VARIABLE + " is " + named
                        + ", which is not an executable file: correct the path, or unset it");
            }
            return new Program(path, null);
        }
        String system = system();
        String name = system.startsWith("windows") ? "servicebus-emulator.exe" : "servicebus-emulator";
        try (InputStream packed = Emulator.class.getResourceAsStream("/servicebus-emulator/" + system + "/" + name)) {
            if (packed != null) {
                Path program = Files.createTempDirectory("servicebus-emulator").resolve(name);
                Files.copy(packed, program);
                program.toFile().setExecutable(true);
                return new Program(program, program);
            }
        } catch (IOException problem) {
            throw new EmulatorException("the emulator cannot be written to a temporary directory, " + problem
                    + ": set java.io.tmpdir to a directory with free space, or set " + VARIABLE + " to the program");
        }
        Path path = onPath(name);
        if (path == null) {
            throw new EmulatorException("this artefact has no emulator for " + system + ", and PATH has none: build it "
                    + "with `cargo build --release -p servicebus-emulator` and set " + VARIABLE + " to the program");
        }
        return new Program(path, null);
    }

    /** Deletes the extracted file, which is not needed while the program runs; on Windows, when this JVM exits. */
    void deleteExtracted() {
        if (extracted != null && !(extracted.toFile().delete() && extracted.getParent().toFile().delete())) {
            extracted.getParent().toFile().deleteOnExit();
            extracted.toFile().deleteOnExit();
        }
    }

    /** The operating system and the processor: {@code linux-x86_64}, {@code macos-aarch64}. */
    private static String system() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        system = system.startsWith("windows") ? "windows" : system.startsWith("mac") ? "macos" : system;
        return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }

    private static Path onPath(String name) {
        for (String directory : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator)) {
            Path path = executable(Path.of(directory, name));
            if (path != null) {
                return path;
            }
        }
        return null;
    }

    private static Path executable(Path path) {
        return Files.isRegularFile(path) && Files.isExecutable(path) ? path : null;
    }
}

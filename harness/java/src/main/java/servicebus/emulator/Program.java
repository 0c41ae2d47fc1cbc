package servicebus.emulator;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.stream.Stream;

/** The program in {@code SERVICEBUS_EMULATOR_BIN}, else that of this artefact, else the one on {@code PATH}. */
final class Program {
    static final String VARIABLE = "SERVICEBUS_EMULATOR_BIN";

    final Path path;
    private final boolean isExtracted;

    private Program(Path path, boolean isExtracted) {
        this.path = path;
        this.isExtracted = isExtracted;
    }

    static Program find() {
        String named = System.getenv().getOrDefault(VARIABLE, "");
        if (!named.isEmpty()) {
            return executable(named, VARIABLE + " is " + named
                    + ", which is not an executable file: correct the path, or unset it");
        }
        String system = system();
        String name = system.startsWith("windows") ? "servicebus-emulator.exe" : "servicebus-emulator";
        try (InputStream packed = Emulator.class.getResourceAsStream("/servicebus-emulator/" + system + "/" + name)) {
            if (packed != null) {
                Path program = Files.createTempDirectory("servicebus-emulator").resolve(name);
                Files.copy(packed, program);
                program.toFile().setExecutable(true);
                return new Program(program, true);
            }
        } catch (IOException problem) {
            throw new EmulatorException("the emulator cannot be written to a temporary directory, " + problem
                    + ": set java.io.tmpdir to a directory with free space, or set " + VARIABLE + " to the program");
        }
        return executable(name, "this artefact has no emulator for " + system + ", and PATH has none: build it "
                + "with `cargo build --release -p servicebus-emulator` and set " + VARIABLE + " to the program");
    }

    /** What to change if the program cannot be started. */
    String hint() {
        return isExtracted ? "; set java.io.tmpdir to a directory from which programs can be started" : "";
    }

    /** Deletes the extracted file, which is not needed while the program runs; on Windows, when this JVM exits. */
    void deleteExtracted() {
        if (isExtracted && !(path.toFile().delete() && path.getParent().toFile().delete())) {
            path.getParent().toFile().deleteOnExit();
            path.toFile().deleteOnExit();
        }
    }

    /** The operating system and the processor: {@code linux-x86_64}, {@code macos-aarch64}. */
    private static String system() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String processor = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        system = system.startsWith("windows") ? "windows" : system.startsWith("mac") ? "macos" : system;
        return system + "-" + (processor.equals("amd64") ? "x86_64" : processor);
    }

    /** The program at a path, or with a name on {@code PATH}. */
    private static Program executable(String name, String otherwise) {
        String directories = name.contains(File.separator) ? "" : System.getenv().getOrDefault("PATH", "");
        return Stream.of(directories.split(File.pathSeparator))
                .map(directory -> Path.of(directory, name))
                .filter(path -> Files.isRegularFile(path) && Files.isExecutable(path))
                .findFirst()
                .map(path -> new Program(path, false))
                .orElseThrow(() -> new EmulatorException(otherwise));
    }
}

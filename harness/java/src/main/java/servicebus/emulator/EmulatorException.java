package servicebus.emulator;

/** What the emulator refused or could not do, in a sentence. */
public final class EmulatorException extends RuntimeException {
    private static final long serialVersionUID = 1;

    EmulatorException(String sentence) {
        super(sentence);
    }
}

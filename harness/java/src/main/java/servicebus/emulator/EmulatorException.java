package servicebus.emulator;

/** The emulator rejected a request, could not be started, or has ended. */
public final class EmulatorException extends RuntimeException {
    private static final long serialVersionUID = 1;

    EmulatorException(String message) {
        super(message);
    }
}

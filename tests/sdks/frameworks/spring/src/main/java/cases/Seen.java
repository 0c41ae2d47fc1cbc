package cases;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The messages that listeners have received, for the case that waits for them. */
final class Seen<T> {
    /** Long enough for a busy machine, short enough to detect a hang. */
    private static final long DEADLINE_SECONDS = 45;

    private final BlockingQueue<T> values = new LinkedBlockingQueue<>();

    void add(T value) {
        values.add(value);
    }

    T next() throws InterruptedException {
        T value = values.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
        if (value == null) {
            throw new AssertionError("nothing came within " + DEADLINE_SECONDS + " s");
        }
        return value;
    }
}

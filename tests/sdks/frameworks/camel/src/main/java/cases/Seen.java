package cases;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What listeners have seen, for the case that waits for it. */
final class Seen<T> {
    /** Long enough for a machine that is busy with something else, short enough to be told from a hang. */
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

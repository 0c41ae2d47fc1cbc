package cases;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.exception.AmqpException;
import com.azure.core.exception.HttpResponseException;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import java.time.Duration;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** Assertions, which fail with what they saw. */
final class Expect {
    /** Long enough for a machine that is busy with something else, short enough to be told from a hang. */
    static final Duration PATIENCE = Duration.ofSeconds(45);

    private Expect() {
    }

    static void equal(String what, Object actual, Object expected) {
        if (!Objects.equals(actual, expected)) {
            throw new AssertionError(what + ": expected " + expected + ", got " + actual);
        }
    }

    static void isTrue(String what, boolean condition) {
        if (!condition) {
            throw new AssertionError("it does not hold: " + what);
        }
    }

    /** Waits until a condition holds. */
    static void eventually(String what, BooleanSupplier condition) {
        Instant deadline = Instant.now().plus(PATIENCE);
        while (!condition.getAsBoolean()) {
            if (Instant.now().isAfter(deadline)) {
                throw new AssertionError("it does not come to hold: " + what);
            }
            LockSupport.parkNanos(20_000_000);
        }
    }

    /** What an action is refused with. */
    static Throwable failure(Callable<?> action) {
        Object result;
        try {
            result = action.call();
        } catch (Exception failure) {
            return failure;
        }
        throw new AssertionError("expected an error, got " + result);
    }

    static Throwable failure(Runnable action) {
        return failure(() -> {
            action.run();
            return "none";
        });
    }

    /** The SDK's own error for this reason. */
    static Throwable refused(ServiceBusFailureReason reason, Runnable action) {
        return of(reason, failure(action));
    }

    static Throwable of(ServiceBusFailureReason reason, Throwable failure) {
        if (!(failure instanceof ServiceBusException refusal) || refusal.getReason() != reason) {
            throw new AssertionError("expected an error for " + reason, failure);
        }
        return failure;
    }

    /** A condition that the SDK has no reason of its own for: it is in what caused its error. */
    static Throwable condition(AmqpErrorCondition condition, Runnable action) {
        return condition(condition, failure(action));
    }

    static Throwable condition(AmqpErrorCondition condition, Throwable failure) {
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof AmqpException refusal && refusal.getErrorCondition() == condition) {
                return failure;
            }
        }
        throw new AssertionError("expected an error by " + condition, failure);
    }

    /** What is not allowed, or not implemented, this SDK takes for an operation that is not supported. */
    static Throwable notAllowed(Runnable action) {
        Throwable failure = failure(action);
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof UnsupportedOperationException) {
                return cause;
            }
        }
        throw new AssertionError("expected that it is not allowed", failure);
    }

    static void words(String words, Throwable failure) {
        if (!String.valueOf(failure.getMessage()).contains(words)) {
            throw new AssertionError("expected the words: " + words, failure);
        }
    }

    /** What the administration API answers. */
    static Throwable status(int status, Runnable action) {
        Throwable failure = failure(action);
        if (!(failure instanceof HttpResponseException refusal) || refusal.getResponse().getStatusCode() != status) {
            throw new AssertionError("expected the status " + status, failure);
        }
        return failure;
    }

    /** A lock of one minute ends within a minute from now, and not at its very beginning. */
    static void freshLock(OffsetDateTime until) {
        Duration remaining = Duration.between(OffsetDateTime.now(), until);
        if (remaining.toSeconds() < 30 || remaining.toSeconds() > 61) {
            throw new AssertionError("a fresh lock of one minute has " + remaining + " left by the client's clock");
        }
    }

    /** An instant, but for the time that the case itself takes. */
    static void close(String what, OffsetDateTime actual, OffsetDateTime expected) {
        if (Duration.between(actual, expected).abs().toSeconds() > 15) {
            throw new AssertionError(what + ": expected about " + expected + ", got " + actual);
        }
    }
}

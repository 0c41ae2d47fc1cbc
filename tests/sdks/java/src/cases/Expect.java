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

/** Assertions, which fail with the actual values. */
final class Expect {
    /** Long enough for a busy machine, short enough to detect a hang. */
    static final Duration TIMEOUT = Duration.ofSeconds(45);

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
        Instant deadline = Instant.now().plus(TIMEOUT);
        while (!condition.getAsBoolean()) {
            if (Instant.now().isAfter(deadline)) {
                throw new AssertionError("it does not come to hold: " + what);
            }
            LockSupport.parkNanos(20_000_000);
        }
    }

    /** Returns the error of an action. */
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

    /** Asserts the SDK's error with this reason. */
    static Throwable refused(ServiceBusFailureReason reason, Runnable action) {
        return of(reason, failure(action));
    }

    static Throwable of(ServiceBusFailureReason reason, Throwable failure) {
        if (!(failure instanceof ServiceBusException refusal) || refusal.getReason() != reason) {
            throw new AssertionError("expected an error for " + reason, failure);
        }
        return failure;
    }

    /** Asserts an AMQP condition that the SDK has no reason for: it is in the cause of the error. */
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

    /** This SDK reports not-allowed and not-implemented as an unsupported operation. */
    static Throwable notAllowed(Runnable action) {
        Throwable failure = failure(action);
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            if (cause instanceof UnsupportedOperationException) {
                return cause;
            }
        }
        throw new AssertionError("expected that it is not allowed", failure);
    }

    static void errorText(String description, Throwable failure) {
        if (!String.valueOf(failure.getMessage()).contains(description)) {
            throw new AssertionError("expected the text: " + description, failure);
        }
    }

    /** Asserts the status of the administration API's response. */
    static Throwable status(int status, Runnable action) {
        Throwable failure = failure(action);
        if (!(failure instanceof HttpResponseException refusal) || refusal.getResponse().getStatusCode() != status) {
            throw new AssertionError("expected the status " + status, failure);
        }
        return failure;
    }

    /** Asserts that a lock of one minute ends between 30 s and a minute from now. */
    static void freshLock(OffsetDateTime until) {
        Duration remaining = Duration.between(OffsetDateTime.now(), until);
        if (remaining.toSeconds() < 30 || remaining.toSeconds() > 61) {
            throw new AssertionError("a fresh lock of one minute has " + remaining + " left by the client's clock");
        }
    }

    /** Asserts a time, with a tolerance for the duration of the case. */
    static void close(String what, OffsetDateTime actual, OffsetDateTime expected) {
        if (Duration.between(actual, expected).abs().toSeconds() > 15) {
            throw new AssertionError(what + ": expected about " + expected + ", got " + actual);
        }
    }
}

package servicebus.emulator;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Faults that a test injects into operations of the clients of a namespace.
 *
 * <p>{@code servicebus.faults().on("complete").entity("orders").loseLock()}. A fault that has not fired when the
 * namespace ends fails the test, unless it was removed with {@link Fault#remove}.
 */
public final class Faults {
    private final ServiceBus servicebus;

    Faults(ServiceBus servicebus) {
        this.servicebus = servicebus;
    }

    /** Selects operations of clients by their kind in the control API. */
    public Operations on(String operation) {
        return new Operations(operation);
    }

    /** Ends all locks and links, as when the service is updated. */
    public void serviceUpdate() {
        servicebus.ask("POST", "service-update", null);
    }

    /** Operations that a fault applies to. Methods select further, or add a fault with one effect. */
    public final class Operations {
        private final Map<String, Object> request = new LinkedHashMap<>();

        private Operations(String operation) {
            request.put("operation", operation);
        }

        /** Only in this queue, topic or subscription. */
        public Operations entity(String entity) {
            return with("entity", entity);
        }

        /** Only the nth of the selected operations, from 1. */
        public Operations nth(int nth) {
            return with("nth", nth);
        }

        /** Only operations with this field in the control API: {@code with("message_id", "o-17")}. */
        public Operations with(String field, Object value) {
            request.put(field, value);
            return this;
        }

        /** Adds a fault with any effect of the control API. */
        public Fault apply(String effect) {
            return add(effect);
        }

        /** Any effect with details: {@code apply("hold-back", Map.of("behind", 2))}. */
        public Fault apply(String effect, Map<String, ?> details) {
            return add(Map.of(effect, details));
        }

        /** The operation succeeds, and the client gets no reply. */
        public Fault loseReply() {
            return apply("lose-reply");
        }

        /** The operation fails with this AMQP error condition. */
        public Fault reject(String condition) {
            return apply("reject", Map.of("condition", condition));
        }

        /** The operation fails with {@code com.microsoft:server-busy}. */
        public Fault serverBusy() {
            return reject("com.microsoft:server-busy");
        }

        /** The response to a request has this status. */
        public Fault answer(int status) {
            return apply("answer", Map.of("status", status));
        }

        /** The link is detached before the operation. */
        public Fault detach() {
            return apply("detach", Map.of("condition", "amqp:link:detach-forced"));
        }

        /** The connection ends before the operation, without a close frame. */
        public Fault dropConnection() {
            return apply("drop");
        }

        /** The operation is delayed, by the clock of the namespace. */
        public Fault delay(Duration delay) {
            return apply("delay", Map.of("seconds", delay));
        }

        /** The lock ends: before a settlement or renewal, after a delivery. */
        public Fault loseLock() {
            return apply("lose-lock");
        }

        /** The lock of the session ends. */
        public Fault loseSessionLock() {
            return apply("lose-session-lock");
        }

        /** The completion succeeds for the client, but the message is delivered again. */
        public Fault redeliver() {
            return apply("deliver-twice");
        }

        /** Adds the fault, with the line of the test: the first in the call stack that is outside of this class. */
        private Fault add(Object effect) {
            StackWalker.StackFrame caller = StackWalker.getInstance().walk(frames -> frames
                    .filter(frame -> !frame.getClassName().startsWith(Faults.class.getName()))
                    .findFirst()
                    .orElseThrow());
            request.put("effect", effect);
            request.put("written_at", caller.toStackTraceElement().toString());
            return new Fault((Long) servicebus.ask("POST", "faults", request).get("id"));
        }
    }

    /** A fault that was added to a namespace. */
    public final class Fault {
        private final long id;

        private Fault(long id) {
            this.id = id;
        }

        /** How often the fault has fired. */
        public long hits() {
            return (Long) servicebus.ask("GET", "faults/" + id, null).get("hits");
        }

        /** Removes the fault, which then does not have to fire. */
        public void remove() {
            servicebus.ask("DELETE", "faults/" + id, null);
        }
    }
}

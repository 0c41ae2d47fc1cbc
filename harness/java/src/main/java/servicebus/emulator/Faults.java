package servicebus.emulator;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The faults of a namespace: an operation of a client goes wrong where the test says so.
 *
 * <p>{@code servicebus.faults().on("complete").entity("orders").loseLock()}. One that has not fired when the namespace
 * ends fails the test, unless it was taken out with {@link Fault#remove}.
 */
public final class Faults {
    private final Control control;
    private final String path;

    Faults(Control control, String path) {
        this.control = control;
        this.path = path;
    }

    /** Operations of clients, by the control API's name of their kind. */
    public Operations on(String operation) {
        return new Operations(operation);
    }

    /** Ends all locks and links, as when the service is updated. */
    public void serviceUpdate() {
        control.ask("POST", path + "/service-update", null);
    }

    /** Operations that are to go wrong. Each method but those that narrow them scripts what becomes of them. */
    public final class Operations {
        private final Map<String, Object> request = new LinkedHashMap<>();

        private Operations(String operation) {
            request.put("operation", operation);
        }

        /** Only in this queue, topic or subscription. */
        public Operations entity(String entity) {
            return with("entity", entity);
        }

        /** The nth of those that are left, from 1. */
        public Operations nth(int nth) {
            return with("nth", nth);
        }

        /** Only those of which the control API says so: {@code with("message_id", "o-17")}. */
        public Operations with(String field, Object value) {
            request.put(field, value);
            return this;
        }

        /** Any effect of the control API, by its name. */
        public Fault apply(String effect) {
            return script(effect);
        }

        /** Any effect with details: {@code apply("hold-back", Map.of("behind", 2))}. */
        public Fault apply(String effect, Map<String, ?> details) {
            return script(Map.of(effect, details));
        }

        /** It happens, and the client gets no reply. */
        public Fault loseReply() {
            return apply("lose-reply");
        }

        /** It does not happen, and the client gets the AMQP condition. */
        public Fault reject(String condition) {
            return apply("reject", Map.of("condition", condition));
        }

        /** It does not happen, and the client is told to wait. */
        public Fault serverBusy() {
            return reject("com.microsoft:server-busy");
        }

        /** A request is answered with this status. */
        public Fault answer(int status) {
            return apply("answer", Map.of("status", status));
        }

        /** The link is closed before it happens. */
        public Fault detach() {
            return apply("detach", Map.of("condition", "amqp:link:detach-forced"));
        }

        /** The connection ends before it happens, without a close frame. */
        public Fault dropConnection() {
            return apply("drop");
        }

        /** It happens later, by the clock of the namespace. */
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

        /** The client is told that its completion has happened, and the message is delivered again. */
        public Fault redeliver() {
            return apply("deliver-twice");
        }

        private Fault script(Object effect) {
            request.put("effect", effect);
            request.put("written_at", place());
            return new Fault((Long) control.ask("POST", path + "/faults", request).get("id"));
        }

        /** The line of the test, which is the first outside of this class. */
        private String place() {
            return StackWalker.getInstance().walk(frames -> frames
                    .filter(frame -> !frame.getClassName().startsWith(Faults.class.getName()))
                    .findFirst()
                    .map(frame -> frame.toStackTraceElement().toString())
                    .orElse("an unknown place"));
        }
    }

    /** A fault that was scripted. */
    public final class Fault {
        private final long id;

        private Fault(long id) {
            this.id = id;
        }

        /** How often it fired. */
        public long hits() {
            return (Long) control.ask("GET", path + "/faults/" + id, null).get("hits");
        }

        /** Takes it out; it need not have fired. */
        public void remove() {
            control.ask("DELETE", path + "/faults/" + id, null);
        }
    }
}

package cases;

import static cases.Messages.cart;

import com.azure.messaging.servicebus.ServiceBusFailureReason;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Session states, which outlive messages and receivers.
 *
 * <p>Source: message-sessions. This SDK lists no sessions.
 */
final class SessionState {
    private static final byte[] HALF_DONE = "half done".getBytes(StandardCharsets.UTF_8);

    private SessionState() {
    }

    /** A session has no state until its receiver sets one. */
    static void setAndRead(Namespace namespace) {
        Receiver session = namespace.session("carts", "1");
        expectState(session, null);
        for (byte[] state : List.of(new byte[] {0, -1, 1}, HALF_DONE)) {
            session.sdk().setSessionState(state);
            expectState(session, state);
        }
        expectState(namespace.session("carts", "2"), null);
    }

    /** A state that is set to nothing or to empty bytes is read as no state. */
    static void cleared(Namespace namespace) {
        Receiver session = namespace.session("carts", "1");
        for (byte[] cleared : new byte[][] {null, {}}) {
            session.sdk().setSessionState(HALF_DONE);
            session.sdk().setSessionState(cleared);
            expectState(session, null);
        }
    }

    /** A state outlives the session's messages, its receivers and their locks. */
    static void outlives(Namespace namespace) {
        namespace.send("carts", cart("1", "a"));
        Receiver first = namespace.session("carts", "1");
        var message = first.one();
        first.sdk().setSessionState(HALF_DONE);
        first.complete(message);
        first.close();
        expectState(namespace.session("carts", "1"), HALF_DONE);
        namespace.advance(61);
        expectState(namespace.session("carts", "1"), HALF_DONE);
    }

    /** Sessions of a subscription have separate states. */
    static void subscription(Namespace namespace) {
        Receiver session = namespace.accepted(
                Sessions.ofSubscription(namespace), receivers -> receivers.acceptSession("1"));
        session.sdk().setSessionState(HALF_DONE);
        expectState(session, HALF_DONE);
        expectState(namespace.session("carts", "1"), null);
    }

    /** A state has at most 256 KiB; a larger one is rejected and changes nothing. */
    static void tooLarge(Namespace namespace) {
        var largest = new byte[256 * 1024];
        Arrays.fill(largest, (byte) -1);
        Receiver session = namespace.session("carts", "1");
        session.sdk().setSessionState(largest);
        Throwable refusal = Expect.refused(
                ServiceBusFailureReason.MESSAGE_SIZE_EXCEEDED,
                () -> session.sdk().setSessionState(Arrays.copyOf(largest, largest.length + 1)));
        Expect.errorText("262144", refusal);
        expectState(session, largest);
    }

    private static void expectState(Receiver session, byte[] expected) {
        Expect.equal("state", Arrays.toString(session.sdk().getSessionState()), Arrays.toString(expected));
    }
}

package cases;

import static cases.Messages.later;
import static cases.Messages.text;

import com.azure.messaging.servicebus.ServiceBusFailureReason;

/**
 * Auto-delete on idle: a queue that no client uses for five minutes is deleted with its messages.
 *
 * <p>Source: the property AutoDeleteOnIdle of queues. The queue idle has it.
 */
final class Idle {
    private Idle() {
    }

    /** After five minutes without use the queue no longer exists, also for an open link. */
    static void deleted(Namespace namespace) {
        Sender sender = namespace.sender("idle");
        sender.send(text("left"));
        namespace.advance(301);
        Expect.refused(ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND, () -> sender.send(text("late")));
        NotFound.expectMissing(() -> namespace.receiver("idle").refused());
    }

    /** Sends, peeks and scheduled messages each keep the queue for five more minutes. */
    static void used(Namespace namespace) {
        Sender sender = namespace.sender("idle");
        namespace.advance(240);
        sender.send(text("kept"));
        namespace.advance(240);
        Receiver receiver = namespace.receiver("idle");
        receiver.peek(1);
        namespace.advance(240);
        sender.schedule(later(600), text("later"));
        namespace.advance(601);
        namespace.advance(240);
        receiver.complete(receiver.receive(2));
        receiver.receiveNothing();
    }
}

package cases;

import static cases.Messages.body;
import static cases.Messages.cart;
import static cases.Messages.numbered;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverAsyncClient;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The asynchronous clients, which the synchronous ones wrap. */
final class Asynchronous {
    private Asynchronous() {
    }

    /** A stream delivers every message, and completes those that its subscriber processes without an error. */
    static void completes(Namespace namespace) {
        send(namespace, "orders", 5);
        var receiver = namespace.closing(
                namespace.clients.receiver().queueName("orders").buildAsyncClient());
        var messages = receiver.receiveMessages().take(5).collectList().block(Expect.TIMEOUT);
        Expect.equal("bodies", Messages.bodies(messages), numbered(0, 5));
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
    }

    /** A subscriber settles messages itself if automatic completion is disabled. */
    static void settles(Namespace namespace) {
        send(namespace, "orders", 4);
        var receiver = receiver(namespace);
        // `take` follows settling, because the link ends with it, and unsettled messages are lost.
        receiver.receiveMessages()
                .concatMap(message -> settled(receiver, message).thenReturn(message))
                .take(4)
                .blockLast(Expect.TIMEOUT);
        namespace.expectCounts("orders", Map.of("active", 1, "deferred", 1, "locked", 0, "dead_letter", 1));
        Expect.equal("deferred", body(receiver.receiveDeferredMessage(3).block(Expect.TIMEOUT)), "number 2");
        Expect.equal("peeked", receiver.peekMessage(1).block(Expect.TIMEOUT).getSequenceNumber(), 3L);
    }

    private static Mono<Void> settled(ServiceBusReceiverAsyncClient receiver, ServiceBusReceivedMessage message) {
        return switch ((int) message.getSequenceNumber()) {
            case 1 -> receiver.complete(message);
            case 2 -> receiver.deadLetter(message);
            case 3 -> receiver.defer(message);
            default -> receiver.renewMessageLock(message).then(receiver.complete(message));
        };
    }

    /** A stream survives the end of its link: the SDK attaches a new one after a service update. */
    static void goesOn(Namespace namespace) {
        var seen = Collections.synchronizedList(new ArrayList<String>());
        var receiver = receiver(namespace);
        var subscription = receiver.receiveMessages()
                .concatMap(message -> receiver.complete(message).thenReturn(body(message)))
                .subscribe(seen::add);
        namespace.send("orders", text("before"));
        Expect.eventually("the first message comes", () -> seen.equals(List.of("before")));
        namespace.control("POST", "service-update", Map.of());
        // Over a new connection, because the SDK refuses to send on one whose link is just ending.
        namespace.sender(namespace.clients(namespace.connectionString()), "orders").send(text("after"));
        Expect.eventually("the second message comes", () -> seen.equals(List.of("before", "after")));
        subscription.dispose();
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
    }

    /** Sessions in parallel, each as a separate stream. */
    static void sessions(Namespace namespace) {
        namespace.send("carts", cart("1", "a"), cart("2", "b"), cart("1", "c"), cart("2", "d"));
        var sessions = namespace.closing(namespace.clients
                .sessionReceiver()
                .queueName("carts")
                .disableAutoComplete()
                .buildAsyncClient());
        var seen = Flux.range(0, 2)
                .concatMap(index -> sessions.acceptNextSession())
                .flatMap(Asynchronous::drained)
                .collectList()
                .block(Expect.TIMEOUT);
        Expect.equal("sessions", seen.stream().sorted().toList(), List.of("1[a, c]", "2[b, d]"));
        namespace.expectCounts("carts", Map.of("active", 0, "locked", 0));
    }

    private static Flux<String> drained(ServiceBusReceiverAsyncClient session) {
        return session.receiveMessages()
                .concatMap(message -> session.complete(message).thenReturn(body(message)))
                .take(2)
                .collectList()
                .map(bodies -> session.getSessionId() + bodies)
                .doFinally(end -> session.close())
                .flux();
    }

    private static ServiceBusReceiverAsyncClient receiver(Namespace namespace) {
        return namespace.closing(
                namespace.clients.receiver().queueName("orders").disableAutoComplete().buildAsyncClient());
    }

    private static void send(Namespace namespace, String queue, int count) {
        var sender = namespace.closing(namespace.clients.sender().queueName(queue).buildAsyncClient());
        sender.sendMessages(List.of(texts(numbered(0, count)))).block(Expect.TIMEOUT);
        namespace.expectCounts(queue, Map.of("active", count));
    }
}

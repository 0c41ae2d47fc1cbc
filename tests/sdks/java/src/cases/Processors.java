package cases;

import static cases.Messages.body;
import static cases.Messages.cart;
import static cases.Messages.numbered;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.messaging.servicebus.ServiceBusErrorContext;
import com.azure.messaging.servicebus.ServiceBusErrorSource;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusProcessorClient;
import com.azure.messaging.servicebus.ServiceBusReceivedMessageContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;

/** Processors: handlers that the SDK calls with messages and errors, and whose messages it settles. */
final class Processors {
    private Processors() {
    }

    /** A message is completed when its handler returns. */
    static void completes(Namespace namespace) {
        var seen = Collections.synchronizedList(new ArrayList<String>());
        ServiceBusProcessorClient processor = processor(
                namespace, "orders", context -> seen.add(body(context.getMessage())), Processors::unexpected);
        processor.start();
        namespace.send("orders", texts(numbered(0, 5)));
        Expect.eventually("five messages are handled", () -> seen.size() == 5);
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
        Expect.equal("bodies", seen, numbered(0, 5));
    }

    /** A message is abandoned when its handler throws, and the error handler is called. */
    static void abandons(Namespace namespace) {
        namespace.send("orders", text("odd"));
        var reported = new CompletableFuture<ServiceBusErrorContext>();
        var deliveries = Collections.synchronizedList(new ArrayList<Long>());
        ServiceBusProcessorClient processor = processor(namespace, "orders", context -> {
            deliveries.add(context.getMessage().getDeliveryCount());
            if (context.getMessage().getDeliveryCount() < 2) {
                throw new IllegalStateException("it does not like it");
            }
        }, reported::complete);
        processor.start();
        var error = Namespace.await("an error", reported);
        Expect.equal("source", error.getErrorSource(), ServiceBusErrorSource.USER_CALLBACK);
        Expect.equal("entity", error.getEntityPath(), "orders");
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0, "dead_letter", 0));
        Expect.equal("deliveries", deliveries, List.of(0L, 1L, 2L));
    }

    /** A handler may settle a message itself. */
    static void settles(Namespace namespace) {
        namespace.send("orders", texts("good", "bad"));
        var processor = namespace.closing(namespace.clients
                .processor()
                .queueName("orders")
                .disableAutoComplete()
                .processMessage(context -> {
                    if (body(context.getMessage()).equals("good")) {
                        context.complete();
                    } else {
                        context.deadLetter();
                    }
                })
                .processError(Processors::unexpected)
                .buildProcessorClient());
        processor.start();
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0, "dead_letter", 1));
    }

    /** A processor reports errors, and retries. */
    static void reports(Namespace namespace) {
        var reported = new CompletableFuture<ServiceBusErrorContext>();
        processor(namespace, "missing", context -> { }, reported::complete).start();
        var error = Namespace.await("an error", reported);
        Expect.equal("entity", error.getEntityPath(), "missing");
        NotFound.expectMissing(() -> {
            throw new IllegalStateException(error.getException());
        });
    }

    /** A stopped processor receives no messages, and continues when it is started again. */
    static void stops(Namespace namespace) {
        var seen = Collections.synchronizedList(new ArrayList<String>());
        ServiceBusProcessorClient processor = processor(
                namespace, "orders", context -> seen.add(body(context.getMessage())), Processors::unexpected);
        processor.start();
        namespace.send("orders", text("first"));
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
        processor.close();
        namespace.send("orders", text("second"));
        namespace.expectCounts("orders", Map.of("active", 1, "locked", 0));
        processor.start();
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
        Expect.equal("bodies", seen, List.of("first", "second"));
    }

    /** A session processor handles several sessions at a time, each in order, and takes the next when one is idle. */
    static void sessions(Namespace namespace) {
        var seen = Collections.synchronizedList(new ArrayList<String>());
        for (String body : List.of("a", "b", "c")) {
            namespace.send("carts", cart("1", "1" + body), cart("2", "2" + body), cart("3", "3" + body));
        }
        var processor = namespace.closing(namespace.clients
                .sessionProcessor()
                .queueName("carts")
                .maxConcurrentSessions(2)
                .sessionIdleTimeout(Duration.ofMillis(500))
                .processMessage(context -> {
                    var message = context.getMessage();
                    if (message.getDeliveryCount() == 0 && body(message).equals("2b")) {
                        throw new IllegalStateException("it does not like it");
                    }
                    seen.add(body(message));
                })
                .processError(context -> { })
                .buildProcessorClient());
        processor.start();
        namespace.expectCounts("carts", Map.of("active", 0, "locked", 0, "dead_letter", 0));
        for (String session : List.of("1", "2", "3")) {
            var ofSession = seen.stream().filter(body -> body.startsWith(session)).toList();
            Expect.equal("session " + session, ofSession, List.of(session + "a", session + "b", session + "c"));
        }
    }

    private static ServiceBusProcessorClient processor(
            Namespace namespace,
            String queue,
            Consumer<ServiceBusReceivedMessageContext> onMessage,
            Consumer<ServiceBusErrorContext> onError) {
        return namespace.closing(namespace.clients
                .processor()
                .queueName(queue)
                .processMessage(onMessage)
                .processError(onError)
                .buildProcessorClient());
    }

    /** For cases that expect no error; a missing message fails the wait for it. */
    private static void unexpected(ServiceBusErrorContext context) {
        boolean isOfClosing = context.getException() instanceof ServiceBusException refusal
                && refusal.getReason() == ServiceBusFailureReason.SERVICE_COMMUNICATION_ERROR;
        if (!isOfClosing) {
            System.err.println("a processor reports " + context.getException());
        }
    }
}

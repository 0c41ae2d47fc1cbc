package cases;

import static cases.Messages.bodies;
import static cases.Messages.body;
import static cases.Messages.numbered;
import static cases.Messages.numbers;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.core.amqp.models.AmqpAnnotatedMessage;
import com.azure.core.amqp.models.AmqpMessageBody;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.models.CreateMessageBatchOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/** Sending: one message, several, a batch, and the properties that arrive at the receiver. */
final class Send {
    private Send() {
    }

    /** One message per call arrives, in the order sent. */
    static void single(Namespace namespace) {
        namespace.send("orders", texts("first", "second"));
        expectBodies(namespace, List.of("first", "second"));
    }

    /** Each message is sent when the previous one has been accepted. */
    static void oneByOne(Namespace namespace) {
        var sender = namespace.sender("orders").sdk();
        int sends = Integer.parseInt(System.getenv().getOrDefault("SERVICEBUS_SENDS", "20"));
        for (int sent = 0; sent < sends; sent++) {
            sender.sendMessage(text("x".repeat(1024)));
        }
    }

    /** A list is sent as one transfer, and its messages arrive separately. */
    static void listOfMessages(Namespace namespace) {
        namespace.sender("orders").sdk().sendMessages(List.of(texts(numbered(0, 5))));
        expectBodies(namespace, numbered(0, 5));
    }

    /** A batch accepts messages up to its size, reports when it is full, and arrives completely. */
    static void batch(Namespace namespace) {
        var sender = namespace.sender("orders").sdk();
        var batch = sender.createMessageBatch(new CreateMessageBatchOptions().setMaximumSizeInBytes(4096));
        String full = "x".repeat(512);
        while (batch.tryAddMessage(text(full))) {
            Expect.isTrue("the batch reports that it is full", batch.getCount() < 8);
        }
        Expect.isTrue("4,096 bytes take five messages of 512 and more", batch.getCount() >= 5);
        sender.sendMessages(batch);
        expectBodies(namespace, Collections.nCopies(batch.getCount(), full));
    }

    /** The receiver reads every property that an application can set on a message. */
    static void properties(Namespace namespace) {
        var values = new HashMap<String, Object>(Map.of(
                "text", "größer",
                "whole", 42L,
                "negative", -(1L << 40),
                "small", 7,
                "fraction", 0.5,
                "flag", true,
                "instant", new Date(1_709_209_815_250L)));
        values.put("nothing", null);
        var sent = Messages.with(text("{\"total\":3}"), values)
                .setMessageId("order-17")
                .setContentType("application/json")
                .setCorrelationId("request-4")
                .setSubject("placed")
                .setTo("warehouse")
                .setReplyTo("confirmations")
                .setReplyToSessionId("cart-7")
                .setPartitionKey("eu")
                .setTimeToLive(Duration.ofMinutes(5));
        namespace.send("orders", sent);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.equal("body", body(message), "{\"total\":3}");
        Expect.equal("application properties", message.getApplicationProperties(), values);
        Expect.equal("message id", message.getMessageId(), "order-17");
        Expect.equal("content type", message.getContentType(), "application/json");
        Expect.equal("correlation id", message.getCorrelationId(), "request-4");
        Expect.equal("subject", message.getSubject(), "placed");
        Expect.equal("to", message.getTo(), "warehouse");
        Expect.equal("reply to", message.getReplyTo(), "confirmations");
        Expect.equal("session to reply to", message.getReplyToSessionId(), "cart-7");
        Expect.equal("partition key", message.getPartitionKey(), "eu");
        Expect.equal("time to live", message.getTimeToLive(), Duration.ofMinutes(5));
        Expect.equal("expiry", message.getExpiresAt(), message.getEnqueuedTime().plusMinutes(5));
        Expect.equal("sequence number", message.getSequenceNumber(), 1L);
        Expect.equal("deliveries", message.getDeliveryCount(), 0L);
        Expect.equal("session", message.getSessionId(), null);
        Expect.close("enqueued time", message.getEnqueuedTime(), OffsetDateTime.now());
        receiver.complete(message);
    }

    /** The broker generates an id for a message that has none (D30). */
    static void withoutId(Namespace namespace) {
        namespace.send("orders", text("no id"));
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        Expect.isTrue("the id is 32 hex digits", message.getMessageId().matches("[0-9a-fA-F]{32}"));
        receiver.complete(message);
    }

    /** Bodies that are an AMQP value or a sequence arrive unchanged, whatever they contain. */
    static void bodyKinds(Namespace namespace) {
        List<AmqpMessageBody> kinds = List.of(
                AmqpMessageBody.fromValue(new HashMap<>(Map.of("total", 3L, "lines", List.of("a", "b")))),
                AmqpMessageBody.fromValue("text"),
                AmqpMessageBody.fromSequence(List.of(1L, 2L, "three")),
                AmqpMessageBody.fromData(new byte[] {0, -1}),
                AmqpMessageBody.fromData(new byte[0]));
        Sender sender = namespace.sender("orders");
        kinds.forEach(kind -> sender.send(new ServiceBusMessage(kind)));
        Receiver receiver = namespace.receiver("orders");
        for (AmqpMessageBody kind : kinds) {
            var message = receiver.one();
            AmqpMessageBody received = message.getRawAmqpMessage().getBody();
            Expect.equal("kind of body", received.getBodyType(), kind.getBodyType());
            Expect.equal("body", content(received), content(kind));
            receiver.complete(message);
        }
    }

    private static Object content(AmqpMessageBody body) {
        return switch (body.getBodyType()) {
            case DATA -> Arrays.toString(body.getFirstData());
            case VALUE -> body.getValue();
            case SEQUENCE -> body.getSequence();
        };
    }

    /**
     * Footers and delivery annotations are delivered, although this SDK writes string keys in footers (observed 58).
     * It sends only its own message annotations.
     */
    static void annotated(Namespace namespace) {
        var sent = text("annotated");
        AmqpAnnotatedMessage raw = sent.getRawAmqpMessage();
        raw.getDeliveryAnnotations().put("delivery", "d");
        raw.getFooter().put("footer", "f");
        namespace.send("orders", sent);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        AmqpAnnotatedMessage received = message.getRawAmqpMessage();
        Expect.equal("delivery annotation", received.getDeliveryAnnotations().get("delivery"), "d");
        Expect.equal("footer", received.getFooter(), Map.of("footer", "f"));
        Expect.equal("body", body(message), "annotated");
        receiver.complete(message);
    }

    /**
     * Arrays arrive, those of elements without a width among them: zeros, and booleans of one value (observed 68). The
     * SDK decodes what it wrote itself; a body that is a value may be an array.
     */
    static void arrays(Namespace namespace) {
        List<Object> arrays = List.of(
                new boolean[] {true, true, true, true},
                new boolean[] {true, false, true},
                new long[] {0, 0, 0, 0},
                LongStream.range(0, 40).toArray(),
                new String[] {"a", "b", "c"});
        Sender sender = namespace.sender("orders");
        arrays.forEach(array -> sender.send(new ServiceBusMessage(AmqpMessageBody.fromValue(array))));
        Receiver receiver = namespace.receiver("orders");
        for (Object array : arrays) {
            var message = receiver.one();
            Object received = message.getRawAmqpMessage().getBody().getValue();
            Expect.equal("array", shown(received), shown(array));
            receiver.complete(message);
        }
    }

    private static String shown(Object array) {
        return Arrays.deepToString(new Object[] {array});
    }

    /** A copy of a received message can be sent, with the properties that the application set. */
    static void again(Namespace namespace) {
        var lasting = Messages.identified("lasting", "m-1").setTimeToLive(Duration.ofMinutes(5));
        namespace.send("orders", lasting, text("for ever"));
        Receiver receiver = namespace.receiver("orders");
        var received = receiver.receive(2);
        receiver.complete(received);
        Sender sender = namespace.sender("orders");
        sender.send(new ServiceBusMessage(received.get(0)));
        var copy = receiver.one();
        Expect.equal("message", List.of(body(copy), copy.getMessageId()), List.of("lasting", "m-1"));
        Expect.equal("time to live", copy.getTimeToLive(), Duration.ofMinutes(5));
        receiver.complete(copy);
        // The SDK reads a missing time to live as 0, and writes none for it as long as it writes no header.
        sender.send(new ServiceBusMessage(received.get(1)));
        namespace.advance(60);
        var forEver = receiver.one();
        Expect.equal("body", body(forEver), "for ever");
        receiver.complete(forEver);
    }

    /**
     * Where the SDK writes a header it writes a time to live of 0 into the copy of a received message that had none. That
     * is refused (observed 59), and the SDK tries again for as long as it tries.
     */
    static void againDurably(Namespace namespace) {
        var sent = text("durable");
        sent.getRawAmqpMessage().getHeader().setDurable(true);
        namespace.send("orders", sent);
        Receiver receiver = namespace.receiver("orders");
        var message = receiver.one();
        receiver.complete(message);
        Sender sender = namespace.sender(namespace.tryingFor(Duration.ofSeconds(5)), "orders");
        var copy = new ServiceBusMessage(message);
        Expect.condition(AmqpErrorCondition.INTERNAL_ERROR, () -> sender.send(copy));
        sender.send(copy.setTimeToLive(Duration.ofDays(1)));
        receiver.complete(receiver.one());
    }

    /** Receives and completes all messages of the queue: these bodies in this order, numbered from 1. */
    private static void expectBodies(Namespace namespace, List<String> expected) {
        Receiver receiver = namespace.receiver("orders");
        var messages = receiver.receive(expected.size());
        Expect.equal("bodies", bodies(messages), expected);
        Expect.equal("numbers", numbers(messages), LongStream.rangeClosed(1, expected.size()).boxed().toList());
        receiver.complete(messages);
    }
}

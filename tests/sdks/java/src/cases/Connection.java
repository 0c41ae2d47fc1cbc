package cases;

import static cases.Messages.body;
import static cases.Messages.text;

import com.azure.core.credential.AccessToken;
import com.azure.core.credential.TokenCredential;
import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.Map;
import reactor.core.publisher.Mono;

/**
 * Connections: credentials, and the end of connections.
 *
 * <p>Source: service-bus-authentication-and-authorization. The namespaces of the cases accept tokens without a
 * signature.
 */
final class Connection {
    private Connection() {
    }

    /** A client with a credential sends, receives and settles; it supports only TLS. */
    static void tokenCredential(Namespace namespace) {
        ServiceBusClientBuilder clients = withCredential(namespace, Duration.ofHours(1));
        namespace.sender(clients, "orders").send(text("by token"));
        Receiver receiver = namespace.receiver(clients, builder -> builder.queueName("orders"));
        var message = receiver.one();
        Expect.equal("body", body(message), "by token");
        receiver.complete(message);
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
    }

    /** A token that has expired is refused. */
    static void expiredToken(Namespace namespace) {
        ServiceBusClientBuilder clients = withCredential(namespace, Duration.ofHours(-1));
        Expect.condition(
                AmqpErrorCondition.UNAUTHORIZED_ACCESS, () -> namespace.sender(clients, "orders").send(text("late")));
    }

    /** A builder takes only the host of a namespace; a custom endpoint sets the port. */
    private static ServiceBusClientBuilder withCredential(Namespace namespace, Duration lifetime) {
        URI endpoint = URI.create(namespace.connectionString().split(";")[0].substring("Endpoint=".length()));
        return new ServiceBusClientBuilder()
                .credential(endpoint.getHost(), credential(lifetime))
                .customEndpointAddress("https://" + endpoint.getAuthority());
    }

    /** A token with this lifetime; the SDK does not notice that a token has expired. */
    private static TokenCredential credential(Duration lifetime) {
        OffsetDateTime expiry = OffsetDateTime.now().plus(lifetime);
        Map<String, ?> claims = Map.of(
                "aud", "https://servicebus.azure.net", "sub", "a case", "exp", expiry.toEpochSecond());
        String token = part(Map.of("alg", "none", "typ", "JWT")) + "." + part(claims) + ".";
        return request -> Mono.just(new AccessToken(token, OffsetDateTime.now().plusHours(1)));
    }

    private static String part(Map<String, ?> values) {
        byte[] text = Json.write(values).getBytes(StandardCharsets.UTF_8);
        return Base64.getUrlEncoder().withoutPadding().encodeToString(text);
    }

    /** The threads of a connection end with its clients. In a separate process all threads belong to the case. */
    static void closes(Namespace namespace) throws IOException, InterruptedException {
        var answer = Alone.run("connection.closes_alone", namespace);
        Expect.equal("answer", answer, Map.of("id", 1, "passed", true, "output", ""));
    }

    /**
     * The SDK has a thread for each connection. Over WebSocket that thread loops forever without waiting when the frame
     * that closes the WebSocket gives no reason (observed 57).
     */
    static void closesAlone(Namespace namespace) {
        for (int connection = 0; connection < 3; connection++) {
            ServiceBusClientBuilder clients = namespace.clients(namespace.connectionString());
            try (var sender = clients.sender().queueName("orders").buildClient();
                    var receiver = clients.receiver().queueName("orders").buildClient()) {
                sender.sendMessage(text("m"));
                Expect.isTrue("it runs by a thread", connectionThreads() > 0);
                receiver.receiveMessages(1).forEach(receiver::complete);
            }
        }
        Expect.eventually("the threads of connections end", () -> connectionThreads() == 0);
        namespace.expectCounts("orders", Map.of("active", 0, "locked", 0));
    }

    private static long connectionThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("reactor-executor"))
                .count();
    }
}

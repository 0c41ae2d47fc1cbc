package cases;

import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.amqp.AmqpTransportType;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder.ServiceBusReceiverClientBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder.ServiceBusSessionReceiverClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;

/** The parameters of a case: a namespace as the SDK sees it, and the emulator's control API. */
final class Namespace implements AutoCloseable {
    final Map<String, String> environment;
    final ServiceBusClientBuilder clients;
    /** Closed at the end of the case, in reverse order. */
    private final ConcurrentLinkedDeque<AutoCloseable> opened = new ConcurrentLinkedDeque<>();

    Namespace(Map<String, String> environment) {
        this.environment = environment;
        Trust.OF_ALL.add(environment.get("SERVICEBUS_CA_FILE"));
        clients = clients(connectionString());
    }

    /** A builder, whose clients share a connection. */
    ServiceBusClientBuilder clients(String connectionString) {
        boolean isWebSocket = environment.get("SERVICEBUS_TRANSPORT").startsWith("websocket");
        return new ServiceBusClientBuilder()
                .connectionString(connectionString)
                .transportType(isWebSocket ? AmqpTransportType.AMQP_WEB_SOCKETS : AmqpTransportType.AMQP);
    }

    /** Clients that do not retry. */
    ServiceBusClientBuilder tryingOnce(String connectionString) {
        return clients(connectionString).retryOptions(new AmqpRetryOptions().setMaxRetries(0));
    }

    /** The same, with this timeout for each attempt. */
    ServiceBusClientBuilder tryingFor(Duration time) {
        return clients(connectionString()).retryOptions(new AmqpRetryOptions().setMaxRetries(0).setTryTimeout(time));
    }

    String connectionString() {
        return environment.get("SERVICEBUS_CONNECTION_STRING");
    }

    boolean expiresEagerly() {
        return environment.get("SERVICEBUS_EXPIRY").equals("eager");
    }

    boolean keepsLocks() {
        return environment.get("SERVICEBUS_LOCKS_ON_DETACH").equals("keep");
    }

    /** Registers a resource to be closed at the end of the case. */
    <T extends AutoCloseable> T closing(T client) {
        opened.push(client);
        return client;
    }

    Sender sender(String queue) {
        return sender(clients, queue);
    }

    Sender sender(ServiceBusClientBuilder by, String queue) {
        return new Sender(closing(by.sender().queueName(queue).buildClient()));
    }

    Sender publisher(String topic) {
        return new Sender(closing(clients.sender().topicName(topic).buildClient()));
    }

    /** Sends the messages one by one and closes the sender. */
    void send(String queue, ServiceBusMessage... messages) {
        try (var sender = clients.sender().queueName(queue).buildClient()) {
            new Sender(sender).send(messages);
        }
    }

    void publish(String topic, ServiceBusMessage... messages) {
        try (var sender = clients.sender().topicName(topic).buildClient()) {
            new Sender(sender).send(messages);
        }
    }

    /** Its link attaches at the first receive. */
    Receiver receiver(String queue) {
        return receiver(queue, builder -> builder);
    }

    Receiver receiver(
            String queue, Function<ServiceBusReceiverClientBuilder, ServiceBusReceiverClientBuilder> settings) {
        return receiver(clients, builder -> settings.apply(builder.queueName(queue)));
    }

    Receiver receiver(
            ServiceBusClientBuilder by,
            Function<ServiceBusReceiverClientBuilder, ServiceBusReceiverClientBuilder> settings) {
        return new Receiver(closing(settings.apply(withoutRenewal(by)).buildClient()));
    }

    /** Otherwise the SDK would renew every lock for five minutes, which cases would have to account for. */
    private static ServiceBusReceiverClientBuilder withoutRenewal(ServiceBusClientBuilder by) {
        return by.receiver().maxAutoLockRenewDuration(Duration.ZERO);
    }

    Receiver destructive(String queue) {
        return receiver(queue, builder -> builder.receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE));
    }

    Receiver deadLetters(String queue) {
        return receiver(queue, builder -> builder.subQueue(SubQueue.DEAD_LETTER_QUEUE));
    }

    Receiver subscriber(String topic, String subscription) {
        return subscriber(topic, subscription, builder -> builder);
    }

    Receiver subscriber(
            String topic,
            String subscription,
            Function<ServiceBusReceiverClientBuilder, ServiceBusReceiverClientBuilder> settings) {
        return receiver(
                clients, builder -> settings.apply(builder.topicName(topic).subscriptionName(subscription)));
    }

    Receiver deadLetters(String topic, String subscription) {
        return subscriber(topic, subscription, builder -> builder.subQueue(SubQueue.DEAD_LETTER_QUEUE));
    }

    Receiver session(String queue, String id) {
        return accepted(sessions(queue), receivers -> receivers.acceptSession(id));
    }

    Receiver nextSession(String queue) {
        return accepted(sessions(queue), ServiceBusSessionReceiverClient::acceptNextSession);
    }

    Receiver accepted(
            ServiceBusSessionReceiverClient sessions,
            Function<ServiceBusSessionReceiverClient, ServiceBusReceiverClient> accept) {
        return new Receiver(closing(accept.apply(sessions)));
    }

    /**
     * Over a separate connection. On one connection the SDK has one link for each session of an entity, and gives
     * that to every client that accepts the session.
     */
    ServiceBusSessionReceiverClient sessions(String queue) {
        return sessions(clients(connectionString()), builder -> builder.queueName(queue));
    }

    ServiceBusSessionReceiverClient sessions(
            ServiceBusClientBuilder by,
            Function<ServiceBusSessionReceiverClientBuilder, ServiceBusSessionReceiverClientBuilder> settings) {
        var builder = by.sessionReceiver().maxAutoLockRenewDuration(Duration.ZERO);
        return closing(settings.apply(builder).buildClient());
    }

    /** Runs a function concurrently with the case. */
    static <T> CompletableFuture<T> start(Supplier<T> work) {
        var done = new CompletableFuture<T>();
        Run.beside(() -> {
            try {
                done.complete(work.get());
            } catch (Throwable failure) {
                done.completeExceptionally(failure);
            }
        }).start();
        return done;
    }

    /** Returns the result of a started function, or fails after a timeout. */
    static <T> T await(String what, CompletableFuture<T> done) {
        try {
            return done.get(Expect.TIMEOUT.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException failure) {
            throw new AssertionError(what + " failed", failure.getCause());
        } catch (InterruptedException | TimeoutException failure) {
            throw new AssertionError(what + " did not come in time", failure);
        }
    }

    /** Advances the namespace's clock, and returns when everything that is due by then has been processed. */
    void advance(int seconds) {
        control("POST", "clock/advance", Map.of("seconds", seconds));
    }

    /** Changes these properties of a queue and keeps the others. */
    void configure(String queue, Map<String, ?> properties) {
        control("PUT", "queues/" + queue, properties);
    }

    void delete(String queue) {
        control("DELETE", "queues/" + queue, Map.of());
    }

    Map<String, Object> control(String method, String path, Map<String, ?> body) {
        URI uri = URI.create(environment.get("SERVICEBUS_CONTROL_URL").replaceAll("/$", "") + "/" + path);
        return unchecked(() -> {
            var connection = (HttpURLConnection) uri.toURL().openConnection();
            // A pooled connection may be closed as idle just when the next request uses it.
            connection.setRequestProperty("connection", "close");
            connection.setRequestProperty("content-type", "application/json");
            connection.setReadTimeout((int) Expect.TIMEOUT.toMillis());
            connection.setRequestMethod(method);
            if (!method.equals("GET")) {
                connection.setDoOutput(true);
                connection.getOutputStream().write(Json.write(body).getBytes(StandardCharsets.UTF_8));
            }
            int status = connection.getResponseCode();
            try (InputStream answer = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
                String text = answer == null ? "" : new String(answer.readAllBytes(), StandardCharsets.UTF_8);
                Expect.isTrue(path + ": " + status + " " + text, status < 400);
                return Json.parse(text);
            }
        });
    }

    static <T> T unchecked(Callable<T> action) {
        try {
            return action.call();
        } catch (IOException problem) {
            throw new UncheckedIOException(problem);
        } catch (RuntimeException problem) {
            throw problem;
        } catch (Exception problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** The number of events of a kind in the timeline of an entity. */
    int count(String entity, String kind) {
        String path = "timeline?entity=" + URLEncoder.encode(entity, StandardCharsets.UTF_8);
        var counters = (Map<?, ?>) control("GET", path, Map.of()).get("counters");
        return counters.get(kind) instanceof Number times ? times.intValue() : 0;
    }

    /** Waits until the emulator's counts of an entity have these values, without a link to the entity. */
    void expectCounts(String entity, Map<String, Integer> expected) {
        var last = new TreeMap<String, Integer>();
        String path = "counts?entity=" + URLEncoder.encode(entity, StandardCharsets.UTF_8);
        try {
            Expect.eventually("counts of " + entity, () -> {
                Map<String, Object> counts = control("GET", path, Map.of());
                expected.keySet().forEach(name -> last.put(name, ((Number) counts.get(name)).intValue()));
                return last.equals(expected);
            });
        } catch (AssertionError failure) {
            throw new AssertionError(
                    "counts of " + entity + ": expected " + new TreeMap<>(expected) + ", got " + last, failure);
        }
    }

    @Override
    public void close() throws Exception {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }
}

package cases;

import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.spring.cloud.service.servicebus.properties.ServiceBusEntityType;
import com.azure.spring.messaging.AzureHeaders;
import com.azure.spring.messaging.ConsumerIdentifier;
import com.azure.spring.messaging.PropertiesSupplier;
import com.azure.spring.messaging.servicebus.core.ServiceBusProducerFactory;
import com.azure.spring.messaging.servicebus.core.ServiceBusTemplate;
import com.azure.spring.messaging.servicebus.core.properties.ConsumerProperties;
import com.azure.spring.messaging.servicebus.support.ServiceBusMessageHeaders;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.messaging.MessageHeaders;
import org.springframework.messaging.support.MessageBuilder;

/** An application of Spring Cloud Azure that runs its cases; exits with 1 if a case has failed. */
@SpringBootApplication
public class Cases {
    private static final int HOUR_MILLIS = 3_600_000;

    interface Case {
        void run() throws Exception;
    }

    public static void main(String[] arguments) {
        ConfigurableApplicationContext application = SpringApplication.run(Cases.class, arguments);
        Cases cases = new Cases();
        boolean failed = false;
        for (Map.Entry<String, Case> entry : cases.of(application).entrySet()) {
            try {
                entry.getValue().run();
                System.out.println("passed " + entry.getKey());
            } catch (Throwable failure) {
                failed = true;
                System.out.println("failed " + entry.getKey());
                failure.printStackTrace(System.out);
            }
        }
        application.close();
        // Threads of the SDK may still be running.
        System.exit(failed ? 1 : 0);
    }

    /** A template waits for a reply in a session. */
    @Bean
    PropertiesSupplier<ConsumerIdentifier, ConsumerProperties> consumers() {
        return consumer -> {
            ConsumerProperties properties = new ConsumerProperties();
            properties.setSessionEnabled(true);
            return properties;
        };
    }

    private Map<String, Case> of(ConfigurableApplicationContext application) {
        ServiceBusTemplate template = application.getBean(ServiceBusTemplate.class);
        Listeners listeners = application.getBean(Listeners.class);
        Streams streams = application.getBean(Streams.class);
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("listener", () -> listener(template, listeners));
        cases.put("topic", () -> topic(application, listeners));
        cases.put("poison", () -> poison(template, listeners));
        cases.put("scheduled", () -> scheduled(template));
        cases.put("request", () -> request(template));
        cases.put("streams", () -> streams(streams));
        cases.put("rejection", () -> rejection(application.getBean(StreamBridge.class), streams));
        cases.put("rest", Cases::rest);
        return cases;
    }

    /** A listener of the queue gets a message that a template sends. */
    private void listener(ServiceBusTemplate template, Listeners listeners) throws Exception {
        Listeners.Order order = new Listeners.Order("o-17", 12);
        template.sendAsync("orders", MessageBuilder.withPayload(order)
                .setHeader(ServiceBusMessageHeaders.MESSAGE_ID, "m-1")
                .setHeader("color", "red")
                .build()).block();
        expect(new Listeners.Taken(order, "m-1", "red"), listeners.orders.next());
    }

    /** A listener of a subscription gets a message that is sent to the topic. */
    private void topic(ConfigurableApplicationContext application, Listeners listeners) throws Exception {
        ServiceBusTemplate template = new ServiceBusTemplate(application.getBean(ServiceBusProducerFactory.class));
        template.setDefaultEntityType(ServiceBusEntityType.TOPIC);
        template.sendAsync("prices", MessageBuilder.withPayload("12.50").build()).block();
        expect("12.50", listeners.prices.next());
    }

    /** The message of a listener that throws is delivered again until it is dead-lettered. */
    private void poison(ServiceBusTemplate template, Listeners listeners) throws Exception {
        template.sendAsync("poison", MessageBuilder.withPayload("bad").build()).block();
        List<Long> attempts = List.of(listeners.attempts.next(), listeners.attempts.next(), listeners.attempts.next());
        expect(List.of(0L, 1L, 2L), attempts);
    }

    /** A scheduled message waits; the emulator's counts show it. */
    private void scheduled(ServiceBusTemplate template) {
        template.sendAsync("later", MessageBuilder.withPayload("tomorrow")
                .setHeader(AzureHeaders.SCHEDULED_ENQUEUE_MESSAGE, HOUR_MILLIS)
                .build()).block();
    }

    /** A template sends a request, and a listener replies. */
    private void request(ServiceBusTemplate template) {
        ServiceBusReceivedMessage reply = template.sendAndReceive("questions", MessageBuilder.withPayload("life")
                .setHeader(MessageHeaders.REPLY_CHANNEL, "answers")
                .build());
        expect("the answer to life", reply.getBody().toString());
    }

    /** A supplier sends, a function forwards, a consumer confirms; the supplier does not wait, so order may change. */
    private void streams(Streams streams) throws Exception {
        expect(Set.of("even 0", "even 2"), Set.of(streams.confirmed.next(), streams.confirmed.next()));
    }

    /** A message that a consumer of the binder rejects is dead-lettered; it is sent through the bridge. */
    private void rejection(StreamBridge bridge, Streams streams) throws Exception {
        expect(true, bridge.send("claims-out-0", "too much"));
        expect("too much", streams.rejected.next());
    }

    /** All delivered messages have been settled before this process ends. */
    private static void rest() throws Exception {
        URI settled = URI.create(System.getenv("SERVICEBUS_CONTROL_URL") + "/settled");
        HttpRequest request = HttpRequest.newBuilder(settled)
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\"within\":45}"))
                .build();
        HttpResponse<String> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new AssertionError(response.body());
        }
    }

    private static void expect(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }
}

package cases;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.OffsetDateTime;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.apache.camel.CamelContext;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.component.azure.servicebus.ServiceBusComponent;
import org.apache.camel.component.azure.servicebus.ServiceBusConstants;
import org.apache.camel.impl.DefaultCamelContext;

/** Routes of Camel, and cases that send to them; exits with 1 if a case has failed. */
public final class Cases {
    interface Case {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Routes routes = new Routes();
        boolean failed = false;
        try (CamelContext context = new DefaultCamelContext()) {
            // A user sets only the connection string that the emulator prints.
            ServiceBusComponent component = context.getComponent("azure-servicebus", ServiceBusComponent.class);
            component.getConfiguration().setConnectionString(System.getenv("SERVICEBUS_CONNECTION_STRING"));
            context.addRoutes(routes);
            context.start();
            for (Map.Entry<String, Case> entry : of(context.createProducerTemplate(), routes).entrySet()) {
                try {
                    entry.getValue().run();
                    System.out.println("passed " + entry.getKey());
                } catch (Throwable failure) {
                    failed = true;
                    System.out.println("failed " + entry.getKey());
                    failure.printStackTrace(System.out);
                }
            }
        }
        // Threads of the SDK may still be running.
        System.exit(failed ? 1 : 0);
    }

    private static Map<String, Case> of(ProducerTemplate template, Routes routes) {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("queue", () -> queue(template, routes));
        cases.put("route", () -> route(template, routes));
        cases.put("batch", () -> batch(template, routes));
        cases.put("topic", () -> topic(template, routes));
        cases.put("session", () -> session(template, routes));
        cases.put("receive_and_delete", () -> receiveAndDelete(template, routes));
        cases.put("poison", () -> poison(template, routes));
        cases.put("dead_letter", () -> deadLetter(template, routes));
        cases.put("scheduled", () -> scheduled(template));
        cases.put("rest", Cases::rest);
        return cases;
    }

    /** A route receives messages from a queue, with correlation id and headers. */
    private static void queue(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBodyAndHeaders("azure-servicebus:orders", "twelve", Map.of(
                ServiceBusConstants.CORRELATION_ID, "c-1", "color", "red"));
        expect(new Routes.Taken("twelve", "c-1", "red"), routes.orders.next());
    }

    /** A route between two queues. */
    private static void route(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:in", "onward");
        expect("onward", routes.passedOn.next());
    }

    /** A list is sent as one batch. */
    private static void batch(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:out", List.of("one", "two", "three"));
        Set<String> found = Set.of(routes.passedOn.next(), routes.passedOn.next(), routes.passedOn.next());
        expect(Set.of("one", "two", "three"), found);
    }

    private static void topic(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:prices?serviceBusType=topic", "12.50");
        expect("12.50", routes.prices.next());
    }

    private static void session(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:carts?sessionId=cart-7", "a pear");
        expect("cart-7 a pear", routes.carts.next());
    }

    private static void receiveAndDelete(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:fleeting", "gone");
        expect("gone", routes.fleeting.next());
    }

    /** The message of a route that fails is delivered again until it is dead-lettered. */
    private static void poison(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:poison", "bad");
        List<Long> attempts = List.of(routes.attempts.next(), routes.attempts.next(), routes.attempts.next());
        expect(List.of(0L, 1L, 2L), attempts);
    }

    /** A route dead-letters the message when it fails; another route reads the dead-letter queue. */
    private static void deadLetter(ProducerTemplate template, Routes routes) throws Exception {
        template.sendBody("azure-servicebus:claims", "a claim");
        expect("java.lang.IllegalArgumentException: too much", routes.reasons.next());
    }

    /** A scheduled message waits; the emulator's counts show it. */
    private static void scheduled(ProducerTemplate template) {
        template.sendBodyAndHeader("azure-servicebus:later?producerOperation=scheduleMessages", "tomorrow",
                ServiceBusConstants.SCHEDULED_ENQUEUE_TIME, OffsetDateTime.now().plusDays(1));
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

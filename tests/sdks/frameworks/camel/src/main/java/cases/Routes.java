package cases;

import org.apache.camel.Exchange;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.azure.servicebus.ServiceBusConstants;

/** Consuming routes: the end of a route completes a message, its failure abandons or dead-letters it. */
final class Routes extends RouteBuilder {
    record Taken(String body, String correlationId, Object color) {}

    final Seen<Taken> orders = new Seen<>();
    final Seen<String> passedOn = new Seen<>();
    final Seen<String> prices = new Seen<>();
    final Seen<String> carts = new Seen<>();
    final Seen<Long> attempts = new Seen<>();
    final Seen<String> fleeting = new Seen<>();
    final Seen<String> reasons = new Seen<>();

    @Override
    public void configure() {
        // The broker retries.
        errorHandler(noErrorHandler());

        from("azure-servicebus:orders").process(exchange -> orders.add(new Taken(
                body(exchange),
                exchange.getMessage().getHeader(ServiceBusConstants.CORRELATION_ID, String.class),
                exchange.getMessage().getHeader("color"))));

        from("azure-servicebus:in").to("azure-servicebus:out");
        from("azure-servicebus:out").process(exchange -> passedOn.add(body(exchange)));

        from("azure-servicebus:prices?serviceBusType=topic&subscriptionName=alerts")
                .process(exchange -> prices.add(body(exchange)));

        from("azure-servicebus:carts?sessionEnabled=true").process(exchange -> carts.add(
                exchange.getMessage().getHeader(ServiceBusConstants.SESSION_ID) + " " + body(exchange)));

        from("azure-servicebus:fleeting?serviceBusReceiveMode=RECEIVE_AND_DELETE")
                .process(exchange -> fleeting.add(body(exchange)));

        from("azure-servicebus:poison").process(exchange -> {
            attempts.add(exchange.getMessage().getHeader(ServiceBusConstants.DELIVERY_COUNT, Long.class));
            throw new IllegalStateException("as the case asks");
        });

        from("azure-servicebus:claims?enableDeadLettering=true").process(exchange -> {
            throw new IllegalArgumentException("too much");
        });
        from("azure-servicebus:claims?subQueue=DEAD_LETTER_QUEUE").process(exchange -> reasons.add(
                exchange.getMessage().getHeader(ServiceBusConstants.DEAD_LETTER_REASON, String.class)));
    }

    private static String body(Exchange exchange) {
        return exchange.getMessage().getBody(String.class);
    }
}

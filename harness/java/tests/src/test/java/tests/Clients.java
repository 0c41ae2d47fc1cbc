package tests;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.core.amqp.AmqpRetryOptions;
import java.time.Duration;
import java.util.function.UnaryOperator;
import servicebus.emulator.ServiceBus;

/** Clients, with Microsoft's SDK. */
final class Clients {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private Clients() {
    }

    static void send(ServiceBus servicebus, String queue) {
        send(servicebus, queue, message -> message);
    }

    static void send(ServiceBus servicebus, String queue, UnaryOperator<ServiceBusMessage> properties) {
        send(servicebus.connectionString(), queue, properties);
    }

    static void send(String connectionString, String queue, UnaryOperator<ServiceBusMessage> properties) {
        try (var sender = builder(connectionString).sender().queueName(queue).buildClient()) {
            sender.sendMessage(properties.apply(new ServiceBusMessage("12").setMessageId("o-17")));
        }
    }

    static void complete(ServiceBus servicebus, String queue) {
        var receivers = builder(servicebus.connectionString()).receiver().queueName(queue).disableAutoComplete();
        try (var receiver = receivers.buildClient()) {
            ServiceBusReceivedMessage message = receiver.receiveMessages(1, TIMEOUT).iterator().next();
            receiver.complete(message);
        }
    }

    private static ServiceBusClientBuilder builder(String connectionString) {
        return new ServiceBusClientBuilder()
                .connectionString(connectionString)
                .retryOptions(new AmqpRetryOptions().setMaxRetries(0));
    }
}

import com.azure.identity.DefaultAzureCredentialBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import java.time.Duration;

/** Sends and receives with a default credential, like a program without settings for an emulator. */
class Identity {
    public static void main(String[] arguments) {
        ServiceBusClientBuilder clients = new ServiceBusClientBuilder()
                .credential(
                        System.getenv("SERVICEBUS_FULLY_QUALIFIED_NAMESPACE"),
                        new DefaultAzureCredentialBuilder().build())
                .customEndpointAddress(System.getenv("SERVICEBUS_TLS_ENDPOINT"));
        try (var sender = clients.sender().queueName("queue.1").buildClient();
                var receiver = clients.receiver().queueName("queue.1").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("an order"));
            receiver.receiveMessages(1, Duration.ofSeconds(60)).forEach(receiver::complete);
        }
        System.exit(0);
    }
}

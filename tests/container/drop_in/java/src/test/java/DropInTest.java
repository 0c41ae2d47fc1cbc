import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import org.junit.jupiter.api.Test;
import org.testcontainers.azure.ServiceBusEmulatorContainer;
import org.testcontainers.mssqlserver.MSSQLServerContainer;
import org.testcontainers.utility.DockerImageName;
import org.testcontainers.utility.MountableFile;

/** Testcontainers' own class for the official emulator, pointed at the image. */
class DropInTest {
    private static final DockerImageName OURS = DockerImageName.parse(System.getenv("SERVICEBUS_EMULATOR_IMAGE"));

    /** The official image's name, as the class has it. */
    private static String official() throws ReflectiveOperationException {
        var name = ServiceBusEmulatorContainer.class.getDeclaredField("DEFAULT_IMAGE_NAME");
        name.setAccessible(true);
        return ((DockerImageName) name.get(null)).getUnversionedPart();
    }

    /** The class requires a database; this one is never started. */
    static final class NoDatabase extends MSSQLServerContainer {
        NoDatabase() {
            super(OURS.asCompatibleSubstituteFor(MSSQLServerContainer.IMAGE));
        }

        @Override
        public void start() {}
    }

    @Test
    void messagesAreSentAndReceived() throws Exception {
        try (var servicebus = new ServiceBusEmulatorContainer(OURS.asCompatibleSubstituteFor(official()))
                .acceptLicense()
                .withConfig(MountableFile.forHostPath(System.getenv("CONFIG_PATH")))
                .withMsSqlServerContainer(new NoDatabase())) {
            servicebus.start();
            var client = new ServiceBusClientBuilder().connectionString(servicebus.getConnectionString());
            try (var sender = client.sender().queueName("orders").buildClient();
                    var receiver = client.receiver().queueName("orders").buildClient()) {
                sender.sendMessage(new ServiceBusMessage("an order"));
                var message = receiver.receiveMessages(1).iterator().next();
                assertEquals("an order", message.getBody().toString());
                receiver.complete(message);
            }
        }
    }
}

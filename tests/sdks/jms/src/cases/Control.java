package cases;

import java.net.URI;
import java.net.ServerSocket;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.api.core.SimpleString;

/** The control: an Artemis broker in this process, in memory, with an AMQP listener on a free port. */
final class Control {
    private static final Control STARTED = new Control();

    private final int port;

    private Control() {
        try (var free = new ServerSocket(0)) {
            port = free.getLocalPort();
        } catch (java.io.IOException problem) {
            throw new IllegalStateException(problem);
        }
        try {
            var configuration = new ConfigurationImpl();
            configuration.setPersistenceEnabled(false).setSecurityEnabled(false).setJMXManagementEnabled(false);
            configuration.addAcceptorConfiguration("amqp", "tcp://127.0.0.1:" + port + "?protocols=AMQP");
            configuration.addAddressSetting("#", new AddressSettings()
                    .setDeadLetterAddress(SimpleString.of("DLQ"))
                    .setExpiryAddress(SimpleString.of("expired"))
                    .setMaxDeliveryAttempts(10)
                    .setRedeliveryDelay(0));
            new EmbeddedActiveMQ().setConfiguration(configuration).start();
        } catch (Exception problem) {
            throw new IllegalStateException("Artemis does not start", problem);
        }
    }

    /** The address of its listener; the first call starts the broker. */
    static URI address() {
        return URI.create("amqp://127.0.0.1:" + STARTED.port);
    }
}

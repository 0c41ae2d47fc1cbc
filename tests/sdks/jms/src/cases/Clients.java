package cases;

import com.azure.servicebus.jms.ServiceBusJmsConnectionFactory;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactorySettings;
import jakarta.jms.ConnectionFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.qpid.jms.JmsConnectionExtensions;
import org.apache.qpid.jms.JmsConnectionFactory;

/** The clients, each as its users set it up, but that nothing waits for ever. */
final class Clients {
    private static final Map<String, String> TIMEOUTS = Map.of(
            "jms.connectTimeout", "30000",
            "jms.requestTimeout", "60000",
            "jms.sendTimeout", "60000",
            "jms.closeTimeout", "10000");

    private Clients() {
    }

    /** A factory with further options of Qpid JMS, of which the key {@code failover} names a proxy to connect by. */
    static ConnectionFactory factory(Map<String, String> environment, Map<String, String> options) {
        var all = new TreeMap<>(TIMEOUTS);
        all.putAll(options);
        switch (environment.get("SERVICEBUS_JMS_CLIENT")) {
            case "control":
                return new JmsConnectionFactory(uri(Control.address().toString(), all));
            case "microsoft":
                return microsoft(environment, all);
            default:
                return qpid(environment, all);
        }
    }

    private static ConnectionFactory microsoft(Map<String, String> environment, Map<String, String> options) {
        trust(environment);
        var settings = new ServiceBusJmsConnectionFactorySettings(new HashMap<>(options));
        settings.setStartupMaxReconnectAttempts(1);
        return new ServiceBusJmsConnectionFactory(environment.get("SERVICEBUS_CONNECTION_STRING"), settings);
    }

    private static ConnectionFactory qpid(Map<String, String> environment, Map<String, String> options) {
        String connectionString = environment.get("SERVICEBUS_CONNECTION_STRING");
        boolean isSecured = environment.get("SERVICEBUS_TRANSPORT").equals("tls");
        if (isSecured) {
            trust(environment);
        }
        String address = (isSecured ? "amqps://" : "amqp://") + part(connectionString, "Endpoint").replace("sb://", "");
        var factory = new JmsConnectionFactory(
                part(connectionString, "SharedAccessKeyName"),
                part(connectionString, "SharedAccessKey"),
                uri(address, options));
        if (!environment.get("SERVICEBUS_JMS_CLIENT").equals("plain")) {
            factory.setExtension(
                    JmsConnectionExtensions.AMQP_OPEN_PROPERTIES.toString(),
                    (connection, uri) -> Map.of("com.microsoft:is-client-provider", true));
        }
        return factory;
    }

    private static String uri(String address, Map<String, String> options) {
        var query = new StringBuilder();
        options.forEach((name, value) -> query.append(query.isEmpty() ? "?" : "&").append(name).append('=').append(value));
        return address.replaceAll("/$", "") + query;
    }

    /** The authority of the emulator, which is the same for all namespaces of a run. */
    static void trust(Map<String, String> environment) {
        System.setProperty("javax.net.ssl.trustStore", environment.get("SERVICEBUS_TRUST_STORE"));
        System.setProperty("javax.net.ssl.trustStorePassword", "changeit");
    }

    /** A part of a connection string. */
    static String part(String connectionString, String name) {
        for (String part : connectionString.split(";")) {
            if (part.startsWith(name + "=")) {
                return part.substring(name.length() + 1);
            }
        }
        throw new IllegalArgumentException(name);
    }
}

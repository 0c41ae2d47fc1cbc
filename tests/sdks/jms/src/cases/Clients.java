package cases;

import com.azure.servicebus.jms.ServiceBusJmsConnectionFactory;
import com.azure.servicebus.jms.ServiceBusJmsConnectionFactorySettings;
import jakarta.jms.ConnectionFactory;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.qpid.jms.JmsConnectionExtensions;
import org.apache.qpid.jms.JmsConnectionFactory;

/** The clients, each configured as its users do, but with timeouts. */
final class Clients {
    private static final Map<String, String> TIMEOUTS = Map.of(
            "jms.connectTimeout", "30000",
            "jms.requestTimeout", "60000",
            "jms.sendTimeout", "60000",
            "jms.closeTimeout", "10000");

    private Clients() {
    }

    /** A factory with further options of Qpid JMS. */
    static ConnectionFactory factory(Map<String, String> environment, Map<String, String> options) {
        return factory(environment, address(environment), false, options);
    }

    /** A factory of connections through a proxy that can cut them, with failover. */
    static ConnectionFactory reconnecting(Map<String, String> environment, int port, Map<String, String> options) {
        return factory(environment, new InetSocketAddress("127.0.0.1", port), true, options);
    }

    /** A factory of connections to a local port, without failover. */
    static ConnectionFactory once(Map<String, String> environment, int port, Map<String, String> options) {
        return factory(environment, new InetSocketAddress("127.0.0.1", port), false, options);
    }

    /** Where the broker listens for connections of a case. */
    static InetSocketAddress address(Map<String, String> environment) {
        if (environment.get("SERVICEBUS_JMS_CLIENT").equals("control")) {
            return new InetSocketAddress("127.0.0.1", Control.address().getPort());
        }
        var endpoint = URI.create(part(environment.get("SERVICEBUS_CONNECTION_STRING"), "Endpoint"));
        int standard = isSecured(environment) ? 5671 : 5672;
        return new InetSocketAddress(endpoint.getHost(), endpoint.getPort() < 0 ? standard : endpoint.getPort());
    }

    private static ConnectionFactory factory(
            Map<String, String> environment, InetSocketAddress at, boolean reconnects, Map<String, String> options) {
        var all = new TreeMap<>(TIMEOUTS);
        all.putAll(options);
        if (isSecured(environment)) {
            trust(environment);
        }
        return environment.get("SERVICEBUS_JMS_CLIENT").equals("microsoft")
                ? microsoft(environment, at, reconnects, all)
                : qpid(environment, at, reconnects, all);
    }

    private static ConnectionFactory microsoft(
            Map<String, String> environment, InetSocketAddress at, boolean reconnects, Map<String, String> options) {
        String connectionString = environment.get("SERVICEBUS_CONNECTION_STRING");
        var all = new HashMap<>(options);
        // Not by the property of the settings, which the library for `javax.jms` writes so that Qpid JMS cannot read it.
        all.put("failover.startupMaxReconnectAttempts", "1");
        if (at.equals(address(environment))) {
            var settings = new ServiceBusJmsConnectionFactorySettings(all);
            return new ServiceBusJmsConnectionFactory(connectionString, settings);
        }
        var settings = new ServiceBusJmsConnectionFactorySettings(reconnects ? all : new HashMap<>(options));
        settings.setShouldReconnect(reconnects);
        return new ServiceBusJmsConnectionFactory(
                part(connectionString, "SharedAccessKeyName"),
                part(connectionString, "SharedAccessKey"),
                // As a name, because the library requires a URI, and an address with a port is none.
                "localhost:" + at.getPort(),
                settings);
    }

    private static ConnectionFactory qpid(
            Map<String, String> environment, InetSocketAddress at, boolean reconnects, Map<String, String> options) {
        String address = (isSecured(environment) ? "amqps://" : "amqp://") + at.getHostString() + ":" + at.getPort();
        var query = new StringBuilder();
        options.forEach((name, value) -> query.append(query.isEmpty() ? "?" : "&").append(name).append('=').append(value));
        var factory = new JmsConnectionFactory((reconnects ? "failover:(" + address + ")" : address) + query);
        String connectionString = environment.get("SERVICEBUS_CONNECTION_STRING");
        if (connectionString != null) {
            factory.setUsername(part(connectionString, "SharedAccessKeyName"));
            factory.setPassword(part(connectionString, "SharedAccessKey"));
        }
        if (environment.get("SERVICEBUS_JMS_CLIENT").equals("qpid")) {
            factory.setExtension(
                    JmsConnectionExtensions.AMQP_OPEN_PROPERTIES.toString(),
                    (connection, uri) -> Map.of("com.microsoft:is-client-provider", true));
        }
        return factory;
    }

    private static boolean isSecured(Map<String, String> environment) {
        return "tls".equals(environment.get("SERVICEBUS_TRANSPORT"));
    }

    /** The authority of the emulator, which is the same for all namespaces of a run. */
    private static void trust(Map<String, String> environment) {
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

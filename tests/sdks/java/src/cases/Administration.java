package cases;

import com.azure.core.http.HttpClient;
import com.azure.core.http.netty.NettyAsyncHttpClientBuilder;
import com.azure.core.util.UrlBuilder;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClient;
import com.azure.messaging.servicebus.administration.ServiceBusAdministrationClientBuilder;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.TopicProperties;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.net.URI;
import java.util.List;

/** Administration clients; they support only TLS. */
final class Administration {
    /** It has its own threads and connections, so all cases share one. */
    private static final HttpClient TRUSTING = trusting();

    private Administration() {
    }

    static ServiceBusAdministrationClient of(Namespace namespace) {
        return of(connectionString(namespace));
    }

    static ServiceBusAdministrationClient of(String connectionString) {
        int port = URI.create(connectionString.split(";")[0].substring("Endpoint=".length())).getPort();
        return new ServiceBusAdministrationClientBuilder()
                .connectionString(connectionString)
                .httpClient(TRUSTING)
                // The SDK keeps the host of a connection string and drops its port.
                .addPolicy((context, next) -> {
                    var request = context.getHttpRequest();
                    UrlBuilder url = UrlBuilder.parse(request.getUrl()).setPort(port);
                    request.setUrl(url.toString());
                    return next.process();
                })
                .buildClient();
    }

    static String connectionString(Namespace namespace) {
        return namespace.environment.get("SERVICEBUS_ADMIN_CONNECTION_STRING");
    }

    /** The default HTTP client of the SDK uses the JVM's trust store, whatever the default SSL context. */
    private static HttpClient trusting() {
        SslContext context =
                Namespace.unchecked(() -> SslContextBuilder.forClient().trustManager(Trust.OF_ALL).build());
        var transport = reactor.netty.http.client.HttpClient.create().secure(tls -> tls.sslContext(context));
        return new NettyAsyncHttpClientBuilder(transport).build();
    }

    static List<String> queues(ServiceBusAdministrationClient client) {
        return Messages.mapped(client.listQueues(), QueueProperties::getName);
    }

    static List<String> topics(ServiceBusAdministrationClient client) {
        return Messages.mapped(client.listTopics(), TopicProperties::getName);
    }
}

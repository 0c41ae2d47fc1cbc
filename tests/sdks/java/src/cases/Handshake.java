package cases;

import java.io.FileInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

/**
 * Performs a TLS handshake in memory: a server with a certificate, and a client that trusts an authority. Prints
 * "trusted", or why the certificate is not trusted.
 *
 * <pre>Handshake authority.pem certificate.pem key.pem name</pre>
 */
public final class Handshake {
    private Handshake() {
    }

    public static void main(String[] arguments) throws IOException, GeneralSecurityException {
        SSLContext server = server(certificate(arguments[1]), arguments[2]);
        SSLContext client = client(certificate(arguments[0]));
        try (var listener = server.getServerSocketFactory().createServerSocket(0);
                var connection = new Socket("localhost", listener.getLocalPort())) {
            var served = CompletableFuture.runAsync(() -> {
                try (var accepted = (SSLSocket) listener.accept()) {
                    accepted.startHandshake();
                } catch (IOException refused) {
                    // The client reports the reason.
                }
            });
            var socket = (SSLSocket) client.getSocketFactory().createSocket(connection, arguments[3], 443, true);
            var parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            socket.setSSLParameters(parameters);
            try (socket) {
                socket.startHandshake();
                System.out.println("trusted");
            } catch (SSLException refusal) {
                System.out.println(refusal.getMessage());
            }
            served.join();
        }
    }

    private static SSLContext server(Certificate certificate, String keyFile)
            throws IOException, GeneralSecurityException {
        String pem = Files.readString(Path.of(keyFile)).replaceAll("-----[^-]+-----|\\s", "");
        var key = KeyFactory.getInstance("EC")
                .generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
        KeyStore store = emptyStore();
        store.setKeyEntry("server", key, new char[0], new Certificate[] {certificate});
        var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), null, null);
        return context;
    }

    private static SSLContext client(Certificate authority) throws IOException, GeneralSecurityException {
        KeyStore store = emptyStore();
        store.setCertificateEntry("authority", authority);
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static KeyStore emptyStore() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    private static Certificate certificate(String file) throws IOException, GeneralSecurityException {
        try (var stream = new FileInputStream(file)) {
            return CertificateFactory.getInstance("X.509").generateCertificate(stream);
        }
    }
}

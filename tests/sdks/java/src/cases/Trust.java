package cases;

import java.io.FileInputStream;
import java.io.IOException;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.LinkedHashSet;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * The authorities that the process trusts: those of all cases so far. The SDK uses the JVM's default SSL context, of which there
 * is one; a program with one emulator would name a trust store by {@code -Djavax.net.ssl.trustStore}.
 */
final class Trust extends X509ExtendedTrustManager {
    static final Trust OF_ALL = new Trust();

    private final Set<Certificate> authorities = new LinkedHashSet<>();
    private X509ExtendedTrustManager manager;

    private Trust() {
    }

    static void install() {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, new TrustManager[] {OF_ALL}, null);
            SSLContext.setDefault(context);
        } catch (GeneralSecurityException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** Adds the authorities of a file, until the process ends. */
    synchronized void add(String file) {
        try (var stream = new FileInputStream(file)) {
            var read = CertificateFactory.getInstance("X.509").generateCertificates(stream);
            if (authorities.addAll(read)) {
                manager = managerOf(authorities);
            }
        } catch (IOException | GeneralSecurityException problem) {
            throw new IllegalStateException(file, problem);
        }
    }

    private static X509ExtendedTrustManager managerOf(Set<Certificate> authorities)
            throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        for (Certificate authority : authorities) {
            store.setCertificateEntry("authority " + store.size(), authority);
        }
        var factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(store);
        return (X509ExtendedTrustManager) factory.getTrustManagers()[0];
    }

    private synchronized X509ExtendedTrustManager manager() throws CertificateException {
        if (manager == null) {
            throw new CertificateException("no authority is trusted yet");
        }
        return manager;
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        manager().checkServerTrusted(chain, type, engine);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        manager().checkServerTrusted(chain, type, socket);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
        manager().checkServerTrusted(chain, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        throw new CertificateException("this is not a server");
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        throw new CertificateException("this is not a server");
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
        throw new CertificateException("this is not a server");
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return new X509Certificate[0];
    }
}

package cases;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A way to a broker that can be cut: all connections by it end at once, and new ones are let through. */
final class Cutter implements AutoCloseable {
    private final ServerSocket listener;
    private final InetSocketAddress broker;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();

    Cutter(InetSocketAddress broker) throws IOException {
        this.broker = broker;
        listener = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        daemon(this::accept);
    }

    int port() {
        return listener.getLocalPort();
    }

    /** Ends all connections without AMQP close frames. */
    void cut() throws IOException {
        for (Socket socket : Set.copyOf(sockets)) {
            end(socket);
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }

    private void accept() {
        while (!listener.isClosed()) {
            try {
                Socket client = listener.accept();
                Socket server = new Socket(broker.getAddress(), broker.getPort());
                sockets.add(client);
                sockets.add(server);
                daemon(() -> carry(client, server));
                daemon(() -> carry(server, client));
            } catch (IOException ended) {
                // The client connects again, or the case has ended.
            }
        }
    }

    private void carry(Socket from, Socket to) {
        try {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] buffer = new byte[65_536];
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                out.write(buffer, 0, read);
            }
        } catch (IOException ended) {
            // The connection was cut.
        } finally {
            end(from);
            end(to);
        }
    }

    private void end(Socket socket) {
        sockets.remove(socket);
        try {
            // Without a FIN: the peer gets a reset.
            socket.setSoLinger(true, 0);
            socket.close();
        } catch (IOException ended) {
            // The socket is closed already.
        }
    }

    private static void daemon(Runnable work) {
        Thread thread = new Thread(work, "cutter");
        thread.setDaemon(true);
        thread.start();
    }
}

package cases;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.Arrays;
import java.util.Locale;
import java.util.TreeMap;

/**
 * How many messages a second one session of Qpid JMS sends and receives, with the emulator and with the embedded Artemis by
 * turns. Shown are medians over the rounds, the lowest and highest in brackets; a round before them does not count.
 *
 * <pre>Speed messages rounds</pre>
 *
 * <p>The environment is that of a case, see {@link Namespace}, with the queue {@code orders}.
 */
public final class Speed {
    private static final int BODY = 1024;
    /** Messages of a transaction, or of an acknowledgement of several. */
    private static final int BATCH = 10;

    private Speed() {
    }

    /** The ways in which a session handles all messages; each receives what the previous one sent. */
    private enum Way {
        SEND("send, each waiting for its outcome"),
        ACKNOWLEDGE("receive, CLIENT_ACKNOWLEDGE of each"),
        SEND_AGAIN("send, each waiting for its outcome, again"),
        ACKNOWLEDGE_MANY("receive, CLIENT_ACKNOWLEDGE of every tenth"),
        SEND_TRANSACTED("send, transacted, ten at a time"),
        RECEIVE_TRANSACTED("receive, transacted, ten at a time");

        final String text;

        Way(String text) {
            this.text = text;
        }

        boolean sends() {
            return this == SEND || this == SEND_AGAIN || this == SEND_TRANSACTED;
        }

        int mode() {
            return switch (this) {
                case SEND, SEND_AGAIN -> Session.AUTO_ACKNOWLEDGE;
                case ACKNOWLEDGE, ACKNOWLEDGE_MANY -> Session.CLIENT_ACKNOWLEDGE;
                case SEND_TRANSACTED, RECEIVE_TRANSACTED -> Session.SESSION_TRANSACTED;
            };
        }
    }

    public static void main(String[] arguments) {
        System.getProperties().putIfAbsent("org.slf4j.simpleLogger.defaultLogLevel", "off");
        int messages = Integer.parseInt(arguments[0]);
        int rounds = Integer.parseInt(arguments[1]);
        var environment = new TreeMap<>(System.getenv());
        var ofControl = new TreeMap<>(environment);
        ofControl.put("SERVICEBUS_JMS_CLIENT", "control");
        try (var emulator = new Namespace(environment); var artemis = new Namespace(ofControl)) {
            compare(emulator, artemis, messages, rounds);
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Threads of the clients would keep the process running.
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private static void compare(Namespace emulator, Namespace artemis, int messages, int rounds) throws JMSException {
        var ours = new double[Way.values().length][rounds];
        var theirs = new double[Way.values().length][rounds];
        for (int round = -1; round < rounds; round++) {
            for (Way way : Way.values()) {
                boolean isFirst = round % 2 == 0;
                double first = measure(isFirst ? emulator : artemis, way, messages);
                double second = measure(isFirst ? artemis : emulator, way, messages);
                if (round >= 0) {
                    ours[way.ordinal()][round] = isFirst ? first : second;
                    theirs[way.ordinal()][round] = isFirst ? second : first;
                }
            }
        }
        for (Way way : Way.values()) {
            print(way.text, ours[way.ordinal()], theirs[way.ordinal()]);
        }
        for (int sent = 0; sent < ours.length; sent += 2) {
            String received = Way.values()[sent + 1].text.replaceFirst("receive", "received");
            print("sent and " + received, moved(ours, sent), moved(theirs, sent));
        }
    }

    private static void print(String what, double[] ours, double[] theirs) {
        var ratios = new double[ours.length];
        Arrays.setAll(ratios, round -> ours[round] / theirs[round]);
        System.out.printf(Locale.ROOT, "| %s | %s | %s | %s |%n", what,
                spread("%,.0f", ours), spread("%,.0f", theirs), spread("%.2f", ratios));
    }

    /** Messages that are sent and then received in a second, in each round. */
    private static double[] moved(double[][] speeds, int sent) {
        var moved = new double[speeds[sent].length];
        Arrays.setAll(moved, round -> 1 / (1 / speeds[sent][round] + 1 / speeds[sent + 1][round]));
        return moved;
    }

    /** Messages a second. */
    private static double measure(Namespace namespace, Way way, int messages) throws JMSException {
        try (Connection connection = namespace.factory().createConnection()) {
            connection.start();
            Session session = connection.createSession(way.mode());
            Queue queue = session.createQueue(namespace.name("orders"));
            long began = System.nanoTime();
            if (way.sends()) {
                send(session, session.createProducer(queue), messages);
            } else {
                receive(session, session.createConsumer(queue), way == Way.ACKNOWLEDGE ? 1 : BATCH, messages);
            }
            return messages / ((System.nanoTime() - began) / 1e9);
        }
    }

    private static void send(Session session, MessageProducer producer, int messages) throws JMSException {
        var body = new byte[BODY];
        for (int count = 1; count <= messages; count++) {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(body);
            producer.send(message);
            if (session.getTransacted() && (count % BATCH == 0 || count == messages)) {
                session.commit();
            }
        }
    }

    private static void receive(Session session, MessageConsumer consumer, int batch, int messages) throws JMSException {
        for (int count = 1; count <= messages; count++) {
            Message message = Expect.message(consumer);
            if (count % batch != 0 && count != messages) {
                continue;
            }
            if (session.getTransacted()) {
                session.commit();
            } else {
                message.acknowledge();
            }
        }
    }

    private static String spread(String format, double[] values) {
        var sorted = values.clone();
        Arrays.sort(sorted);
        return String.format(Locale.ROOT, format + " [" + format + ".." + format + "]",
                sorted[sorted.length / 2], sorted[0], sorted[sorted.length - 1]);
    }
}

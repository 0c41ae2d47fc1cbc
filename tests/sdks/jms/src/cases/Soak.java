package cases;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Eight transacted sessions move messages from one queue to another, half of them roll back every second time, and all
 * connections are cut again and again: in the end each message has been moved once.
 *
 * <pre>Soak messages cuts</pre>
 *
 * <p>The environment is that of a case, see {@link Namespace}, with the queues {@code in}, of many deliveries, and
 * {@code out}.
 */
public final class Soak {
    private static final int SESSIONS = 8;
    private static final int BATCH = 10;
    /** A small prefetch, because messages that a lost connection has fetched stay locked for a while. */
    private static final Map<String, String> PREFETCH = Map.of("jms.prefetchPolicy.all", "40");
    private static final long STUCK_MILLIS = 2000;

    private final Namespace namespace;
    private final int messages;
    private final int cuts;
    private final AtomicInteger moved = new AtomicInteger();
    private final AtomicInteger failures = new AtomicInteger();
    private final AtomicInteger rollbacks = new AtomicInteger();
    private volatile boolean isDone;

    private Soak(Namespace namespace, int messages, int cuts) {
        this.namespace = namespace;
        this.messages = messages;
        this.cuts = cuts;
    }

    public static void main(String[] arguments) {
        System.getProperties().putIfAbsent("org.slf4j.simpleLogger.defaultLogLevel", "off");
        try (var namespace = new Namespace(new TreeMap<>(System.getenv()))) {
            new Soak(namespace, Integer.parseInt(arguments[0]), Integer.parseInt(arguments[1])).run();
        } catch (Throwable failure) {
            failure.printStackTrace();
            // Threads of the clients would keep the process running.
            Runtime.getRuntime().halt(1);
        }
        Runtime.getRuntime().halt(0);
    }

    private void run() throws Exception {
        fill();
        long began = System.nanoTime();
        try (Cutter cutter = namespace.cutter()) {
            for (int index = 0; index < SESSIONS; index++) {
                boolean rollsBack = index % 2 == 1;
                Thread worker = new Thread(() -> work(cutter, rollsBack), "session " + index);
                worker.setDaemon(true);
                worker.start();
            }
            watch(cutter);
            isDone = true;
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        verify();
        System.out.printf(
                "%d messages moved once each by %d sessions in %.1f s: %d cuts, %d rollbacks, %d transactions lost%n",
                messages, SESSIONS, seconds, cuts, rollbacks.get(), failures.get());
    }

    private void fill() {
        try (JMSContext context = namespace.factory().createContext(JMSContext.SESSION_TRANSACTED)) {
            for (int number = 0; number < messages; number++) {
                context.createProducer().setProperty("number", number)
                        .send(namespace.queue(context, "in"), "text " + number);
                // A transaction of Service Bus has a hundred messages at most.
                if (number % 100 == 99 || number == messages - 1) {
                    context.commit();
                }
            }
        }
    }

    /** Cuts connections during the work, and lets locks of lost connections expire when no message is moved. */
    private void watch(Cutter cutter) throws Exception {
        int done = 0;
        int last = -1;
        long changed = System.nanoTime();
        while (moved.get() < messages) {
            Thread.sleep(5);
            // In the first half, by the messages known to be moved; commits in doubt after a cut are not counted.
            if (done < cuts && moved.get() >= (long) messages * (done + 1) / cuts / 2) {
                done++;
                cutter.cut();
            }
            if (moved.get() != last) {
                last = moved.get();
                changed = System.nanoTime();
            } else if (System.nanoTime() - changed > STUCK_MILLIS * 1_000_000) {
                // Commits whose response was lost are not counted; the queues show the result.
                if (isMoved()) {
                    break;
                }
                namespace.endLocks();
                changed = System.nanoTime();
            }
        }
        Expect.isTrue(done + " of " + cuts + " cuts, " + this, done == cuts);
    }

    @Override
    public String toString() {
        return moved + " moved, " + rollbacks + " rollbacks, " + failures + " transactions lost"
                + (namespace.client().equals("control") ? "" : ", in: " + counts("in") + ", out: " + counts("out"));
    }

    private Map<String, Object> counts(String queue) {
        return namespace.control("GET", "counts?entity=" + queue, Map.of());
    }

    private boolean isMoved() throws JMSException {
        try (JMSContext context = namespace.factory().createContext();
                var browser = context.createBrowser(namespace.queue(context, "in"))) {
            return !browser.getEnumeration().hasMoreElements();
        }
    }

    /**
     * A lost connection is closed. Qpid JMS' failover treats an acknowledgement as done that it drops when
     * the connection is lost meanwhile, and the message is moved twice, with Artemis and with the emulator.
     */
    private void work(Cutter cutter, boolean rollsBack) {
        ConnectionFactory factory = Clients.once(namespace.environment, cutter.port(), PREFETCH);
        while (!isDone) {
            try (JMSContext context = factory.createContext(JMSContext.SESSION_TRANSACTED)) {
                move(context, rollsBack);
            } catch (JMSException | JMSRuntimeException lost) {
                failures.incrementAndGet();
            }
        }
    }

    private void move(JMSContext context, boolean rollsBack) throws JMSException {
        JMSConsumer consumer = context.createConsumer(namespace.queue(context, "in"));
        for (int turn = 0; !isDone; turn++) {
            int batch = 0;
            for (Message message = consumer.receive(1000);
                    message != null;
                    message = ++batch < BATCH ? consumer.receive(20) : null) {
                context.createProducer().setProperty("number", message.getIntProperty("number"))
                        .send(namespace.queue(context, "out"), message.getBody(String.class));
            }
            if (rollsBack && turn % 2 == 0) {
                context.rollback();
                rollbacks.incrementAndGet();
            } else {
                context.commit();
                moved.addAndGet(batch);
            }
        }
    }

    /** Asserts that each number is once in one queue, and that the other is empty. */
    private void verify() throws JMSException {
        var times = new int[messages];
        try (JMSContext context = namespace.factory().createContext();
                JMSConsumer consumer = context.createConsumer(namespace.queue(context, "out"))) {
            for (int count = 0; count < messages; count++) {
                Message message = consumer.receive(Expect.TIMEOUT / 6);
                Expect.isTrue(count + " of " + messages + " are left", message != null);
                int number = message.getIntProperty("number");
                times[number]++;
                Expect.isTrue(number + " came twice, " + this, times[number] == 1);
                Expect.equal("text " + number, message.getBody(String.class));
            }
            Expect.nothing(consumer);
        }
        if (!namespace.client().equals("control")) {
            Expect.equal(0, namespace.count("in", "dead_letter"));
            Expect.equal(Duration.ZERO, Duration.ofSeconds(namespace.count("in", "active")));
        }
    }
}

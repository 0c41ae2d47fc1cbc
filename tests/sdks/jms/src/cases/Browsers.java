package cases;

import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.QueueBrowser;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;

/** Browsers of queues: JMS 2.0, 4.1.6 and 8.4. */
final class Browsers {
    private Browsers() {
    }

    static void all(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two", "three");
        Expect.equal(List.of("one", "two", "three"), browse(namespace, null));
        Expect.equal(List.of("one", "two", "three"), browse(namespace, null));
        namespace.expectLeft("orders", "one", "two", "three");
    }

    static void empty(Namespace namespace) throws JMSException {
        Expect.equal(List.of(), browse(namespace, null));
    }

    static void many(Namespace namespace) throws JMSException {
        var texts = new String[1500];
        for (int index = 0; index < texts.length; index++) {
            texts[index] = "text " + index;
        }
        JMSContext context = namespace.context(JMSContext.SESSION_TRANSACTED);
        for (int index = 0; index < texts.length; index++) {
            context.createProducer().send(namespace.orders(context), texts[index]);
            // A transaction of Service Bus has a hundred messages at most.
            if (index % 100 == 99) {
                context.commit();
            }
        }
        Expect.equal(List.of(texts), browse(namespace, null));
    }

    static void selector(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        for (int index = 0; index < 6; index++) {
            context.createProducer().setProperty("number", index).send(namespace.orders(context), "text " + index);
        }
        Expect.equal(List.of("text 4", "text 5"), browse(namespace, "number > 3"));
        Expect.equal(List.of(), browse(namespace, "number > 30"));
    }

    static void properties(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        context.createProducer().setProperty("number", 7).setJMSType("order").send(namespace.orders(context), "one");
        try (QueueBrowser browser = context.createBrowser(namespace.orders(context), "JMSType = 'order'")) {
            Message message = (Message) browser.getEnumeration().nextElement();
            Expect.equal(7, message.getIntProperty("number"));
            Expect.equal("one", message.getBody(String.class));
        }
        Expect.equal(List.of(), browse(namespace, "JMSType = 'invoice'"));
    }

    /** Browsing does not count as a delivery. */
    static void counts(Namespace namespace) throws JMSException {
        namespace.send("orders", "one");
        browse(namespace, null);
        browse(namespace, null);
        JMSContext context = namespace.context();
        Message message = Expect.message(context.createConsumer(namespace.orders(context)));
        Expect.equal(1, message.getIntProperty("JMSXDeliveryCount"));
        Expect.equal(false, message.getJMSRedelivered());
    }

    static void besideConsumer(Namespace namespace) throws JMSException {
        namespace.send("orders", "one", "two");
        JMSContext context = namespace.context();
        try (QueueBrowser browser = context.createBrowser(namespace.orders(context))) {
            var messages = browser.getEnumeration();
            Expect.equal(true, messages.hasMoreElements());
            namespace.expectLeft("orders", "one", "two");
        }
        Expect.equal(List.of(), browse(namespace, null));
    }

    /** An enumeration that was started and abandoned does not block the queue. */
    static void abandoned(Namespace namespace) throws JMSException {
        var texts = new String[200];
        for (int index = 0; index < texts.length; index++) {
            texts[index] = "text " + index;
        }
        namespace.send("orders", texts);
        JMSContext context = namespace.closing(
                namespace.factory(Map.of("jms.prefetchPolicy.queueBrowserPrefetch", "10")).createContext());
        QueueBrowser browser = context.createBrowser(namespace.orders(context));
        var first = (Message) browser.getEnumeration().nextElement();
        Expect.equal("text 0", first.getBody(String.class));
        namespace.expectLeft("orders", texts);
        namespace.send("orders", "later");
        Expect.equal(List.of("later"), browse(namespace, null));
        browser.close();
    }

    private static List<String> browse(Namespace namespace, String selector) throws JMSException {
        JMSContext context = namespace.context();
        List<String> texts = new ArrayList<>();
        try (QueueBrowser browser = context.createBrowser(namespace.orders(context), selector)) {
            Enumeration<?> messages = browser.getEnumeration();
            for (Object message : Collections.list(messages)) {
                texts.add(((Message) message).getBody(String.class));
            }
        }
        context.close();
        return texts;
    }
}

package cases;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Kinds of messages, headers and properties: JMS 2.0, chapter 3. */
final class Messages {
    private static final String TEXT = "grüße, 世界";

    private Messages() {
    }

    static void text(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> context.createTextMessage(TEXT));
        Expect.equal(TEXT, ((TextMessage) message).getText());
        Expect.equal(TEXT, message.getBody(String.class));
        Expect.fails(MessageNotWriteableException.class, () -> ((TextMessage) message).setText("changed"));
    }

    static void bytes(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> {
            BytesMessage bytes = context.createBytesMessage();
            bytes.writeInt(42);
            bytes.writeUTF(TEXT);
            bytes.writeDouble(1.5);
            return bytes;
        });
        BytesMessage bytes = (BytesMessage) message;
        Expect.equal(42, bytes.readInt());
        Expect.equal(TEXT, bytes.readUTF());
        Expect.equal(1.5, bytes.readDouble());
        Expect.equal(bytes.getBodyLength(), (long) bytes.getBody(byte[].class).length);
    }

    static void map(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> {
            MapMessage map = context.createMapMessage();
            map.setString("text", TEXT);
            map.setLong("long", Long.MIN_VALUE);
            map.setBoolean("boolean", true);
            map.setBytes("bytes", new byte[] {1, 2});
            map.setChar("char", 'ü');
            return map;
        });
        MapMessage map = (MapMessage) message;
        Expect.equal(TEXT, map.getString("text"));
        Expect.equal(Long.MIN_VALUE, map.getLong("long"));
        Expect.equal(true, map.getBoolean("boolean"));
        Expect.equal(new byte[] {1, 2}, map.getBytes("bytes"));
        Expect.equal('ü', map.getChar("char"));
        Enumeration<?> names = map.getMapNames();
        Expect.equal(5, Collections.list(names).size());
    }

    static void object(Namespace namespace) throws JMSException {
        var value = new ArrayList<>(List.of("a", 1, 2.5));
        Message message = namespace.roundTrip(context -> context.createObjectMessage(value));
        Expect.equal(value, ((ObjectMessage) message).getObject());
    }

    static void stream(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> {
            StreamMessage stream = context.createStreamMessage();
            stream.writeString(TEXT);
            stream.writeShort((short) 7);
            stream.writeBoolean(false);
            return stream;
        });
        StreamMessage stream = (StreamMessage) message;
        Expect.equal(TEXT, stream.readString());
        Expect.equal((short) 7, stream.readShort());
        Expect.equal(false, stream.readBoolean());
    }

    static void empty(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(JMSContext::createMessage);
        Expect.isTrue("it has a body", message.getBody(Object.class) == null);
    }

    static void bodyOfAnotherKind(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> context.createTextMessage("text"));
        Expect.equal(false, message.isBodyAssignableTo(Map.class));
        Expect.fails(MessageFormatException.class, () -> message.getBody(Map.class));
    }

    static void properties(Namespace namespace) throws JMSException {
        Map<String, Object> properties = new TreeMap<>(Map.of(
                "boolean", true, "byte", (byte) 1, "short", (short) 2, "int", 3, "long", 4L,
                "float", 5.5f, "double", 6.5, "string", TEXT));
        Message message = namespace.roundTrip(context -> {
            Message made = context.createMessage();
            for (var property : properties.entrySet()) {
                made.setObjectProperty(property.getKey(), property.getValue());
            }
            return made;
        });
        for (var property : properties.entrySet()) {
            Expect.equal(property.getValue(), message.getObjectProperty(property.getKey()));
        }
        Expect.equal("3", message.getStringProperty("int"));
        Expect.equal(2L, message.getLongProperty("short"));
        Expect.equal(false, message.propertyExists("other"));
    }

    static void headers(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        Queue orders = namespace.orders(context);
        Queue answers = namespace.queue(context, "answers");
        long before = System.currentTimeMillis();
        Message sent = context.createTextMessage("headers");
        sent.setJMSReplyTo(answers);
        context.createProducer()
                .setJMSCorrelationID("o-17").setJMSType("order").setPriority(7).setDeliveryMode(DeliveryMode.PERSISTENT)
                .send(orders, sent);
        Message message = Expect.message(context.createConsumer(orders));
        Expect.equal("o-17", message.getJMSCorrelationID());
        Expect.equal("order", message.getJMSType());
        Expect.equal(7, message.getJMSPriority());
        Expect.equal(DeliveryMode.PERSISTENT, message.getJMSDeliveryMode());
        Expect.equal(answers.getQueueName(), ((Queue) message.getJMSReplyTo()).getQueueName());
        Expect.equal(orders.getQueueName(), ((Queue) message.getJMSDestination()).getQueueName());
        Expect.equal(sent.getJMSMessageID(), message.getJMSMessageID());
        Expect.equal(sent.getJMSTimestamp(), message.getJMSTimestamp());
        Expect.isTrue("the timestamp", message.getJMSTimestamp() >= before - 1);
        Expect.equal(0L, message.getJMSExpiration());
        Expect.equal(false, message.getJMSRedelivered());
    }

    static void notPersistent(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        context.createProducer().setDeliveryMode(DeliveryMode.NON_PERSISTENT).send(namespace.orders(context), "text");
        Message message = Expect.message(context.createConsumer(namespace.orders(context)));
        Expect.equal(DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
    }

    static void deliveryCount(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> context.createTextMessage("first"));
        Expect.equal(1, message.getIntProperty("JMSXDeliveryCount"));
    }

    static void correlationBytes(Namespace namespace) throws JMSException {
        byte[] correlation = {0, 1, (byte) 200};
        Message message = namespace.roundTrip(context -> {
            Message made = context.createMessage();
            made.setJMSCorrelationIDAsBytes(correlation);
            return made;
        });
        Expect.equal(correlation, message.getJMSCorrelationIDAsBytes());
    }

    static void applicationMessageId(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> {
            Message made = context.createMessage();
            made.setJMSCorrelationID("ID:of-another-message");
            return made;
        });
        Expect.equal("ID:of-another-message", message.getJMSCorrelationID());
    }

    static void group(Namespace namespace) throws JMSException {
        Message message = namespace.roundTrip(context -> {
            Message made = context.createMessage();
            made.setStringProperty("JMSXGroupID", "cart-1");
            made.setIntProperty("JMSXGroupSeq", 3);
            return made;
        });
        Expect.equal("cart-1", message.getStringProperty("JMSXGroupID"));
        Expect.equal(3, message.getIntProperty("JMSXGroupSeq"));
    }

    static void large(Namespace namespace) throws JMSException {
        String text = "0123456789".repeat(20_000);
        Message message = namespace.roundTrip(context -> context.createTextMessage(text));
        Expect.equal(text, message.getBody(String.class));
    }

    static void withoutIdAndTimestamp(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        context.createProducer().setDisableMessageID(true).setDisableMessageTimestamp(true)
                .send(namespace.orders(context), "text");
        Message message = Expect.message(context.createConsumer(namespace.orders(context)));
        Expect.equal("text", message.getBody(String.class));
        Expect.equal(0L, message.getJMSTimestamp());
    }

    static void forwarded(Namespace namespace) throws JMSException {
        JMSContext context = namespace.context();
        Message message = namespace.roundTrip(made -> {
            Message first = made.createTextMessage("sent twice");
            first.setIntProperty("number", 1);
            return first;
        });
        context.createProducer().send(namespace.queue(context, "answers"), message);
        Message second = Expect.message(context.createConsumer(namespace.queue(context, "answers")));
        Expect.equal("sent twice", second.getBody(String.class));
        Expect.equal(1, second.getIntProperty("number"));
    }
}

package cases;

import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;

/** The SDK's sender, with the operations that most cases use. */
record Sender(ServiceBusSenderClient sdk) {
    /** Sends the messages one by one. */
    void send(ServiceBusMessage... messages) {
        for (ServiceBusMessage message : messages) {
            sdk.sendMessage(message);
        }
    }

    void send(List<ServiceBusMessage> messages) {
        send(messages.toArray(ServiceBusMessage[]::new));
    }

    /** A batch of all the messages. */
    ServiceBusMessageBatch batch(ServiceBusMessage... messages) {
        ServiceBusMessageBatch batch = sdk.createMessageBatch();
        for (ServiceBusMessage message : messages) {
            Expect.isTrue("the batch takes the message", batch.tryAddMessage(message));
        }
        return batch;
    }

    void sendBatch(ServiceBusMessage... messages) {
        sdk.sendMessages(batch(messages));
    }

    List<Long> schedule(OffsetDateTime at, ServiceBusMessage... messages) {
        var numbers = new ArrayList<Long>();
        sdk.scheduleMessages(List.of(messages), at).forEach(numbers::add);
        return numbers;
    }

    void cancel(Long... numbers) {
        sdk.cancelScheduledMessages(List.of(numbers));
    }
}

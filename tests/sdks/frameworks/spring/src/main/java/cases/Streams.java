package cases;

import static com.azure.spring.messaging.AzureHeaders.CHECKPOINTER;

import com.azure.spring.messaging.checkpoint.Checkpointer;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.Message;
import org.springframework.messaging.support.MessageBuilder;

/** Functions that the stream binder binds to the entities in application.properties. */
@Configuration
class Streams {
    /** The number of messages that are sent; the function forwards every second one. */
    static final int NUMBERS = 4;

    final Seen<String> confirmed = new Seen<>();
    final Seen<String> rejected = new Seen<>();
    private final AtomicInteger next = new AtomicInteger();

    @Bean
    Supplier<Message<String>> numbers() {
        return () -> {
            int number = next.getAndIncrement();
            return number < NUMBERS ? MessageBuilder.withPayload(String.valueOf(number)).build() : null;
        };
    }

    @Bean
    Function<Message<String>, Message<String>> even() {
        return message -> {
            int number = Integer.parseInt(message.getPayload());
            return number % 2 == 0 ? MessageBuilder.withPayload("even " + number).build() : null;
        };
    }

    @Bean
    Consumer<Message<String>> sums() {
        return message -> {
            Checkpointer checkpointer = (Checkpointer) message.getHeaders().get(CHECKPOINTER);
            checkpointer.success().block();
            confirmed.add(message.getPayload());
        };
    }

    @Bean
    Consumer<Message<String>> validate() {
        return message -> {
            rejected.add(message.getPayload());
            throw new IllegalArgumentException("as the case asks");
        };
    }
}

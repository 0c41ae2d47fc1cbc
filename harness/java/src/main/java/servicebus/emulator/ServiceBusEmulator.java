package servicebus.emulator;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * A test, or each test of a class, has a namespace of its own, as an argument of the type {@link ServiceBus}.
 *
 * <p>It holds what that of the test declares, else that of the class, else a resource {@code topology.json} beside the
 * class, else one queue, {@code queue.1}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
@ExtendWith(ServiceBusExtension.class)
public @interface ServiceBusEmulator {
    /** Names of queues that have their defaults. */
    String[] queues() default {};

    /** A configuration file: the name of a resource beside the class, or its text, which begins with a brace. */
    String topology() default "";
}

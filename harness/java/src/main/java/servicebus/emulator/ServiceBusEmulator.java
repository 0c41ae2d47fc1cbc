package servicebus.emulator;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Gives a test, or each test of a class, its own namespace, as an argument of the type {@link ServiceBus}.
 *
 * <p>Its entities are declared by the annotation of the test, else by that of the class, else by a resource
 * {@code topology.json} beside the class; otherwise it has one queue, {@code queue.1}.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.TYPE, ElementType.METHOD})
@ExtendWith(ServiceBusExtension.class)
public @interface ServiceBusEmulator {
    /** Names of queues with default properties. */
    String[] queues() default {};

    /**
     * A configuration file: the name of a resource beside the class, or a superclass, or its text, which begins with a
     * brace.
     */
    String topology() default "";
}

package servicebus.emulator;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.AnnotatedElement;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * The extension that {@link ServiceBusEmulator} registers. Tests with a topology in code register it themselves:
 * {@code @RegisterExtension static final ServiceBusExtension SERVICEBUS = new ServiceBusExtension(topology)}.
 */
public final class ServiceBusExtension implements ParameterResolver, AfterEachCallback {
    /** The configuration parameter of JUnit with options of the emulator, such as {@code --tier premium}. */
    static final String OPTIONS = "servicebus.options";

    private static final ExtensionContext.Namespace STORE =
            ExtensionContext.Namespace.create(ServiceBusExtension.class);
    private final Topology topology;

    /** Namespaces have the topology of {@link ServiceBusEmulator}. */
    public ServiceBusExtension() {
        this(null);
    }

    /** Namespaces have this topology, unless an annotation declares another. */
    public ServiceBusExtension(Topology topology) {
        this.topology = topology;
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == ServiceBus.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        if (!context.getTestMethod().isPresent()) {
            throw new ParameterResolutionException(
                    "each test has its own ServiceBus: declare the parameter in the test or in @BeforeEach, not in @BeforeAll");
        }
        // Not with getOrComputeIfAbsent, which would keep a failure and throw it again.
        ServiceBus servicebus = context.getStore(STORE).get(ServiceBus.class, ServiceBus.class);
        if (servicebus == null) {
            servicebus = start(context);
            context.getStore(STORE).put(ServiceBus.class, servicebus);
        }
        return servicebus;
    }

    /** Ends the namespace; the failure of a test gets the timeline as a suppressed throwable. */
    @Override
    public void afterEach(ExtensionContext context) {
        ServiceBus servicebus = context.getStore(STORE).remove(ServiceBus.class, ServiceBus.class);
        if (servicebus == null) {
            return;
        }
        Optional<Throwable> failure = context.getExecutionException();
        String report = servicebus.end(!failure.isPresent());
        failure.filter(thrown -> !(thrown instanceof TestAbortedException))
                .ifPresent(thrown -> thrown.addSuppressed(new TimelineReport(report)));
        if (!failure.isPresent() && report != null) {
            AssertionError error = new AssertionError(report);
            error.setStackTrace(new StackTraceElement[0]);
            throw error;
        }
    }

    private ServiceBus start(ExtensionContext context) {
        String[] options = context.getConfigurationParameter(OPTIONS).map(String::trim).orElse("").split("\\s+");
        return new ServiceBus(Emulator.shared(options[0].isEmpty() ? new String[0] : options), configuration(context));
    }

    private String configuration(ExtensionContext context) {
        Optional<ServiceBusEmulator> declared = declared(context.getElement().orElseThrow());
        Class<?> type = context.getRequiredTestClass();
        for (Class<?> outer = type; outer != null && !declared.isPresent(); outer = outer.getEnclosingClass()) {
            declared = declared(outer);
        }
        if (declared.isPresent()) {
            return configuration(declared.get(), type);
        }
        return topology != null ? topology.toString() : resource(type, "topology.json");
    }

    /** The annotation of an element, if it declares entities. */
    private static Optional<ServiceBusEmulator> declared(AnnotatedElement element) {
        return AnnotationSupport.findAnnotation(element, ServiceBusEmulator.class)
                .filter(found -> found.queues().length > 0 || !found.topology().isEmpty());
    }

    private static String configuration(ServiceBusEmulator declared, Class<?> type) {
        String topology = declared.topology();
        if (declared.queues().length > 0) {
            if (!topology.isEmpty()) {
                throw new ExtensionConfigurationException("@ServiceBusEmulator takes queues or a topology, not both");
            }
            return new Topology().queues(declared.queues()).toString();
        }
        String text = topology.stripLeading().startsWith("{") ? topology : resource(type, topology);
        if (text == null) {
            throw new ExtensionConfigurationException("@ServiceBusEmulator(topology = \"" + topology
                    + "\"): there is no such resource beside " + type.getName());
        }
        return text;
    }

    private static String resource(Class<?> type, String name) {
        try (InputStream stream = type.getResourceAsStream(name)) {
            return stream == null ? null : new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException problem) {
            throw new ExtensionConfigurationException("the resource " + name + " cannot be read: " + problem);
        }
    }

    /** The timeline of a namespace, below the failure of its test. */
    private static final class TimelineReport extends Throwable {
        private static final long serialVersionUID = 1;

        TimelineReport(String report) {
            super(report, null, false, false);
        }

        @Override
        public String toString() {
            return getMessage();
        }
    }
}

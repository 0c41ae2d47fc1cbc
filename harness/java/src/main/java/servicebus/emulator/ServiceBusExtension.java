package servicebus.emulator;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.DynamicTestInvocationContext;
import org.junit.jupiter.api.extension.ExtensionConfigurationException;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolutionException;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.platform.commons.support.AnnotationSupport;
import org.opentest4j.TestAbortedException;

/**
 * The extension that {@link ServiceBusEmulator} registers. Tests with a topology in code register it themselves:
 * {@code @RegisterExtension static final ServiceBusExtension SERVICEBUS = new ServiceBusExtension(topology)}.
 */
public final class ServiceBusExtension
        implements BeforeEachCallback, ParameterResolver, InvocationInterceptor, AfterEachCallback {
    /** The configuration parameter of JUnit with options of the emulator, such as {@code --tier premium}. */
    static final String OPTIONS = "servicebus.options";

    private static final Pattern OPTION = Pattern.compile("(?:\"[^\"]*\"|'[^']*'|\\S)++");
    private static final Pattern QUOTED = Pattern.compile("\"([^\"]*)\"|'([^']*)'");
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

    /** Selects the instance that acts for a test, if its class has the annotation and registers an extension, too. */
    @Override
    public void beforeEach(ExtensionContext context) {
        if (topology != null || selected(context) == null) {
            context.getStore(STORE).put(ServiceBusExtension.class, this);
        }
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        ServiceBusExtension selected = selected(context);
        return parameter.getParameter().getType() == ServiceBus.class && (selected == null || selected == this);
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
            Emulator emulator = Emulator.shared(split(context.getConfigurationParameter(OPTIONS).orElse("")));
            servicebus = new ServiceBus(emulator, configuration(context));
            context.getStore(STORE).put(ServiceBus.class, servicebus);
        }
        return servicebus;
    }

    /** The failure of a dynamic test gets the timeline until then of the namespace, which its factory has. */
    @Override
    public void interceptDynamicTest(
            Invocation<Void> test, DynamicTestInvocationContext invocation, ExtensionContext context) throws Throwable {
        try {
            test.proceed();
        } catch (Throwable thrown) {
            ServiceBus servicebus = context.getStore(STORE).get(ServiceBus.class, ServiceBus.class);
            if (servicebus != null && selected(context) == this && !(thrown instanceof TestAbortedException)) {
                servicebus.dynamicTestFailed = true;
                addTimeline(thrown, servicebus.timelineReport());
            }
            throw thrown;
        }
    }

    /** Ends the namespace; the failure of a test gets the timeline as a suppressed throwable. */
    @Override
    public void afterEach(ExtensionContext context) {
        ServiceBus servicebus = context.getStore(STORE).remove(ServiceBus.class, ServiceBus.class);
        if (servicebus == null) {
            return;
        }
        Optional<Throwable> failure = context.getExecutionException();
        boolean passed = !failure.isPresent() && !servicebus.dynamicTestFailed;
        String report = servicebus.end(passed);
        failure.ifPresent(thrown -> addTimeline(thrown, report));
        if (passed && report != null) {
            AssertionError error = new AssertionError(report);
            error.setStackTrace(new StackTraceElement[0]);
            throw error;
        }
    }

    /** Splits options at white space; quotes around a part keep it, as in a shell. */
    private static String[] split(String options) {
        return OPTION.matcher(options)
                .results()
                .map(option -> QUOTED.matcher(option.group()).replaceAll("$1$2"))
                .toArray(String[]::new);
    }

    private String configuration(ExtensionContext context) {
        Class<?> type = context.getRequiredTestClass();
        Stream<Class<?>> types = Stream.iterate(type, Objects::nonNull, Class::getEnclosingClass);
        return Stream.concat(context.getElement().stream(), types)
                .flatMap(element -> AnnotationSupport.findAnnotation(element, ServiceBusEmulator.class)
                        .filter(found -> found.queues().length > 0 || !found.topology().isEmpty())
                        .map(found -> configuration(found, element instanceof Class ? (Class<?>) element : type))
                        .stream())
                .findFirst()
                .orElseGet(() -> topology != null ? topology.toString() : resource(type, "topology.json"));
    }

    private static String configuration(ServiceBusEmulator declared, Class<?> type) {
        String topology = declared.topology();
        if (declared.queues().length > 0) {
            if (!topology.isEmpty()) {
                throw new ExtensionConfigurationException("@ServiceBusEmulator takes queues or a topology, not both");
            }
            return new Topology().queues(declared.queues()).toString();
        }
        return Optional.ofNullable(topology.stripLeading().startsWith("{") ? topology : resource(type, topology))
                .orElseThrow(() -> new ExtensionConfigurationException("@ServiceBusEmulator(topology = \"" + topology
                        + "\"): there is no such resource beside " + type.getName()));
    }

    /** A resource beside a class, else beside the next of its superclasses that has one, or null. */
    private static String resource(Class<?> type, String name) {
        return Stream.<Class<?>>iterate(type, Objects::nonNull, Class::getSuperclass)
                .map(each -> resourceBeside(each, name))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    private static String resourceBeside(Class<?> type, String name) {
        try (InputStream stream = type.getResourceAsStream(name)) {
            return stream == null ? null : new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException problem) {
            throw new ExtensionConfigurationException("the resource " + name + " cannot be read: " + problem);
        }
    }

    private static ServiceBusExtension selected(ExtensionContext context) {
        return context.getStore(STORE).get(ServiceBusExtension.class, ServiceBusExtension.class);
    }

    /** Adds the timeline of a namespace, to be shown below the failure of its test. */
    private static void addTimeline(Throwable failure, String report) {
        if (report == null || failure instanceof TestAbortedException) {
            return;
        }
        failure.addSuppressed(new Throwable(report, null, false, false) {
            @Override
            public String toString() {
                return getMessage();
            }
        });
    }
}

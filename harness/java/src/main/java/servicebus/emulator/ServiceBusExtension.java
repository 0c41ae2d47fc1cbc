package servicebus.emulator;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Stream;
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
            Emulator emulator = Emulator.shared(split(context.getConfigurationParameter(OPTIONS).orElse("")));
            servicebus = new ServiceBus(emulator, configuration(context));
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
                .ifPresent(thrown -> thrown.addSuppressed(timeline(report)));
        if (!failure.isPresent() && report != null) {
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
                .flatMap(element -> AnnotationSupport.findAnnotation(element, ServiceBusEmulator.class).stream())
                .filter(found -> found.queues().length > 0 || !found.topology().isEmpty())
                .findFirst()
                .map(declared -> configuration(declared, type))
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

    private static String resource(Class<?> type, String name) {
        try (InputStream stream = type.getResourceAsStream(name)) {
            return stream == null ? null : new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException problem) {
            throw new ExtensionConfigurationException("the resource " + name + " cannot be read: " + problem);
        }
    }

    /** The timeline of a namespace, to be shown below the failure of its test. */
    private static Throwable timeline(String report) {
        return new Throwable(report, null, false, false) {
            @Override
            public String toString() {
                return getMessage();
            }
        };
    }
}

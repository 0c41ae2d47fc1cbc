package tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import com.azure.messaging.servicebus.ServiceBusException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.testkit.engine.EngineTestKit;
import servicebus.emulator.ServiceBus;
import servicebus.emulator.ServiceBusEmulator;

/** Reports of failing tests, and errors for invalid input. */
class FailuresTest {
    /** Runs the tests of a class; returns the failure of each as text, or "" if it passed or was skipped. */
    private static Map<String, String> run(Class<?> tests, String... options) {
        var failures = new TreeMap<String, String>();
        EngineTestKit.engine("junit-jupiter")
                .selectors(selectClass(tests))
                .configurationParameter("servicebus.options", String.join(" ", options))
                .execute()
                .allEvents()
                .finished()
                .stream()
                .forEach(event -> failures.put(
                        event.getTestDescriptor().getDisplayName().replace("(ServiceBus)", ""),
                        event.getRequiredPayload(TestExecutionResult.class)
                                .getThrowable()
                                .map(FailuresTest::stackTrace)
                                .orElse("")));
        return failures;
    }

    private static String stackTrace(Throwable thrown) {
        var text = new StringWriter();
        thrown.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    /** Expects these lines; {@code *} matches any text. */
    private static void shows(String output, String... lines) {
        String pattern = "(?s).*" + String.join("\n", lines).replaceAll("[^*]+", "\\\\Q$0\\\\E").replace("*", ".*") + ".*";
        assertTrue(output.matches(pattern), () -> output + "\nlacks\n" + String.join("\n", lines));
    }

    @ServiceBusEmulator
    static class Expiring {
        @BeforeEach
        void prepare(ServiceBus servicebus) {
            Clients.send(servicebus, "queue.1", message -> message.setTimeToLive(Duration.ofHours(1)));
        }

        @Test
        void counted(ServiceBus servicebus) {
            servicebus.advance(Duration.ofHours(1));
            assertEquals(1, servicebus.counts("queue.1").get("active"));
        }
    }

    @Test
    void aFailureShowsTheTimeline() {
        shows(run(Expiring.class).get("counted"),
                "AssertionFailedError: expected: <1> but was: <0>*",
                "\tSuppressed: timeline of test-*",
                "  +*.* s*sent*o-17, by *, in queue.1",
                "            clock advanced  by the test, 3600 s",
                "  +3600.* s*expired         o-17, in queue.1*");
    }

    @ServiceBusEmulator
    static class Dynamic {
        @TestFactory
        Stream<DynamicTest> factory(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply();
            return Stream.of("one", "two").map(name -> DynamicTest.dynamicTest(name, () -> {
                Clients.send(servicebus, "queue.1");
                assertEquals("one", name);
            }));
        }
    }

    @Test
    void theFailureOfADynamicTestShowsTheTimeline() {
        var failures = run(Dynamic.class);
        assertEquals("", failures.get("factory"));
        assertEquals("", failures.get("one"));
        shows(failures.get("two"), "\tSuppressed: timeline of test-*", "  +*.* s*sent*o-17, by *, in queue.1*");
    }

    @ServiceBusEmulator
    static class Aborted {
        @TestFactory
        Stream<DynamicTest> factory(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply();
            return Stream.of(DynamicTest.dynamicTest("aborted", () -> Assumptions.abort("not here")));
        }
    }

    @Test
    void aDynamicTestThatIsSkippedDoesNotHideAFaultThatNeverFired() {
        shows(run(Aborted.class).get("factory"), "a fault never fired: *");
    }

    @ServiceBusEmulator
    static class InterruptedDynamic {
        @TestFactory
        Stream<DynamicTest> factory(ServiceBus servicebus) {
            return Stream.of(DynamicTest.dynamicTest("interrupted", () -> {
                Thread.currentThread().interrupt();
                throw new IllegalStateException("another");
            }));
        }
    }

    @Test
    void anInterruptThatADynamicTestLeavesDoesNotHideItsTimeline() {
        var failures = run(InterruptedDynamic.class);
        Thread.interrupted();
        shows(failures.get("interrupted"), "java.lang.IllegalStateException: another", "*timeline of*", "  nothing happened*");
    }

    @ServiceBusEmulator
    static class Closed {
        @Test
        void passing(ServiceBus servicebus) {
            servicebus.close();
        }

        @Test
        void once(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply();
            servicebus.close();
        }

        @TestFactory
        Stream<DynamicTest> factory(ServiceBus servicebus) {
            return Stream.of(DynamicTest.dynamicTest("dynamic", () -> {
                servicebus.close();
                throw new IllegalStateException("another");
            }));
        }

        @Test
        void failing(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply();
            assertThrows(AssertionError.class, servicebus::close);
        }
    }

    @Test
    void aTestMayCloseItsNamespace() {
        var failures = run(Closed.class);
        assertEquals("", failures.get("passing"));
        shows(failures.get("failing"), "a fault never fired: *");
        shows(failures.get("once"), "a fault never fired: *");
        assertEquals(-1, failures.get("once").indexOf("Suppressed"));
        shows(failures.get("dynamic"), "java.lang.IllegalStateException: another");
        assertEquals(-1, failures.get("dynamic").indexOf("Suppressed"));
    }

    @ServiceBusEmulator(queues = {"a", "b"})
    static class Unfired {
        @Test
        void never(ServiceBus servicebus) {
            servicebus.faults().on("complete").entity("a").with("delivery", 1).loseLock();
        }

        @Test
        void near(ServiceBus servicebus) {
            servicebus.faults().on("send").entity("a").nth(2).reject("amqp:not-allowed");
            Clients.send(servicebus, "a");
            Clients.send(servicebus, "b");
        }

        @Test
        void fired(ServiceBus servicebus) {
            Clients.send(servicebus, "a");
            var late = servicebus.faults().on("complete").entity("a").loseLock();
            assertThrows(ServiceBusException.class, () -> Clients.complete(servicebus, "a"));
            assertEquals(1, late.hits());
        }

        @Test
        void removed(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply().remove();
        }

        @Test
        void failing(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply();
            throw new IllegalStateException("another");
        }

        @Test
        void skipped(ServiceBus servicebus) {
            servicebus.faults().on("complete").loseReply();
            Assumptions.abort("not here");
        }
    }

    @Test
    void aFaultThatNeverFiredFailsATestThatPassed() {
        var failures = run(Unfired.class);
        shows(failures.get("never"),
                "a fault never fired: {\"delivery\":1,\"effect\":\"lose-lock\",\"entity\":\"a\",*\"operation\":\"complete\"*",
                "  no completion came",
                "  scripted at tests.FailuresTest$Unfired.never(FailuresTest.java:*)",
                "hint: let the test perform the operation of the fault, or remove the fault",
                "*timeline of test-*");
        shows(failures.get("near"), "only 1 send came, and 1 in other entities", "  scripted at *");
        assertEquals("", failures.get("fired"));
        assertEquals("", failures.get("removed"));
        shows(failures.get("failing"), "java.lang.IllegalStateException: another", "*timeline of*");
        assertEquals(-1, failures.get("failing").indexOf("never fired"));
        assertEquals(-1, failures.get("skipped").indexOf("never fired"));
    }

    @ServiceBusEmulator
    static class Interrupted {
        @AfterEach
        void interrupt() {
            Thread.currentThread().interrupt();
        }

        @Test
        void failing(ServiceBus servicebus) {
            throw new IllegalStateException("another");
        }
    }

    @Test
    void anInterruptThatATestLeavesDoesNotHideItsTimeline() {
        var failures = run(Interrupted.class);
        Thread.interrupted();
        shows(failures.get("failing"), "java.lang.IllegalStateException: another", "*timeline of*");
        try (var servicebus = ServiceBus.start(new servicebus.emulator.Topology())) {
            Thread.currentThread().interrupt();
        }
        assertTrue(Thread.interrupted());
    }

    @Test
    void aFaultThatNeverFiredFailsABlock() {
        var error = assertThrows(AssertionError.class, () -> {
            try (var servicebus = ServiceBus.start(new servicebus.emulator.Topology().queues("a"))) {
                servicebus.faults().on("send").serverBusy();
            }
        });
        shows(error.getMessage(), "a fault never fired: {\"effect\":{\"reject\":{\"condition\":*");
    }

    @ServiceBusEmulator(queues = "orders")
    static class Expecting {
        @Test
        void holds(ServiceBus servicebus) {
            Clients.send(servicebus, "orders");
            servicebus.expect("orders", "message_count", Map.of("active", 1, "dead_letter", 0));
            servicebus.expect("orders", "not_delivered");
            Clients.complete(servicebus, "orders");
            servicebus.expect("orders", "completed", Map.of("message_id", "o-17", "body", ServiceBus.contains("1")));
        }

        @Test
        void bytes(ServiceBus servicebus) {
            Clients.send(servicebus, "orders");
            Clients.complete(servicebus, "orders");
            byte[] body = {'1', '2'};
            servicebus.expect("orders", "completed", Map.of("body", body));
            servicebus.expect("orders", "completed", Map.of("body", Map.of("contains", body)));
            servicebus.expect("orders", "not_completed", Map.of("body", body));
        }

        @Test
        void noText(ServiceBus servicebus) {
            servicebus.expect("orders", "not_completed", Map.of("body", new byte[] {-1}));
        }

        @Test
        void noJson(ServiceBus servicebus) {
            servicebus.expect("orders", "not_completed", Map.of("body_json", new byte[] {'1', '2'}));
        }

        @Test
        @ServiceBusEmulator(topology = """
                {"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [
                    {"Name": "carts", "Properties": {"RequiresSession": true}}]}]}}
                """)
        void listsAndArrays(ServiceBus servicebus) {
            Clients.send(servicebus, "carts", message -> message.setSessionId("s-1"));
            byte[] body = {'1', '2'};
            servicebus.expect("carts", "session_order", Map.of("session", "s-1", "bodies", List.of(body)));
            servicebus.expect("carts", "session_order", Map.of("session", "s-1", "bodies", new String[] {"12"}));
        }

        @Test
        void longTimes(ServiceBus servicebus) {
            servicebus.expect("orders", "not_scheduled", Map.of("due_in", Duration.ofDays(365 * 300)));
        }

        @Test
        void fails(ServiceBus servicebus) {
            Clients.send(servicebus, "orders");
            servicebus.expect("orders", "dead_lettered", Map.of("reason", "late", "within", Duration.ofMillis(100)));
        }

        @Test
        void kind(ServiceBus servicebus) {
            servicebus.expect("orders", "bought");
        }

        @Test
        void field(ServiceBus servicebus) {
            servicebus.expect("orders", "completed", Map.of("colour", "red"));
        }
    }

    @Test
    void theEmulatorEvaluatesAssertions() {
        var failures = run(Expecting.class);
        assertEquals("", failures.get("holds"));
        assertEquals("", failures.get("listsAndArrays"));
        shows(failures.get("longTimes"), "EmulatorException: due_in is 9460800000.0; it takes seconds from 0 to *");
        shows(failures.get("bytes"), "AssertionError: orders: expected no message completed*");
        shows(failures.get("noText"), "EmulatorException: body is the bytes ff, which are not UTF-8; it takes a text*");
        shows(failures.get("noJson"), "EmulatorException: body_json contains bytes, which JSON does not have; it takes JSON*");
        shows(failures.get("fails"),
                "AssertionError: orders: expected 1 message dead-lettered with reason \"late\", found none within 0.1 s*",
                "timeline of*",
                "hint: *");
        shows(failures.get("kind"), "EmulatorException: *bought*dead_lettered*");
        shows(failures.get("field"), "EmulatorException: *colour*message_id*");
    }

    @ServiceBusEmulator
    static class Mistakes {
        @Test
        void field(ServiceBus servicebus) {
            servicebus.faults().on("complete").with("colour", 1).loseLock();
        }

        @Test
        void effect(ServiceBus servicebus) {
            servicebus.faults().on("send").apply("lose-lok");
        }

        @Test
        void entity(ServiceBus servicebus) {
            servicebus.counts("nowhere");
        }

        @Test
        void none(ServiceBus servicebus) {
            servicebus.counts(null);
        }

        @Test
        @ServiceBusEmulator(topology = "nowhere.json")
        void resource(ServiceBus servicebus) {}

        @Test
        @ServiceBusEmulator(topology = "{}", queues = "a")
        void both(ServiceBus servicebus) {}

        @Test
        @ServiceBusEmulator(topology = """
                {"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [
                    {"Name": "a", "Properties": {"MaxDeliveries": 3}},
                    {"Name": "b", "Properties": {"LockDuration": "PT1S"}}]}]}}
                """)
        void topology(ServiceBus servicebus) {}

        @Test
        void receiver(ServiceBus servicebus) {
            servicebus.waitForReceiver("queue.1", Duration.ofMillis(20));
        }

        @Test
        void ended(ServiceBus servicebus) {
            var worker = Thread.currentThread();
            worker.interrupt();
            try {
                servicebus.waitIdle();
            } finally {
                Thread.interrupted();
            }
        }
    }

    @ServiceBusEmulator
    static class TooEarly {
        @BeforeAll
        static void prepare(ServiceBus servicebus) {}

        @Test
        void test() {}
    }

    @Test
    void mistakesHaveReadableErrors() {
        var failures = run(Mistakes.class);
        shows(failures.get("field"), "EmulatorException: *unknown field `colour`, expected one of `operation`, *");
        shows(failures.get("effect"), "EmulatorException: *lose-lok*");
        shows(failures.get("entity"), "EmulatorException: *nowhere*");
        shows(failures.get("none"), "NullPointerException: entity is null*");
        shows(failures.get("resource"),
                "@ServiceBusEmulator(topology = \"nowhere.json\"): there is no such resource beside tests.FailuresTest$Mistakes");
        shows(failures.get("both"), "@ServiceBusEmulator takes queues or a topology, not both");
        shows(failures.get("topology"),
                "the topology cannot be served: *.Queues[0].Properties.MaxDeliveries *did you mean \"MaxDeliveryCount\"?; "
                        + "*.Queues[1].Properties.LockDuration \"PT1S\": 5 s (PT5S) to 5 min (PT5M)");
        shows(failures.get("receiver"), "AssertionError: queue.1: expected 1 receiver to be attached, found none within 0.02 s*");
        shows(failures.get("ended"), "the test was interrupted while it waited for POST *");
        shows(run(TooEarly.class).get("FailuresTest$TooEarly"),
                "each test has its own ServiceBus: declare the parameter in the test or in @BeforeEach, not in @BeforeAll");
    }

    @ServiceBusEmulator
    static class Any {
        @Test
        void test(ServiceBus servicebus) {}
    }

    @Test
    void optionsAreThoseOfTheEmulator() throws Exception {
        assertEquals("", run(Any.class, "--tier", "premium").get("test"));
        shows(run(Any.class, "\"--none a b\"").get("test"), "the emulator did not start: *'--none a b'*");
        shows(run(Any.class, "--amqp-prot", "1").get("test"), "the emulator did not start: *; check its options (*");
        shows(run(Any.class, "--tier", "gold").get("test"),
                "the emulator did not start: error: *'gold'* [possible values: basic, standard, premium]; check *");
        try (var listener = new java.net.ServerSocket(0, 1, java.net.InetAddress.getByName("127.0.0.1"))) {
            shows(run(Any.class, "--amqp-port", "" + listener.getLocalPort()).get("test"),
                    "the emulator did not start: cannot listen on 127.0.0.1:*: Address already in use *");
        }
    }

    @ServiceBusEmulator
    static class Dying {
        @Test
        void a(ServiceBus servicebus) {
            long pid = (Long) servicebus.emulator().ready().get("pid");
            ProcessHandle.of(pid).orElseThrow().destroyForcibly();
            servicebus.counts("queue.1");
        }

        @Test
        void b(ServiceBus servicebus) {}
    }

    @Test
    void anEmulatorThatDiesFailsItsTestAndLaterOnesWithAReadableError() {
        String message = "the emulator was ended by signal 9 during the test run: start the run again*";
        var failures = run(Dying.class, "--seed", "1");
        shows(failures.get("a"), message, "\tSuppressed: *" + message);
        shows(failures.get("b"), message);
    }
}

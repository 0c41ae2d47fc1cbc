package cases;

import static cases.Messages.bodies;
import static cases.Messages.price;
import static cases.Messages.text;

import com.azure.core.amqp.exception.AmqpErrorCondition;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The rules of a subscription, created, listed and deleted by its rule manager over AMQP.
 *
 * <p>Source: topic-filters, service-bus-amqp-request-response (add, remove and enumerate rules). The subscriptions are
 * those of the topics' cases.
 */
final class Rules {
    private Rules() {
    }

    /** A subscription starts with $Default; one in the configuration has its own rules instead. */
    static void configured(Namespace namespace) {
        Expect.equal("of all", shown(manager(namespace, "prices", "all")), Map.of("$Default", "TrueRuleFilter"));
        var cheap = manager(namespace, "prices", "cheap").listRules().stream().toList().get(0);
        Expect.equal("name", cheap.getName(), "below-ten");
        Expect.equal("of cheap", cheap.getFilter(), new SqlRuleFilter("price < 10"));
        var eu = manager(namespace, "prices", "eu").listRules().stream().toList().get(0);
        var filter = new CorrelationRuleFilter().setLabel("changed");
        filter.getProperties().put("region", "eu");
        Expect.equal("of eu", eu.getFilter(), filter);
        var marked = manager(namespace, "alarms", "marked");
        Expect.equal("names", List.copyOf(shown(marked).keySet()), List.of("plain", "plain-too", "raised"));
        String change = "SET level = level + 1; SET sys.Label = 'raised'; SET seen = TRUE; REMOVE secret";
        var raised = marked.listRules().stream().filter(rule -> rule.getName().equals("raised")).toList().get(0);
        Expect.equal("action", ((SqlRuleAction) raised.getAction()).getSqlExpression(), change);
    }

    /** Added rules are listed as they were created; the SDK converts values that are not strings to strings. */
    static void enumerates(Namespace namespace) {
        var manager = manager(namespace, "prices", "all");
        var whole = new CorrelationRuleFilter("c")
                .setMessageId("m")
                .setTo("t")
                .setReplyTo("r")
                .setLabel("s")
                .setSessionId("i")
                .setReplyToSessionId("ri")
                .setContentType("text/plain");
        whole.getProperties().put("text", "x");
        var condition = new SqlRuleFilter("Price >= 10 AND [my region] LIKE 'e%'");
        manager.createRule("by-price", new CreateRuleOptions(condition));
        manager.createRule("marked", new CreateRuleOptions(new SqlRuleFilter("TRUE = TRUE"))
                .setAction(new SqlRuleAction("SET seen = 1")));
        manager.createRule("never", new CreateRuleOptions(new FalseRuleFilter()));
        manager.createRule("whole", new CreateRuleOptions(whole));
        var number = new CorrelationRuleFilter();
        number.getProperties().put("number", 5L);
        manager.createRule("with-number", new CreateRuleOptions(number));
        var rules = new TreeMap<String, RuleProperties>();
        manager.listRules().forEach(rule -> rules.put(rule.getName(), rule));
        var names = List.of("$Default", "by-price", "marked", "never", "whole", "with-number");
        Expect.equal("names", List.copyOf(rules.keySet()), names);
        Expect.equal("condition", rules.get("by-price").getFilter(), condition);
        var action = (SqlRuleAction) rules.get("marked").getAction();
        Expect.equal("action", action.getSqlExpression(), "SET seen = 1");
        Expect.equal("correlation", rules.get("whole").getFilter(), whole);
        number.getProperties().put("number", "5");
        Expect.equal("with a number", rules.get("with-number").getFilter(), number);
    }

    /** Rules apply to messages that are sent later; without rules, no message arrives. */
    static void takesEffect(Namespace namespace) {
        var manager = manager(namespace, "prices", "all");
        namespace.publish("prices", price("before", 50));
        manager.deleteRule("$Default");
        Expect.equal("rules", shown(manager), Map.of());
        namespace.publish("prices", price("none", 50));
        manager.createRule("dear", new CreateRuleOptions(new SqlRuleFilter("price > 10")));
        var greeting = new CorrelationRuleFilter().setLabel("hello");
        greeting.getProperties().put("price", 5.0);
        manager.createRule("greeting", new CreateRuleOptions(greeting));
        namespace.publish("prices", price("dear", 11), price("cheap", 9), price("five", 5));
        namespace.publish("prices", price("greeting", 5).setSubject("hello"));
        namespace.publish("prices", price("both", 5).setSubject("Hello"));
        manager.deleteRule("dear");
        namespace.publish("prices", price("dear too late", 11));
        Receiver receiver = namespace.subscriber("prices", "all");
        var messages = receiver.receive(3);
        Expect.equal("received", bodies(messages), List.of("before", "dear", "greeting"));
        receiver.complete(messages);
        receiver.receiveNothing();
    }

    /** An action changes the copy of the message, which contains the name of the rule. */
    static void action(Namespace namespace) {
        String change = "SET sys.Label = 'half'; SET price = price / 2; SET region = 'eu'; REMOVE secret";
        manager(namespace, "prices", "all").createRule("halved", new CreateRuleOptions(
                new SqlRuleFilter("price >= 10")).setAction(new SqlRuleAction(change)));
        var sent = Messages.with(text("a"), Map.of("price", 30L, "secret", "s")).setSubject("whole");
        namespace.publish("prices", sent);
        var messages = namespace.subscriber("prices", "all").receive(2);
        var copies = messages.stream()
                .map(message -> message.getSubject() + " " + new TreeMap<>(message.getApplicationProperties()))
                .sorted()
                .toList();
        Expect.equal("copies", copies, List.of(
                "half {RuleName=halved, price=15, region=eu}",
                "whole {price=30, secret=s}"));
        namespace.expectCounts("prices/Subscriptions/all", Map.of("active", 2, "locked", 2));
    }

    /** A name can be used once; the existing rule stays unchanged. */
    static void duplicate(Namespace namespace) {
        var manager = manager(namespace, "prices", "cheap");
        Expect.refused(
                ServiceBusFailureReason.MESSAGING_ENTITY_ALREADY_EXISTS,
                () -> manager.createRule("below-ten", new CreateRuleOptions(new SqlRuleFilter("1=1"))));
        Expect.equal("rules", shown(manager), Map.of("below-ten", "SqlRuleFilter: price < 10"));
    }

    /** A missing rule cannot be deleted. */
    static void unknown(Namespace namespace) {
        var manager = manager(namespace, "prices", "all");
        NotFound.expectMissing(() -> manager.deleteRule("missing"));
        manager.deleteRule("$Default");
        NotFound.expectMissing(() -> manager.deleteRule("$Default"));
    }

    /** A rule with an invalid filter or action is rejected. */
    static void malformed(Namespace namespace) {
        var manager = manager(namespace, "prices", "all");
        for (String filter : List.of("price <", "price = 'open", "sys.Nothing = 1")) {
            expectMalformed(manager, new CreateRuleOptions(new SqlRuleFilter(filter)));
        }
        expectMalformed(
                manager, new CreateRuleOptions(new SqlRuleFilter("1=1")).setAction(new SqlRuleAction("DROP price")));
        Expect.equal("names", List.copyOf(shown(manager).keySet()), List.of("$Default"));
    }

    private static void expectMalformed(ServiceBusRuleManagerClient manager, CreateRuleOptions rule) {
        Expect.condition(AmqpErrorCondition.ARGUMENT_ERROR, () -> manager.createRule("wrong", rule));
    }

    /** Only a subscription that exists has rules. */
    static void notFound(Namespace namespace) {
        Map.of("missing", "all", "prices", "missing").forEach((topic, subscription) ->
                NotFound.expectMissing(() -> shown(manager(namespace, topic, subscription))));
    }

    private static ServiceBusRuleManagerClient manager(Namespace namespace, String topic, String subscription) {
        return namespace.closing(namespace.clients
                .ruleManager()
                .topicName(topic)
                .subscriptionName(subscription)
                .buildClient());
    }

    private static TreeMap<String, String> shown(ServiceBusRuleManagerClient manager) {
        var shown = new TreeMap<String, String>();
        manager.listRules().forEach(rule -> shown.put(rule.getName(), String.valueOf(rule.getFilter())));
        return shown;
    }
}

package cases;

import static cases.Messages.at;
import static cases.Messages.body;
import static cases.Messages.later;
import static cases.Messages.numbered;
import static cases.Messages.text;
import static cases.Messages.texts;

import com.azure.core.exception.ResourceNotFoundException;
import com.azure.messaging.servicebus.administration.models.AccessRights;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateQueueOptions;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.CreateSubscriptionOptions;
import com.azure.messaging.servicebus.administration.models.CreateTopicOptions;
import com.azure.messaging.servicebus.administration.models.EntityStatus;
import com.azure.messaging.servicebus.administration.models.MessagingSku;
import com.azure.messaging.servicebus.administration.models.QueueProperties;
import com.azure.messaging.servicebus.administration.models.RuleProperties;
import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import com.azure.messaging.servicebus.administration.models.SqlRuleAction;
import com.azure.messaging.servicebus.administration.models.SqlRuleFilter;
import com.azure.messaging.servicebus.administration.models.SubscriptionProperties;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * The administration client: entities and rules are created, read, listed, updated and deleted.
 *
 * <p>Source: the SDK's own tests of its client, spec/admin-http.md.
 */
final class Admin {
    private static final Duration FOREVER = Duration.parse("P10675199DT2H48M5.4775807S");

    private Admin() {
    }

    /** The properties of the namespace. */
    static void namespace(Namespace namespace) {
        var shown = Administration.of(namespace).getNamespaceProperties();
        Expect.isTrue("it has a name", !shown.getName().isEmpty());
        Expect.equal("tier", shown.getMessagingSku(), MessagingSku.STANDARD);
    }

    /** A queue has the properties it was created with, also if its name contains a slash. */
    static void queues(Namespace namespace) {
        var client = Administration.of(namespace);
        var options = new CreateQueueOptions()
                .setLockDuration(Duration.ofSeconds(13))
                .setMaxSizeInMegabytes(3072)
                .setDuplicateDetectionRequired(true)
                .setSessionRequired(true)
                .setDefaultMessageTimeToLive(Duration.ofDays(7))
                .setDeadLetteringOnMessageExpiration(true)
                .setDuplicateDetectionHistoryTimeWindow(Duration.ofMinutes(12))
                .setMaxDeliveryCount(14)
                .setBatchedOperationsEnabled(false)
                .setAutoDeleteOnIdle(Duration.ofMinutes(10))
                .setPartitioningEnabled(true)
                .setUserMetadata("a < b & 'c'");
        var rights = List.of(AccessRights.SEND, AccessRights.LISTEN);
        options.getAuthorizationRules().add(new SharedAccessAuthorizationRule("mine", rights));
        expectRequestedProperties(client.createQueue("eu/new", options), rights);
        expectRequestedProperties(client.getQueue("eu/new"), rights);
        // Observed 25, 27: with sessions and auto-delete on idle, too.
        var forwarding = client.createQueue("to-orders", new CreateQueueOptions()
                .setForwardTo("orders")
                .setSessionRequired(true)
                .setAutoDeleteOnIdle(Duration.ofMinutes(10)));
        Expect.isTrue("it has sessions", forwarding.isSessionRequired());
        Expect.equal("idleness", forwarding.getAutoDeleteOnIdle(), Duration.ofMinutes(10));
        Expect.isTrue("it forwards", forwarding.getForwardTo().endsWith("orders"));
        Expect.equal("names", Administration.queues(client), List.of("eu/new", "failures", "orders", "to-orders"));
        client.deleteQueue("eu/new");
        Expect.equal("names", Administration.queues(client), List.of("failures", "orders", "to-orders"));
    }

    private static void expectRequestedProperties(QueueProperties shown, List<AccessRights> rights) {
        Expect.equal("name", shown.getName(), "eu/new");
        Expect.equal("lock duration", shown.getLockDuration(), Duration.ofSeconds(13));
        // Each of the 16 partitions has the requested size (observed 30).
        Expect.equal("size", shown.getMaxSizeInMegabytes(), 16 * 3072L);
        Expect.isTrue("it finds duplicates", shown.isDuplicateDetectionRequired());
        Expect.isTrue("it has sessions", shown.isSessionRequired());
        Expect.equal("time to live", shown.getDefaultMessageTimeToLive(), Duration.ofDays(7));
        Expect.isTrue("it dead-letters on expiration", shown.isDeadLetteringOnMessageExpiration());
        Expect.equal("window", shown.getDuplicateDetectionHistoryTimeWindow(), Duration.ofMinutes(12));
        Expect.equal("deliveries", shown.getMaxDeliveryCount(), 14);
        Expect.isTrue("it has no batched operations", !shown.isBatchedOperationsEnabled());
        Expect.equal("idleness", shown.getAutoDeleteOnIdle(), Duration.ofMinutes(10));
        Expect.isTrue("it is partitioned", shown.isPartitioningEnabled());
        Expect.equal("metadata", shown.getUserMetadata(), "a < b & 'c'");
        Expect.equal("status", shown.getStatus(), EntityStatus.ACTIVE);
        var kept = shown.getAuthorizationRules().get(0);
        Expect.equal("rights", kept.getAccessRights(), rights);
        Expect.equal("name of the key", kept.getKeyName(), "mine");
        Expect.equal("length of the key", kept.getPrimaryKey().length(), 44);
    }

    /** Properties that were read can be changed and written back; properties that are left out are reset. */
    static void changes(Namespace namespace) {
        var client = Administration.of(namespace);
        client.createQueue("new", new CreateQueueOptions()
                .setUserMetadata("m")
                .setForwardTo("orders")
                .setDuplicateDetectionRequired(true));
        client.updateQueue(client.getQueue("new")
                .setLockDuration(Duration.ofMinutes(2))
                .setForwardTo(null)
                .setStatus(EntityStatus.SEND_DISABLED));
        var queue = client.getQueue("new");
        Expect.equal("lock duration", queue.getLockDuration(), Duration.ofMinutes(2));
        Expect.equal("target", queue.getForwardTo(), null);
        Expect.equal("status", queue.getStatus(), EntityStatus.SEND_DISABLED);
        Expect.equal("metadata", queue.getUserMetadata(), "m");
        client.updateTopic(client.getTopic("prices").setDefaultMessageTimeToLive(Duration.ofMinutes(1)));
        Expect.equal("topic", client.getTopic("prices").getDefaultMessageTimeToLive(), Duration.ofMinutes(1));
        client.updateSubscription(client.getSubscription("prices", "all").setMaxDeliveryCount(3));
        Expect.equal("subscription", client.getSubscription("prices", "all").getMaxDeliveryCount(), 3);
    }

    /** Topics with subscriptions; deleting an entity deletes those that it contains. */
    static void topics(Namespace namespace) {
        var client = Administration.of(namespace);
        client.createTopic("new", new CreateTopicOptions().setOrderingSupported(false).setMaxSizeInMegabytes(2048));
        var topic = client.getTopic("new");
        Expect.isTrue("it is not ordered", !topic.isOrderingSupported());
        Expect.equal("size", topic.getMaxSizeInMegabytes(), 2048L);
        Expect.equal("for ever", topic.getDefaultMessageTimeToLive(), FOREVER);
        var settings = new CreateSubscriptionOptions().setMaxDeliveryCount(3).setSessionRequired(true);
        var made = client.createSubscription("new", "One", settings);
        Expect.equal("names", List.of(made.getSubscriptionName(), made.getTopicName()), List.of("One", "new"));
        Expect.equal("deliveries", made.getMaxDeliveryCount(), 3);
        Expect.isTrue("it has sessions", made.isSessionRequired());
        client.createSubscription("new", "two", new CreateSubscriptionOptions().setForwardTo("orders"));
        var listed = Messages.mapped(client.listSubscriptions("new"), SubscriptionProperties::getSubscriptionName);
        Expect.equal("names", listed, List.of("One", "two"));
        Expect.equal("count", client.getTopicRuntimeProperties("new").getSubscriptionCount(), 2);
        client.deleteSubscription("new", "two");
        Expect.isTrue("it is not there", !client.getSubscriptionExists("new", "two"));
        Expect.equal("count", client.getTopicRuntimeProperties("new").getSubscriptionCount(), 1);
        client.deleteTopic("new");
        Expect.isTrue("it is not listed", !Administration.topics(client).contains("new"));
    }

    /** Rules of every kind are returned as they were created. */
    static void rules(Namespace namespace) {
        var client = Administration.of(namespace);
        var filter = new SqlRuleFilter("price > @p");
        // Over HTTP the SDK writes every value as a string.
        filter.getParameters().put("@p", "ten");
        var action = new SqlRuleAction("SET mark = @m");
        action.getParameters().put("@m", "x");
        // Here the SDK takes the rule's name before the subscription's, elsewhere after it.
        client.createRule("prices", "sql", "all", new CreateRuleOptions(filter).setAction(action));
        var correlation = new CorrelationRuleFilter().setLabel("l").setSessionId("s");
        correlation.getProperties().putAll(Map.of("s", "x", "t", "y"));
        client.createRule("prices", "correlation", "all", new CreateRuleOptions(correlation));
        var sql = client.getRule("prices", "all", "sql");
        // Filters that are read differ from those created: they have a compatibility level.
        Expect.equal("filter", ((SqlRuleFilter) sql.getFilter()).getSqlExpression(), filter.getSqlExpression());
        Expect.equal("parameters", ((SqlRuleFilter) sql.getFilter()).getParameters(), filter.getParameters());
        Expect.equal("action", ((SqlRuleAction) sql.getAction()).getSqlExpression(), action.getSqlExpression());
        Expect.equal("its parameters", ((SqlRuleAction) sql.getAction()).getParameters(), action.getParameters());
        var read = client.getRule("prices", "all", "correlation");
        Expect.equal("correlation", read.getFilter(), correlation);
        client.updateRule("prices", "all", read.setFilter(new SqlRuleFilter("price = 1")));
        var changed = (SqlRuleFilter) client.getRule("prices", "all", "correlation").getFilter();
        Expect.equal("changed", changed.getSqlExpression(), "price = 1");
        client.deleteRule("prices", "all", "$Default");
        var names = Messages.mapped(client.listRules("prices", "all"), RuleProperties::getName);
        Expect.equal("names", names, List.of("correlation", "sql"));
    }

    /** More queues than fit in a page are all listed, each once. */
    static void pages(Namespace namespace) {
        var client = Administration.of(namespace);
        var all = new ArrayList<String>(List.of("failures"));
        for (int index = 0; index < 203; index++) {
            String name = "many-%03d".formatted(index);
            client.createQueue(name);
            all.add(name);
        }
        all.add("orders");
        Expect.equal("names", Administration.queues(client), all);
        var sizes = Messages.mapped(
                client.listQueues().iterableByPage(), page -> page.getElements().stream().count());
        Expect.equal("sizes", sizes, List.of(100L, 100L, 5L));
    }

    /** The subscription counts dead-lettered messages, the topic counts scheduled ones. */
    static void counts(Namespace namespace) {
        var client = Administration.of(namespace);
        // When it updates a subscription the SDK forgets the time to live.
        client.createSubscription("prices", "new", new CreateSubscriptionOptions()
                .setDefaultMessageTimeToLive(Duration.ofMinutes(1))
                .setDeadLetteringOnMessageExpiration(true));
        namespace.publisher("prices").sendBatch(texts(numbered(0, 62)));
        namespace.advance(61);
        namespace.publish("prices", text("active"), at(later(3600), text("later")));
        var shown = client.getSubscriptionRuntimeProperties("prices", "new");
        Expect.equal("active messages", shown.getActiveMessageCount(), 1);
        Expect.equal("dead letters", shown.getDeadLetterMessageCount(), 62);
        Expect.equal("all messages", shown.getTotalMessageCount(), 63L);
        var topic = client.getTopicRuntimeProperties("prices");
        Expect.equal("topic", topic.getScheduledMessageCount(), 1);
        Expect.isTrue("it holds something", topic.getSizeInBytes() > 0);
        namespace.send("orders", text("m"));
        var queue = client.getQueueRuntimeProperties("orders");
        Expect.equal("active messages of the queue", queue.getActiveMessageCount(), 1);
        Expect.equal("all messages of the queue", queue.getTotalMessageCount(), 1L);
        Expect.isTrue("it was made, then changed", queue.getCreatedAt().isBefore(queue.getUpdatedAt()));
        Expect.isTrue("it was changed, then used", queue.getUpdatedAt().isBefore(queue.getAccessedAt()));
    }

    /** A missing entity does not exist, and reading or changing it is an error. */
    static void missing(Namespace namespace) {
        var client = Administration.of(namespace);
        Expect.isTrue("there is no such queue", !client.getQueueExists("missing"));
        Expect.isTrue("there is no such topic", !client.getTopicExists("missing"));
        Expect.isTrue("there is no such subscription", !client.getSubscriptionExists("prices", "missing"));
        List<Runnable> attempts = List.of(
                () -> client.getQueue("missing"),
                () -> client.getTopic("missing"),
                () -> client.getSubscription("prices", "missing"),
                () -> client.getRule("prices", "all", "missing"),
                () -> client.getQueueRuntimeProperties("missing"),
                () -> client.deleteQueue("missing"),
                () -> client.deleteSubscription("prices", "missing"),
                () -> client.deleteRule("prices", "all", "missing"),
                () -> client.createSubscription("missing", "new"));
        for (Runnable attempt : attempts) {
            // For a missing entity the SDK reads an empty feed, so there is no status.
            Throwable failure = Expect.failure(attempt);
            Expect.isTrue(failure + " is for want of it", failure instanceof ResourceNotFoundException);
        }
        // For a missing topic the service responds with the same feed, which this SDK cannot convert to a subscription.
        Expect.errorText("Deserialization Failed", Expect.failure(() -> client.getSubscription("missing", "all")));
        var queue = client.getQueue("orders");
        client.deleteQueue("orders");
        Expect.status(404, () -> client.updateQueue(queue));
    }

    /** A name can be used once. */
    static void conflicts(Namespace namespace) {
        var client = Administration.of(namespace);
        List<Runnable> attempts = List.of(
                () -> client.createQueue("ORDERS"),
                () -> client.createTopic("orders"),
                () -> client.createQueue("prices"),
                () -> client.createSubscription("prices", "all"),
                () -> client.createRule("prices", "all", "$Default"));
        attempts.forEach(attempt -> Expect.status(409, attempt));
    }

    /** Invalid properties are rejected with the reason. */
    static void refused(Namespace namespace) {
        var client = Administration.of(namespace);
        Map<String, CreateQueueOptions> refusals = Map.of(
                "'5' minutes", new CreateQueueOptions().setLockDuration(Duration.ofMinutes(10)),
                "AutoDeleteOnIdle", new CreateQueueOptions().setAutoDeleteOnIdle(Duration.ofMinutes(1)),
                "doesn't exist", new CreateQueueOptions().setForwardTo("missing"));
        refusals.forEach((description, options) ->
                Expect.errorText(description, Expect.status(400, () -> client.createQueue("new", options))));
        Expect.errorText("cannot be understood", Expect.status(400, () -> client.createRule(
                "prices", "new", "all", new CreateRuleOptions(new SqlRuleFilter("price >")))));
        Expect.equal("names", Administration.queues(client), List.of("failures", "orders"));
    }

    /** A client without the key cannot read or change entities. */
    static void wrongKey(Namespace namespace) {
        String right = Administration.connectionString(namespace);
        var stranger = Administration.of(right.replace("SharedAccessKey=", "SharedAccessKey=not"));
        List<Runnable> attempts = List.of(
                () -> stranger.getQueue("orders"),
                () -> stranger.deleteQueue("orders"),
                () -> stranger.createQueue("new"));
        attempts.forEach(attempt -> Expect.status(401, attempt));
        var client = Administration.of(namespace);
        Expect.equal("names", Administration.queues(client), List.of("failures", "orders"));
    }

    /** Clients send to and receive from a created queue; a deleted queue no longer exists. */
    static void usedAtOnce(Namespace namespace) {
        var client = Administration.of(namespace);
        client.createTopic("new");
        client.createSubscription("new", "one");
        namespace.publish("new", text("m"));
        try (Receiver receiver = namespace.subscriber("new", "one")) {
            var message = receiver.one();
            Expect.equal("body", body(message), "m");
            receiver.complete(message);
        }
        var left = client.getSubscriptionRuntimeProperties("new", "one");
        Expect.equal("left", left.getTotalMessageCount(), 0L);
        client.deleteTopic("new");
        NotFound.expectMissing(() -> namespace.publish("new", text("lost")));
    }
}

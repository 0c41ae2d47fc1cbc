using Azure.Messaging.ServiceBus.Administration;

/// <summary>
/// The administration client: entities and rules are created, read, listed, updated and deleted.
///
/// Source: the SDK's own tests of its client, spec/admin-http.md. It uses TLS only.
/// </summary>
internal static class Admin
{
    /// <summary>The properties of the namespace.</summary>
    internal static async Task Namespace(Bus bus)
    {
        var shown = (await bus.Administration().GetNamespacePropertiesAsync()).Value;
        Equal("namespace", (shown.Name, shown.MessagingSku), ("sbemulatorns", MessagingSku.Standard));
    }

    /// <summary>A queue has the properties it was created with, also if its name contains a slash.</summary>
    internal static async Task Queues(Bus bus)
    {
        var admin = bus.Administration();
        var options = new CreateQueueOptions("eu/new")
        {
            LockDuration = TimeSpan.FromSeconds(13), MaxSizeInMegabytes = 3072, RequiresDuplicateDetection = true,
            RequiresSession = true, DefaultMessageTimeToLive = TimeSpan.FromDays(7), DeadLetteringOnMessageExpiration = true,
            DuplicateDetectionHistoryTimeWindow = TimeSpan.FromMinutes(12), MaxDeliveryCount = 14, EnableBatchedOperations = false,
            AutoDeleteOnIdle = TimeSpan.FromMinutes(10), EnablePartitioning = true, UserMetadata = "a < b & 'c'",
            AuthorizationRules = { new SharedAccessAuthorizationRule("mine", new[] { AccessRights.Send, AccessRights.Listen }) },
        };
        var made = (await admin.CreateQueueAsync(options)).Value;
        // Each of the 16 partitions has the requested size (observed 30).
        options.MaxSizeInMegabytes *= 16;
        foreach (var shown in new[] { made, (await admin.GetQueueAsync("eu/new")).Value })
        {
            options.MaxMessageSizeInKilobytes = shown.MaxMessageSizeInKilobytes;
            True("the queue has these properties", options.Equals(new CreateQueueOptions(shown)));
            var kept = (SharedAccessAuthorizationRule)shown.AuthorizationRules.Single();
            var rights = kept.Rights.OrderBy(each => $"{each}").ToArray();
            Equal("rule", (kept.KeyName, rights), ("mine", new[] { AccessRights.Listen, AccessRights.Send }));
            Equal("length of the key", kept.PrimaryKey.Length, 44);
        }
        // Observed 25, 27: with sessions and auto-delete on idle, too.
        var beside = new CreateQueueOptions("to-orders")
        {
            ForwardTo = "orders", RequiresSession = true, AutoDeleteOnIdle = TimeSpan.FromMinutes(10),
        };
        var forwarding = (await admin.CreateQueueAsync(beside)).Value;
        var seen = (forwarding.RequiresSession, forwarding.AutoDeleteOnIdle.TotalMinutes, forwarding.ForwardTo.Split('/').Last());
        Equal("what forwards", seen, (true, 10, "orders"));
        Equal("names", await Names(admin), new[] { "eu/new", "failures", "orders", "to-orders" });
        await admin.DeleteQueueAsync("eu/new");
        Equal("names", await Names(admin), new[] { "failures", "orders", "to-orders" });
    }

    /// <summary>Properties that were read can be changed and written back.</summary>
    internal static async Task Changes(Bus bus)
    {
        var admin = bus.Administration();
        var options = new CreateQueueOptions("new") { UserMetadata = "m", ForwardTo = "orders", RequiresDuplicateDetection = true };
        await admin.CreateQueueAsync(options);
        var queue = (await admin.GetQueueAsync("new")).Value;
        (queue.LockDuration, queue.ForwardTo, queue.Status) = (TimeSpan.FromMinutes(2), null, EntityStatus.SendDisabled);
        await admin.UpdateQueueAsync(queue);
        queue = (await admin.GetQueueAsync("new")).Value;
        Equal(
            "queue",
            (queue.LockDuration.TotalMinutes, queue.ForwardTo, queue.Status, queue.UserMetadata),
            (2, (string)null, EntityStatus.SendDisabled, "m"));
        var topic = (await admin.GetTopicAsync("prices")).Value;
        topic.DefaultMessageTimeToLive = TimeSpan.FromMinutes(1);
        await admin.UpdateTopicAsync(topic);
        Equal("topic", (await admin.GetTopicAsync("prices")).Value.DefaultMessageTimeToLive.TotalMinutes, 1);
        var subscription = (await admin.GetSubscriptionAsync("prices", "all")).Value;
        subscription.MaxDeliveryCount = 3;
        await admin.UpdateSubscriptionAsync(subscription);
        Equal("subscription", (await admin.GetSubscriptionAsync("prices", "all")).Value.MaxDeliveryCount, 3);
    }

    /// <summary>Topics with subscriptions; deleting an entity deletes those that it contains.</summary>
    internal static async Task Topics(Bus bus)
    {
        var admin = bus.Administration();
        await admin.CreateTopicAsync(new CreateTopicOptions("new") { SupportOrdering = false, MaxSizeInMegabytes = 2048 });
        var topic = (await admin.GetTopicAsync("new")).Value;
        var seen = (topic.SupportOrdering, topic.MaxSizeInMegabytes, topic.DefaultMessageTimeToLive);
        Equal("topic", seen, (false, 2048, TimeSpan.MaxValue));
        var options = new CreateSubscriptionOptions("new", "One") { MaxDeliveryCount = 3, RequiresSession = true };
        var made = (await admin.CreateSubscriptionAsync(options)).Value;
        var shown = (made.SubscriptionName, made.TopicName, made.MaxDeliveryCount, made.RequiresSession);
        Equal("subscription", shown, ("One", "new", 3, true));
        await admin.CreateSubscriptionAsync(new CreateSubscriptionOptions("new", "two") { ForwardTo = "orders" });
        var listed = await admin.GetSubscriptionsAsync("new").Everything();
        Equal("names", listed.Select(each => each.SubscriptionName), new[] { "One", "two" });
        async Task<int> Count() => (await admin.GetTopicRuntimePropertiesAsync("new")).Value.SubscriptionCount;
        Equal("count", await Count(), 2);
        await admin.DeleteSubscriptionAsync("new", "two");
        True("it is gone", !await admin.SubscriptionExistsAsync("new", "two"));
        Equal("count", await Count(), 1);
        await admin.DeleteTopicAsync("new");
        True("it is not listed", (await admin.GetTopicsAsync().Everything()).All(each => each.Name != "new"));
    }

    /// <summary>Rules of every kind are returned as they were created.</summary>
    internal static async Task Rules(Bus bus)
    {
        var admin = bus.Administration();
        async Task<RuleProperties> Rule(string name) => (await admin.GetRuleAsync("prices", "all", name)).Value;
        var first = (await admin.GetRulesAsync("prices", "all").Everything()).Single();
        // The SDK shows the filter 1=1 as that which is true, and no action as null.
        Equal("default", (first.Name, first.Filter is TrueRuleFilter, first.Action), ("$Default", true, (RuleAction)null));
        var sql = new SqlRuleFilter("price > @p") { Parameters = { ["@p"] = 10 } };
        var action = new SqlRuleAction("SET mark = @m") { Parameters = { ["@m"] = "x" } };
        await admin.CreateRuleAsync("prices", "all", new CreateRuleOptions("sql", sql) { Action = action });
        var correlation = new CorrelationRuleFilter
        {
            Subject = "l", SessionId = "s",
            ApplicationProperties =
            {
                ["s"] = "x", ["i"] = 5, ["f"] = 1.5, ["b"] = true, ["d"] = new DateTime(2020, 7, 5, 11, 12, 13, DateTimeKind.Utc),
            },
        };
        await admin.CreateRuleAsync("prices", "all", new CreateRuleOptions("correlation", correlation));
        var read = await Rule("sql");
        True($"{read.Filter} is {sql}", read.Filter.Equals(sql) && read.Action.Equals(action));
        read = await Rule("correlation");
        True($"{read.Filter} is {correlation}", read.Filter.Equals(correlation));
        read.Filter = new SqlRuleFilter("price = 1");
        await admin.UpdateRuleAsync("prices", "all", read);
        True("it has another filter", (await Rule("correlation")).Filter.Equals(read.Filter));
        await admin.CreateRuleAsync("prices", "all", new CreateRuleOptions("none", new FalseRuleFilter()));
        True("it is a false filter", (await Rule("none")).Filter is FalseRuleFilter);
        await admin.DeleteRuleAsync("prices", "all", "$Default");
        var names = (await admin.GetRulesAsync("prices", "all").Everything()).Select(each => each.Name);
        Equal("names", names, new[] { "correlation", "none", "sql" });
    }

    /// <summary>Listings have pages of at most a hundred items.</summary>
    internal static async Task Pages(Bus bus)
    {
        var admin = bus.Administration();
        foreach (var name in Numbers)
        {
            await admin.CreateQueueAsync(name);
        }
        var all = Numbers.Append("failures").Append("orders");
        Equal("names", await Names(admin), all);
        var runtime = await admin.GetQueuesRuntimePropertiesAsync().Everything();
        Equal("runtime properties", runtime.Select(each => each.Name), all);
        var sizes = new List<int>();
        await foreach (var page in admin.GetQueuesAsync().AsPages(null, 100))
        {
            sizes.Add(page.Values.Count);
        }
        Equal("sizes", sizes, new[] { 100, 100, 5 });
    }

    /// <summary>The subscription counts dead-lettered messages, the topic counts scheduled ones.</summary>
    internal static async Task Counts(Bus bus)
    {
        var admin = bus.Administration();
        var subscription = (await admin.GetSubscriptionAsync("prices", "all")).Value;
        (subscription.DefaultMessageTimeToLive, subscription.DeadLetteringOnMessageExpiration) = (TimeSpan.FromMinutes(1), true);
        await admin.UpdateSubscriptionAsync(subscription);
        await bus.SendTogether("prices", Texts(Numbered(0, 62)));
        await bus.Advance(61);
        await bus.Send("prices", new("active"), new("later") { ScheduledEnqueueTime = Later(3600) });
        var shown = (await admin.GetSubscriptionRuntimePropertiesAsync("prices", "all")).Value;
        Equal("subscription", (shown.ActiveMessageCount, shown.DeadLetterMessageCount, shown.TotalMessageCount), (1, 62, 63));
        var listed = await admin.GetSubscriptionsRuntimePropertiesAsync("prices").Everything();
        Equal("in a list", listed.Single(each => each.SubscriptionName == "all").DeadLetterMessageCount, 62);
        var topic = (await admin.GetTopicRuntimePropertiesAsync("prices")).Value;
        Equal("topic", (topic.ScheduledMessageCount, topic.SizeInBytes > 0), (1, true));
        await bus.Send("orders", new Message("m"));
        var queue = (await admin.GetQueueRuntimePropertiesAsync("orders")).Value;
        Equal("queue", (queue.ActiveMessageCount, queue.TotalMessageCount), (1, 1));
        True("the times are in order", queue.CreatedAt < queue.UpdatedAt && queue.UpdatedAt < queue.AccessedAt);
    }

    /// <summary>A missing entity is not found, whatever the text of the error.</summary>
    internal static async Task Missing(Bus bus)
    {
        var admin = bus.Administration();
        foreach (var call in new Func<Task>[]
        {
            () => admin.GetQueueAsync("missing"),
            () => admin.GetTopicAsync("missing"),
            () => admin.GetSubscriptionAsync("missing", "all"),
            () => admin.GetSubscriptionAsync("prices", "missing"),
            () => admin.GetRuleAsync("prices", "all", "missing"),
            () => admin.GetQueueRuntimePropertiesAsync("missing"),
            () => admin.DeleteQueueAsync("missing"),
            () => admin.DeleteSubscriptionAsync("prices", "missing"),
            () => admin.DeleteRuleAsync("prices", "all", "missing"),
            () => admin.CreateSubscriptionAsync("missing", "new"),
        })
        {
            await IsMissing(call());
        }
        Equal("whether they exist", await Exist(admin, "missing", "orders"), new[] { false, true });
        var queue = (await admin.GetQueueAsync("orders")).Value;
        await admin.DeleteQueueAsync("orders");
        await IsMissing(admin.UpdateQueueAsync(queue));
    }

    /// <summary>A name can be used once.</summary>
    internal static async Task Conflicts(Bus bus)
    {
        var admin = bus.Administration();
        foreach (var call in new Func<Task>[]
        {
            () => admin.CreateQueueAsync("ORDERS"),
            () => admin.CreateTopicAsync("orders"),
            () => admin.CreateQueueAsync("prices"),
            () => admin.CreateSubscriptionAsync("prices", "all"),
            () => admin.CreateRuleAsync("prices", "all", new CreateRuleOptions("$Default")),
        })
        {
            await Fails(Reason.MessagingEntityAlreadyExists, call());
        }
    }

    /// <summary>Invalid properties are rejected with the reason; the SDK itself rejects most of them.</summary>
    internal static async Task Refused(Bus bus)
    {
        var admin = bus.Administration();
        var slow = new CreateQueueOptions("new") { LockDuration = TimeSpan.FromMinutes(5), MaxSizeInMegabytes = 7 };
        await Fails<ArgumentException>(admin.CreateQueueAsync(slow), "MaxSizeInMegabytes");
        var lost = new CreateQueueOptions("new") { ForwardTo = "missing" };
        await Fails<ArgumentException>(admin.CreateQueueAsync(lost), "doesn't exist");
        var rule = new CreateRuleOptions("new", new SqlRuleFilter("price >"));
        await Fails<ArgumentException>(admin.CreateRuleAsync("prices", "all", rule), "cannot be understood");
        Equal("whether it exists", await Exist(admin, "new"), new[] { false });
    }

    /// <summary>A client without a key cannot read or change entities.</summary>
    internal static async Task WrongKey(Bus bus)
    {
        var stranger = bus.Administration(bus.AdministrationConnectionString.Replace("SAS_KEY_VALUE", "wrong"));
        await Fails<UnauthorizedAccessException>(stranger.GetQueueAsync("orders"));
        await Fails<UnauthorizedAccessException>(stranger.DeleteQueueAsync("orders"));
        await Fails<UnauthorizedAccessException>(stranger.CreateQueueAsync("new"));
        Equal("whether they exist", await Exist(bus.Administration(), "orders", "new"), new[] { true, false });
    }

    /// <summary>Clients send to and receive from a created entity.</summary>
    internal static async Task UsedAtOnce(Bus bus)
    {
        var admin = bus.Administration();
        await admin.CreateTopicAsync("new");
        await admin.CreateSubscriptionAsync("new", "one");
        await bus.Send("new", new Message("m"));
        await using (var receiver = bus.Subscriber("new", "one"))
        {
            await Sessions.Next(receiver, "m");
        }
        Equal("left", (await admin.GetSubscriptionRuntimePropertiesAsync("new", "one")).Value.TotalMessageCount, 0);
    }

    private static IEnumerable<string> Numbers => Enumerable.Range(0, 203).Select(each => $"a{each:D3}");

    private static async Task<IEnumerable<string>> Names(ServiceBusAdministrationClient admin) =>
        (await admin.GetQueuesAsync().Everything()).Select(each => each.Name);

    private static async Task<bool[]> Exist(ServiceBusAdministrationClient admin, params string[] queues) =>
        (await Task.WhenAll(queues.Select(each => admin.QueueExistsAsync(each)))).Select(each => each.Value).ToArray();
}

using Azure.Messaging.ServiceBus.Administration;

/// <summary>
/// The rules of a subscription, created, listed and deleted by its rule manager.
///
/// Source: topic-filters, service-bus-amqp-request-response (add, remove and enumerate rules). The subscriptions are those of the
/// topics' cases.
/// </summary>
internal static class Rules
{
    /// <summary>A subscription starts with <c>$Default</c>; one in the configuration has its own rules instead.</summary>
    internal static async Task Configured(Bus bus)
    {
        await Are(bus, "prices", "all", new CreateRuleOptions("$Default", new TrueRuleFilter()));
        await Are(bus, "prices", "cheap", new CreateRuleOptions("below-ten", new SqlRuleFilter("price < 10")));
        var filter = new CorrelationRuleFilter { Subject = "changed", ApplicationProperties = { ["region"] = "eu" } };
        await Are(bus, "prices", "eu", new CreateRuleOptions("of-the-eu", filter));
        var action = "SET level = level + 1; SET sys.Label = 'raised'; SET seen = TRUE; REMOVE secret";
        await Are(
            bus, "alarms", "marked", new CreateRuleOptions("plain", new SqlRuleFilter("level >= 2")),
            new CreateRuleOptions("plain-too", new SqlRuleFilter("level >= 1")),
            new CreateRuleOptions("raised", new SqlRuleFilter("level = 2")) { Action = new SqlRuleAction(action) });
    }

    /// <summary>Added rules are listed as they were created, filters and actions with every type of value.</summary>
    internal static async Task Enumerates(Bus bus)
    {
        var whole = new CorrelationRuleFilter
        {
            CorrelationId = "c", MessageId = "m", To = "t", ReplyTo = "r", Subject = "s", SessionId = "i", ReplyToSessionId = "ri",
            ContentType = "text/plain",
            ApplicationProperties =
            {
                ["text"] = "x", ["number"] = 5, ["long"] = 5L, ["float"] = 1.5, ["yes"] = true, ["id"] = Guid.NewGuid(),
                ["at"] = new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc),
            },
        };
        var rules = new[]
        {
            new CreateRuleOptions("$Default", new TrueRuleFilter()),
            new CreateRuleOptions("by-price", new SqlRuleFilter("Price >= 10 AND [my region] LIKE 'e%'")),
            new CreateRuleOptions("marked", new SqlRuleFilter("TRUE = TRUE")) { Action = new SqlRuleAction("SET seen = 1") },
            new CreateRuleOptions("never", new FalseRuleFilter()),
            new CreateRuleOptions("whole", whole),
            new CreateRuleOptions("whole-marked", new CorrelationRuleFilter { Subject = "s" })
            {
                Action = new SqlRuleAction("REMOVE price;"),
            },
        };
        var manager = bus.Client.CreateRuleManager("prices", "all");
        foreach (var rule in rules.Skip(1))
        {
            await manager.CreateRuleAsync(rule);
        }
        await Are(bus, "prices", "all", rules);
    }

    /// <summary>Rules apply to messages that are sent later; without rules, no message arrives.</summary>
    internal static async Task TakesEffect(Bus bus)
    {
        static Message Greeting(string body, string subject)
        {
            var message = Price(body, 5);
            message.Subject = subject;
            return message;
        }
        var manager = bus.Client.CreateRuleManager("prices", "all");
        await bus.Send("prices", Price("before", 50));
        await manager.DeleteRuleAsync("$Default");
        await Are(bus, "prices", "all");
        await bus.Send("prices", Price("none", 50));
        await manager.CreateRuleAsync("dear", new SqlRuleFilter("price > 10"));
        var correlation = new CorrelationRuleFilter { Subject = "hello", ApplicationProperties = { ["price"] = 5 } };
        await manager.CreateRuleAsync("greeting", correlation);
        await bus.Send("prices", Price("dear", 11), Price("cheap", 9), Price("five", 5));
        await bus.Send("prices", Greeting("greeting", "hello"), Greeting("both", "Hello"));
        await manager.DeleteRuleAsync("dear");
        await bus.Send("prices", Price("dear too late", 11));
        var receiver = bus.Subscriber("prices", "all");
        var messages = await receiver.Receive(3);
        Equal("received", messages.Texts(), new[] { "before", "dear", "greeting" });
        await receiver.Complete(messages);
        await receiver.ReceivesNothing();
    }

    /// <summary>An action changes the copy of the message, which contains the name of the rule.</summary>
    internal static async Task Action(Bus bus)
    {
        var change = "SET sys.Label = 'half'; SET price = price / 2; SET region = 'eu'; REMOVE secret";
        var halved = new CreateRuleOptions("halved", new SqlRuleFilter("price >= 10")) { Action = new SqlRuleAction(change) };
        await bus.Client.CreateRuleManager("prices", "all").CreateRuleAsync(halved);
        var sent = Price("a", 30);
        (sent.Subject, sent.ApplicationProperties["secret"]) = ("whole", "s");
        await bus.Send("prices", sent);
        var copies = from each in await bus.Subscriber("prices", "all").Receive(2)
            orderby each.Subject
            select (each.Subject, new Dictionary<string, object>(each.ApplicationProperties));
        Equal("copies", copies, new[]
        {
            ("half", Properties(("price", 15), ("region", "eu"), ("RuleName", "halved"))),
            ("whole", Properties(("price", 30), ("secret", "s"))),
        });
        await bus.Counts("prices/Subscriptions/all", ("active", 2), ("locked", 2));
    }

    /// <summary>A name can be used once; the existing rule stays unchanged.</summary>
    internal static async Task Duplicate(Bus bus)
    {
        var adding = bus.Client.CreateRuleManager("prices", "cheap").CreateRuleAsync("below-ten", new TrueRuleFilter());
        var error = await Fails(Reason.MessagingEntityAlreadyExists, adding);
        True($"{error} has the position", error.Message.Contains("sbemulatorns:Topic:prices|cheap,"));
        await Are(bus, "prices", "cheap", new CreateRuleOptions("below-ten", new SqlRuleFilter("price < 10")));
    }

    /// <summary>A missing rule cannot be deleted.</summary>
    internal static async Task Unknown(Bus bus)
    {
        var manager = bus.Client.CreateRuleManager("prices", "all");
        await IsMissing(manager.DeleteRuleAsync("missing"));
        await manager.DeleteRuleAsync("$Default");
        await IsMissing(manager.DeleteRuleAsync("$Default"));
    }

    /// <summary>A rule with an invalid filter or action is rejected.</summary>
    internal static async Task Malformed(Bus bus)
    {
        var manager = bus.Client.CreateRuleManager("prices", "all");
        foreach (var condition in new[] { "price <", "price = 'open", "sys.Nothing = 1" })
        {
            await Fails<ArgumentException>(manager.CreateRuleAsync("wrong", new SqlRuleFilter(condition)));
        }
        var dropping = new CreateRuleOptions("wrong", new TrueRuleFilter()) { Action = new SqlRuleAction("DROP price") };
        await Fails<ArgumentException>(manager.CreateRuleAsync(dropping));
        await Are(bus, "prices", "all", new CreateRuleOptions("$Default", new TrueRuleFilter()));
    }

    /// <summary>Only a subscription that exists has rules.</summary>
    internal static async Task NotFound(Bus bus)
    {
        foreach (var (topic, subscription) in new[] { ("missing", "all"), ("prices", "missing") })
        {
            await IsMissing(bus.Client.CreateRuleManager(topic, subscription).GetRulesAsync().Everything());
        }
    }

    /// <summary>The rules of a subscription, in the order of their names.</summary>
    internal static async Task Are(Bus bus, string topic, string subscription, params CreateRuleOptions[] expected)
    {
        var rules = await bus.Client.CreateRuleManager(topic, subscription).GetRulesAsync().Everything();
        var ordered = rules.OrderBy(each => each.Name, StringComparer.Ordinal).ToArray();
        Equal("names", ordered.Select(each => each.Name), expected.Select(each => each.Name));
        foreach (var (rule, other) in ordered.Zip(expected))
        {
            True($"{rule.Filter} is {other.Filter}", rule.Filter.Equals(other.Filter));
            True($"{rule.Action} is {other.Action}", rule.Action?.Equals(other.Action) ?? other.Action == null);
        }
    }
}

/// <summary>
/// Topics: subscriptions receive the messages that their rules match.
///
/// Source: service-bus-queues-topics-subscriptions, topic-filters, service-bus-auto-forwarding, duplicate-detection,
/// service-bus-dead-letter-queues. <c>prices</c> has the subscriptions <c>all</c>, <c>cheap</c> (price &lt; 10) and <c>eu</c>
/// (subject and region are equal); <c>alarms</c> has <c>marked</c>, which has two rules without an action and one with;
/// <c>jobs</c> has <c>limited</c>, of two deliveries; <c>calls</c> finds duplicates and has <c>to-orders</c> and
/// <c>complaints</c>, which forward; the rules of <c>checks</c> can fail.
/// </summary>
internal static class Topics
{
    /// <summary>Every subscription that matches a message has its own copy, with its own sequence number.</summary>
    internal static async Task FansOut(Bus bus)
    {
        var second = Price("b", 8);
        (second.MessageId, second.CorrelationId, second.Subject) = ("p-17", "c", "changed");
        await bus.Send("prices", Price("a", 12), second);
        await bus.Counts("prices/Subscriptions/all", ("active", 2));
        await bus.Counts("prices/Subscriptions/cheap", ("active", 1));
        await bus.Counts("prices/Subscriptions/eu", ("active", 0));
        foreach (var (subscription, number) in new[] { ("all", 2), ("cheap", 1) })
        {
            var receiver = bus.Subscriber("prices", subscription);
            var messages = await receiver.Receive(number);
            var message = messages.Last();
            var seen = (message.Text(), message.MessageId, message.CorrelationId, message.Subject, message.Deliveries());
            Equal("message", seen, ("b", "p-17", "c", "changed", 0));
            Equal("application properties", message.ApplicationProperties, Properties(("price", 8)));
            Equal("number, and that in the topic", (message.SequenceNumber, message.EnqueuedSequenceNumber), (number, 2));
            await receiver.Complete(messages);
            await receiver.ReceivesNothing();
        }
        await bus.Counts("prices/Subscriptions/all", ("active", 0), ("locked", 0));
    }

    /// <summary>The messages of a batch are matched separately; values are compared by type, texts by case.</summary>
    internal static async Task Filtered(Bus bus)
    {
        static Message Of(string region, string subject, int price) => new(region)
        {
            Subject = subject, ApplicationProperties = { ["price"] = price, ["region"] = region },
        };
        await bus.SendTogether(
            "prices", Price("text", "5"), Price("float", 9.5), Price("exact", 9.99m), Price("dear", 10.01m), new("none"),
            Of("eu", "changed", 20), Of("EU", "changed", 20), Of("eu", "new", 10));
        foreach (var (subscription, expected) in new[]
        {
            ("all", new[] { "text", "float", "exact", "dear", "none", "eu", "EU", "eu" }),
            ("cheap", new[] { "float", "exact" }), ("eu", new[] { "eu" }),
        })
        {
            var receiver = bus.Subscriber("prices", subscription, deletes: true);
            Equal($"received from {subscription}", (await receiver.Receive(expected.Length)).Texts(), expected);
            await receiver.ReceivesNothing();
        }
    }

    /// <summary>Rules without an action create one copy together; one with an action creates another, changed copy.</summary>
    internal static async Task Actions(Bus bus)
    {
        var fire = new Message("fire")
        {
            Subject = "new", ApplicationProperties = { ["level"] = 2, ["secret"] = "s", ["kept"] = "k" },
        };
        var smoke = new Message("smoke") { ApplicationProperties = { ["level"] = 1 } };
        await bus.Send("alarms", fire, smoke);
        var receiver = bus.Subscriber("alarms", "marked");
        var messages = await receiver.Receive(3);
        var copies = from each in messages
            orderby each.Text(), each.Subject
            select (each.Text(), each.Subject, new Dictionary<string, object>(each.ApplicationProperties));
        var changed = Properties(("level", 3), ("kept", "k"), ("seen", true), ("RuleName", "raised"));
        Equal("copies", copies, new[]
        {
            ("fire", "new", Properties(("level", 2), ("secret", "s"), ("kept", "k"))), ("fire", "raised", changed),
            ("smoke", null, Properties(("level", 1))),
        });
        await receiver.Complete(messages);
    }

    /// <summary>A subscription's messages are settled like a queue's, independently of other copies.</summary>
    internal static async Task Settled(Bus bus)
    {
        await bus.Send("prices", Price("a", 1), Price("b", 2), Price("c", 3));
        var receiver = bus.Subscriber("prices", "all");
        var messages = await receiver.Receive(3);
        await receiver.RenewMessageLockAsync(messages[0]);
        await receiver.Complete(messages[0]);
        await receiver.DeferMessageAsync(messages[1]);
        await receiver.AbandonMessageAsync(messages[2]);
        await bus.Counts("prices/Subscriptions/all", ("active", 2), ("deferred", 1), ("locked", 0));
        var again = await receiver.One();
        Equal("abandoned", (again.Text(), again.Deliveries()), ("c", 1));
        await receiver.Complete(again);
        var peeked = (await receiver.Peek()).Select(each => (each.Text(), each.State));
        Equal("peeked", peeked, new[] { ("b", ServiceBusMessageState.Deferred) });
        await receiver.Complete(await receiver.Deferred(messages[1].SequenceNumber));
        await bus.Counts("prices/Subscriptions/all", ("active", 0), ("deferred", 0), ("locked", 0));
        await bus.Counts("prices/Subscriptions/cheap", ("active", 3));
    }

    /// <summary>Every subscription has a dead-letter queue, for rejected messages, the delivery limit and expired locks.</summary>
    internal static async Task DeadLetters(Bus bus)
    {
        await bus.Send("jobs", Texts("bad", "poison", "stuck"));
        var receiver = bus.Subscriber("jobs", "limited");
        var messages = await receiver.Receive(3);
        await receiver.DeadLetterMessageAsync(messages[0], "Rejected", "no total");
        await receiver.AbandonMessageAsync(messages[1]);
        await receiver.AbandonMessageAsync(await receiver.One());
        await bus.Advance(61);
        var stuck = await receiver.One();
        Equal("delivered again", (stuck.Text(), stuck.Deliveries()), ("stuck", 1));
        await bus.Advance(61);
        await receiver.ReceivesNothing();
        await bus.Counts("jobs/Subscriptions/limited", ("active", 0), ("dead_letter", 3));
        var deadLetters = bus.Subscriber("jobs", "limited", SubQueue.DeadLetter);
        var dead = await deadLetters.Receive(3);
        var limit = "MaxDeliveryCountExceeded";
        var reasons = dead.Select(each => (each.Text(), each.DeadLetterReason));
        Equal("reasons", reasons, new[] { ("bad", "Rejected"), ("poison", limit), ("stuck", limit) });
        Equal("description", dead[0].DeadLetterErrorDescription, "no total");
        await deadLetters.Complete(dead);
        await bus.Counts("jobs/Subscriptions/limited", ("dead_letter", 0));
    }

    /// <summary>A topic keeps scheduled messages; rules evaluate them when they are due, and cancelled ones never.</summary>
    internal static async Task Scheduled(Bus bus)
    {
        var at = Later(300);
        var annotated = Price("annotated", 1);
        annotated.ScheduledEnqueueTime = at;
        await bus.Send("prices", annotated);
        var sender = bus.Sender("prices");
        var numbers = await sender.ScheduleMessagesAsync(new[] { Price("asked", 20), Price("cancelled", 2) }, at);
        await sender.CancelScheduledMessageAsync(numbers[1]);
        await Fails(Reason.MessageNotFound, sender.CancelScheduledMessageAsync(numbers[1]));
        await bus.Counts("prices", ("scheduled", 2));
        await bus.Counts("prices/Subscriptions/all", ("active", 0), ("scheduled", 0));
        await bus.Advance(301);
        await bus.Counts("prices", ("scheduled", 0));
        foreach (var (subscription, expected) in new[] { ("all", new[] { "annotated", "asked" }), ("cheap", new[] { "annotated" }) })
        {
            var receiver = bus.Subscriber("prices", subscription);
            var messages = await receiver.Receive(expected.Length);
            Equal($"received from {subscription}", messages.Texts(), expected);
            Equal("state", messages[0].State, ServiceBusMessageState.Scheduled);
            await receiver.Complete(messages);
        }
    }

    /// <summary>The time to live applies in every subscription separately.</summary>
    internal static async Task Expires(Bus bus)
    {
        var old = Price("old", 1);
        old.TimeToLive = TimeSpan.FromSeconds(30);
        await bus.Send("prices", old);
        var receiver = bus.Subscriber("prices", "all");
        await receiver.Complete(await receiver.One());
        await bus.Advance(31);
        await bus.Subscriber("prices", "cheap").ReceivesNothing();
        await bus.Counts("prices/Subscriptions/cheap", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>A subscription's own time to live applies, and its dead-lettered messages have that reason.</summary>
    internal static async Task ExpiresByDefault(Bus bus)
    {
        await bus.Send("checks", new Message("old"));
        await bus.Advance(301);
        var deadLetters = bus.Subscriber("checks", "fleeting", SubQueue.DeadLetter);
        var message = await deadLetters.One();
        Equal("reason", message.DeadLetterReason, "TTLExpiredException");
        await deadLetters.Complete(message);
    }

    /// <summary>A message whose filter fails is dead-lettered by a subscription configured so; no other subscription gets it.</summary>
    internal static async Task EvaluationErrors(Bus bus)
    {
        static Message Parts(int number) => new($"{number}") { ApplicationProperties = { ["parts"] = number } };
        await bus.Send("checks", Parts(0), Parts(5));
        foreach (var subscription in new[] { "strict", "lenient" })
        {
            var receiver = bus.Subscriber("checks", subscription);
            var message = await receiver.One();
            Equal("body", message.Text(), "5");
            await receiver.Complete(message);
            await receiver.ReceivesNothing();
        }
        await bus.Counts("checks/Subscriptions/lenient", ("dead_letter", 0));
        var deadLetters = bus.Subscriber("checks", "strict", SubQueue.DeadLetter);
        var dead = await deadLetters.One();
        Equal("dead letter", (dead.Text(), dead.DeadLetterReason), ("0", "FilterException"));
        await deadLetters.Complete(dead);
    }

    /// <summary>A subscription forwards like a queue: messages and dead-lettered messages to different queues.</summary>
    internal static async Task Forwards(Bus bus)
    {
        await bus.Send("calls", new Message("call") { MessageId = "c-1", ApplicationProperties = { ["n"] = 1 } });
        var orders = bus.Receiver("orders");
        var call = await orders.One();
        Equal("message", (call.Text(), call.MessageId, call.DeadLetterSource), ("call", "c-1", (string)null));
        Equal("application properties", call.ApplicationProperties, Properties(("n", 1)));
        await orders.Complete(call);
        var complaints = bus.Subscriber("calls", "complaints");
        await complaints.AbandonMessageAsync(await complaints.One());
        var failures = bus.Receiver("failures");
        var failure = await failures.One();
        var origin = (failure.DeadLetterSource, failure.DeadLetterReason);
        Equal("origin", origin, ("calls/Subscriptions/complaints", "MaxDeliveryCountExceeded"));
        await failures.Complete(failure);
        await Fails<InvalidOperationException>(bus.Subscriber("calls", "to-orders").TryReceive());
    }

    /// <summary>A topic drops a duplicate message for all its subscriptions.</summary>
    internal static async Task Duplicates(Bus bus)
    {
        static Message Identified(string body) => new(body) { MessageId = "c-1" };
        await bus.Send("calls", Identified("first"), Identified("again"));
        await bus.Advance(301);
        await bus.Send("calls", Identified("late"));
        var receiver = bus.Subscriber("calls", "complaints");
        var messages = await receiver.Receive(2);
        Equal("bodies", messages.Texts(), new[] { "first", "late" });
        await receiver.Complete(messages);
        await receiver.ReceivesNothing();
    }

    /// <summary>Names are case-insensitive.</summary>
    internal static async Task Addresses(Bus bus)
    {
        await bus.Send("PRICES", Price("a", 1));
        var receiver = bus.Receiver("Prices/subscriptions/ALL");
        await receiver.Complete(await receiver.One());
        await bus.Counts("prices/Subscriptions/all", ("active", 0));
    }

    /// <summary>Clients cannot send to a subscription or receive from a topic.</summary>
    internal static async Task WrongDirection(Bus bus)
    {
        await Fails<InvalidOperationException>(bus.Send("prices/Subscriptions/all", new Message("lost")));
        await Fails<InvalidOperationException>(bus.Receiver("prices").TryReceive());
        await Fails<InvalidOperationException>(bus.DeadLetters("prices").TryReceive());
        await bus.Counts("prices/Subscriptions/all", ("active", 0));
    }

    /// <summary>A topic or subscription that does not exist, and a subscription of a queue.</summary>
    internal static async Task NotFound(Bus bus)
    {
        await IsMissing(bus.Send("missing", new Message("lost")));
        foreach (var (topic, subscription) in new[] { ("missing", "all"), ("prices", "missing"), ("orders", "all") })
        {
            await IsMissing(bus.Subscriber(topic, subscription).TryReceive());
            await IsMissing(bus.Subscriber(topic, subscription).Peek());
        }
    }
}

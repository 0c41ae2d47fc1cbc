/// <summary>Settling: complete, abandon up to the delivery limit, dead-letter.</summary>
internal static class Settle
{
    /// <summary>A completed message is removed, and its lock is lost.</summary>
    internal static async Task Completes(Bus bus)
    {
        await bus.Send("orders", new Message("done"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        await receiver.Complete(message);
        await Fails(Reason.MessageLockLost, receiver.AbandonMessageAsync(message));
        await bus.Counts("orders", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>An abandoned message is available again at once, counted, at its old position and with new properties.</summary>
    internal static async Task Abandons(Bus bus)
    {
        var first = new Message("first") { ApplicationProperties = { ["kept"] = "k", ["changed"] = 1 } };
        await bus.Send("orders", first, new Message("second"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        await receiver.AbandonMessageAsync(message, Properties(("changed", 2), ("added", "a")));
        var messages = await receiver.Receive(2);
        var seen = messages.Select(each => (each.Text(), each.Deliveries(), each.SequenceNumber));
        Equal("messages", seen, new[] { ("first", 1, 1), ("second", 0, 2) });
        var properties = Properties(("kept", "k"), ("changed", 2), ("added", "a"));
        Equal("application properties", messages[0].ApplicationProperties, properties);
        True("the lock is another", messages[0].LockToken != message.LockToken);
        await receiver.Complete(messages);
    }

    /// <summary>After the last delivery that a queue allows, a message is dead-lettered and keeps its delivery count (D4).</summary>
    internal static async Task AbandonsToTheLimit(Bus bus)
    {
        await bus.Send("limited", new Message("poison") { MessageId = "p-1" });
        var receiver = bus.Receiver("limited");
        for (var deliveries = 0; deliveries < 3; deliveries++)
        {
            var message = await receiver.One();
            Equal("deliveries", message.Deliveries(), deliveries);
            await receiver.AbandonMessageAsync(message);
        }
        await bus.Counts("limited", ("active", 0), ("dead_letter", 1));
        var deadLetters = bus.DeadLetters("limited");
        var dead = await deadLetters.One();
        var description = "Message could not be consumed after 3 delivery attempts.";
        Equal("reason", (dead.DeadLetterReason, dead.DeadLetterErrorDescription), ("MaxDeliveryCountExceeded", description));
        Equal("message", (dead.MessageId, dead.Deliveries()), ("p-1", 3));
        await deadLetters.Complete(dead);
        await bus.Counts("limited", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>A dead-lettered message has the application's reason and the properties that it changed.</summary>
    internal static async Task DeadLetters(Bus bus)
    {
        await bus.Send("orders", new Message("bad") { ApplicationProperties = { ["kept"] = 1, ["changed"] = "before" } });
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        var changes = Properties(("changed", "after"), ("added", true));
        await receiver.DeadLetterMessageAsync(message, changes, "Rejected", "no total");
        var deadLetters = bus.DeadLetters("orders");
        var dead = await deadLetters.One();
        Equal("reason", (dead.DeadLetterReason, dead.DeadLetterErrorDescription), ("Rejected", "no total"));
        Equal("message", (dead.Text(), dead.Deliveries(), dead.DeadLetterSource), ("bad", 0, (string)null));
        var kept = dead.ApplicationProperties.Where(each => !each.Key.StartsWith("DeadLetter"));
        Equal("application properties", kept, Properties(("kept", 1), ("changed", "after"), ("added", true)));
        await deadLetters.Complete(dead);
    }
}

/// <summary>Locks: renewed in time, or lost with the SDK's own error.</summary>
internal static class Locks
{
    /// <summary>A lock renewed in time lasts longer than its first minute.</summary>
    internal static async Task Renews(Bus bus)
    {
        await bus.Send("orders", new Message("slow"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        for (var renewal = 0; renewal < 2; renewal++)
        {
            await bus.Advance(40);
            await receiver.RenewMessageLockAsync(message);
            FreshLock(message.LockedUntil);
        }
        await bus.Advance(40);
        await receiver.Complete(message);
    }

    /// <summary>Settling after the lock has expired raises the SDK's error, and the message is redelivered and counted.</summary>
    internal static async Task LosesLock(Bus bus)
    {
        await bus.Send("orders", new Message("late"));
        var receiver = bus.Receiver("orders");
        var settlements = new Func<Received, Task>[]
        {
            each => receiver.CompleteMessageAsync(each),
            each => receiver.AbandonMessageAsync(each),
            each => receiver.DeadLetterMessageAsync(each),
        };
        foreach (var settle in settlements)
        {
            var message = await receiver.One();
            await bus.Advance(61);
            await Fails(Reason.MessageLockLost, settle(message));
        }
        var late = await receiver.One();
        Equal("message", (late.Text(), late.Deliveries()), ("late", 3));
        await receiver.Complete(late);
    }

    /// <summary>Renewing after the lock has expired raises the same error.</summary>
    internal static async Task LosesLockOnRenewal(Bus bus)
    {
        await bus.Send("orders", new Message("late"));
        var receiver = bus.Receiver("orders");
        var message = await receiver.One();
        await bus.Advance(61);
        await Fails(Reason.MessageLockLost, receiver.RenewMessageLockAsync(message));
        var again = await receiver.One();
        Equal("deliveries", again.Deliveries(), 1);
        await receiver.Complete(again);
    }

    /// <summary>Expired locks count as deliveries, as abandons do, until the message is dead-lettered.</summary>
    internal static async Task ExpiresToTheLimit(Bus bus)
    {
        await bus.Send("limited", new Message("forgotten"));
        var receiver = bus.Receiver("limited");
        for (var deliveries = 0; deliveries < 3; deliveries++)
        {
            Equal("deliveries", (await receiver.One()).Deliveries(), deliveries);
            await bus.Advance(61);
        }
        var deadLetters = bus.DeadLetters("limited");
        var dead = await deadLetters.One();
        Equal("dead letter", (dead.DeadLetterReason, dead.Deliveries()), ("MaxDeliveryCountExceeded", 3));
        await deadLetters.Complete(dead);
    }
}

/// <summary>The dead-letter queue: clients receive from it as from any queue, until it is empty.</summary>
internal static class DeadLetter
{
    /// <summary>Every dead-lettered message is received in order, with its reason, and then removed.</summary>
    internal static async Task Drains(Bus bus)
    {
        await Fill(bus, 5);
        var receiver = bus.DeadLetters("orders");
        var reasons = Enumerable.Range(0, 5).Select(each => $"R{each}").ToArray();
        Equal("reasons peeked", (await receiver.Peek()).Select(each => each.DeadLetterReason), reasons);
        var messages = await receiver.Receive(5);
        var expected = reasons.Zip(Numbered(0, 5));
        Equal("messages", messages.Select(each => (each.DeadLetterReason, each.Text())), expected);
        await receiver.Complete(messages);
        await receiver.ReceivesNothing();
        Equal("peeked afterwards", (await bus.DeadLetters("orders").Peek()).Length, 0);
        await bus.Counts("orders", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>Receive-and-delete also empties a dead-letter queue.</summary>
    internal static async Task DrainsDestructively(Bus bus)
    {
        await Fill(bus, 3);
        var messages = await bus.DeadLetters("orders", deletes: true).Receive(3);
        Equal("bodies", messages.Texts(), Numbered(0, 3));
        await bus.Counts("orders", ("active", 0), ("dead_letter", 0));
    }

    /// <summary>Dead-letters this number of messages, each with its own reason.</summary>
    private static async Task Fill(Bus bus, int count)
    {
        await bus.SendTogether("orders", Texts(Numbered(0, count)));
        var receiver = bus.Receiver("orders");
        foreach (var (message, index) in (await receiver.Receive(count)).Select((each, index) => (each, index)))
        {
            await receiver.DeadLetterMessageAsync(message, $"R{index}");
        }
        await bus.Counts("orders", ("active", 0), ("dead_letter", count));
    }
}

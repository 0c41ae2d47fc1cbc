/// <summary>
/// Deferred messages, which are received only by their sequence numbers.
///
/// Source: message-deferral.
/// </summary>
internal static class Deferral
{
    /// <summary>Receives skip a deferred message, peeks and counts do not; it is received and locked by its sequence number.</summary>
    internal static async Task ByNumber(Bus bus)
    {
        await bus.Send("orders", Texts("a", "b"));
        var receiver = bus.Receiver("orders");
        await receiver.Defer(2);
        await bus.Counts("orders", ("active", 2), ("deferred", 2), ("locked", 0));
        await receiver.ReceivesNothing();
        var states = (await receiver.Peek()).Select(each => each.State);
        Equal("states", states, new[] { ServiceBusMessageState.Deferred, ServiceBusMessageState.Deferred });
        var messages = await receiver.ReceiveDeferredMessagesAsync(new[] { 2L, 1 });
        Equal("bodies in the requested order", messages.Texts(), new[] { "b", "a" });
        await bus.Counts("orders", ("locked", 2));
        await receiver.Complete(messages.ToArray());
        await bus.Counts("orders", ("active", 0), ("deferred", 0), ("locked", 0));
    }

    /// <summary>A receive-and-delete receiver also deletes deferred messages.</summary>
    internal static async Task ReceiveAndDelete(Bus bus)
    {
        await bus.Send("orders", new Message("a"));
        await bus.Receiver("orders").Defer();
        var message = await bus.Receiver("orders", deletes: true).Deferred();
        Equal("body", message.Text(), "a");
        await bus.Counts("orders", ("active", 0), ("deferred", 0));
    }

    /// <summary>A deferred message stays deferred when it is abandoned or deferred again, or its lock expires.</summary>
    internal static async Task StaysDeferred(Bus bus)
    {
        await bus.Send("orders", new Message("a"));
        var receiver = bus.Receiver("orders");
        await receiver.Defer();
        await receiver.AbandonMessageAsync(await receiver.Deferred());
        var message = await receiver.Deferred();
        Equal("deliveries after an abandon", message.Deliveries(), 2);
        await receiver.DeferMessageAsync(message);
        message = await receiver.Deferred();
        Equal("deliveries after a deferral", message.Deliveries(), 3);
        await bus.Advance(61);
        await Fails(Reason.MessageLockLost, receiver.CompleteMessageAsync(message));
        await receiver.ReceivesNothing();
        message = await receiver.Deferred();
        Equal("deliveries after the lock's end", message.Deliveries(), 4);
        await receiver.RenewMessageLockAsync(message);
        await receiver.Complete(message);
        await bus.Counts("orders", ("active", 0), ("deferred", 0));
    }

    /// <summary>Deferring changes properties, and so does every later settlement that keeps the message.</summary>
    internal static async Task Properties(Bus bus)
    {
        await bus.Send("orders", new Message("a") { ApplicationProperties = { ["kept"] = "k", ["changed"] = 1 } });
        var receiver = bus.Receiver("orders");
        var changes = Messages.Properties(("changed", 2), ("deferred", true));
        await receiver.DeferMessageAsync(await receiver.One(), changes);
        var message = await receiver.Deferred();
        var expected = Messages.Properties(("kept", "k"), ("changed", 2), ("deferred", true));
        Equal("after a deferral", message.ApplicationProperties, expected);
        await receiver.AbandonMessageAsync(message, Messages.Properties(("changed", 3)));
        message = await receiver.Deferred();
        expected["changed"] = 3;
        Equal("after an abandon", message.ApplicationProperties, expected);
        await receiver.DeadLetterMessageAsync(message, Messages.Properties(("changed", 4)), "Rejected");
        var deadLetters = bus.DeadLetters("orders");
        var dead = await deadLetters.One();
        Equal("dead letter", (dead.DeadLetterReason, dead.ApplicationProperties["changed"]), ("Rejected", 4));
        await deadLetters.Complete(dead);
    }

    /// <summary>A deferred message is dead-lettered by its receiver, or after its last delivery.</summary>
    internal static async Task DeadLettered(Bus bus)
    {
        await bus.Send("limited", Texts("bad", "poison"));
        var receiver = bus.Receiver("limited");
        await receiver.Defer(2);
        await receiver.DeadLetterMessageAsync(await receiver.Deferred(), "Rejected", "no total");
        // Deferring was the first delivery (observed 10).
        for (var delivery = 0; delivery < 2; delivery++)
        {
            await receiver.AbandonMessageAsync(await receiver.Deferred(2));
        }
        await bus.Counts("limited", ("active", 0), ("deferred", 0), ("dead_letter", 2));
        var deadLetters = bus.DeadLetters("limited");
        var messages = await deadLetters.Receive(2);
        var reasons = messages.Select(each => (each.Text(), each.DeadLetterReason));
        Equal("reasons", reasons, new[] { ("bad", "Rejected"), ("poison", "MaxDeliveryCountExceeded") });
        await deadLetters.Complete(messages);
    }

    /// <summary>A dead-lettered message can be deferred.</summary>
    internal static async Task OfDeadLetters(Bus bus)
    {
        await bus.Send("orders", new Message("bad"));
        var receiver = bus.Receiver("orders");
        await receiver.DeadLetterMessageAsync(await receiver.One());
        var deadLetters = bus.DeadLetters("orders");
        var dead = await deadLetters.One();
        await deadLetters.DeferMessageAsync(dead);
        await deadLetters.ReceivesNothing();
        await deadLetters.Complete(await deadLetters.Deferred(dead.SequenceNumber));
        await bus.Counts("orders", ("dead_letter", 0));
    }

    /// <summary>Unknown, active and locked messages are not found, and either all messages are received or none.</summary>
    internal static async Task NotFound(Bus bus)
    {
        await bus.Send("orders", Texts("deferred", "active"));
        var receiver = bus.Receiver("orders");
        Task Refused(params long[] numbers) => Fails(Reason.MessageNotFound, receiver.ReceiveDeferredMessagesAsync(numbers));
        await receiver.Defer();
        await Refused(4711);
        await Refused(2);
        await Refused(1, 4711);
        var message = await receiver.Deferred();
        await Refused(1);
        await receiver.Complete(message);
        await Refused(1);
    }

    /// <summary>An expired deferred message is kept until it is requested: then it is not found, and is removed (D9).</summary>
    internal static async Task Expired(Bus bus)
    {
        foreach (var (queue, deadLetters) in new[] { ("expiring", 1), ("orders", 0) })
        {
            await bus.Send(queue, Expiry.ShortLived("old"));
            var receiver = bus.Receiver(queue);
            await receiver.Defer();
            await bus.Advance(31);
            await receiver.ReceivesNothing();
            await bus.Counts(queue, ("deferred", 1), ("dead_letter", 0));
            await Fails(Reason.MessageNotFound, receiver.Deferred());
            await bus.Counts(queue, ("deferred", 0), ("dead_letter", deadLetters));
        }
    }
}

/// <summary>
/// Duplicate detection: a message whose id was seen within the window is accepted, and dropped.
///
/// Source: duplicate-detection. The queue <c>unique</c> remembers ids for five minutes.
/// </summary>
internal static class Duplicates
{
    /// <summary>The second of two messages with one id is dropped without an error; ids are case-sensitive.</summary>
    internal static async Task Dropped(Bus bus)
    {
        await bus.Send("unique", Identified("first", "a"), Identified("second", "a"), Identified("third", "A"));
        await Arrive(bus, "first", "third");
    }

    /// <summary>An id is remembered after its message was completed, for the window since its arrival.</summary>
    internal static async Task Window(Bus bus)
    {
        await bus.Send("unique", Identified("first", "a"));
        await Arrive(bus, "first");
        await bus.Advance(240);
        await bus.Send("unique", Identified("again", "a"));
        await Arrive(bus);
        await bus.Advance(61);
        await bus.Send("unique", Identified("anew", "a"));
        await Arrive(bus, "anew");
    }

    /// <summary>A scheduled message counts from its acceptance, both before and after another message.</summary>
    internal static async Task Scheduled(Bus bus)
    {
        var sender = bus.Sender("unique");
        await sender.ScheduleMessageAsync(Identified("scheduled", "a"), Later(60));
        await sender.SendMessageAsync(Identified("plain", "a"));
        await sender.SendMessageAsync(Identified("plain", "b"));
        await sender.ScheduleMessageAsync(Identified("scheduled", "b"), Later(60));
        await bus.Counts("unique", ("active", 1), ("scheduled", 1));
        await bus.Advance(61);
        await Arrive(bus, "plain", "scheduled");
    }

    /// <summary>Each message of a batch is compared with the others and with earlier messages.</summary>
    internal static async Task Batch(Bus bus)
    {
        await bus.Send("unique", Identified("first", "a"));
        await bus.SendTogether("unique", Identified("again", "a"), Identified("second", "b"), Identified("twice", "b"));
        await Arrive(bus, "first", "second");
    }

    /// <summary>Messages without an id are not duplicates of each other: the broker generates an id for each (D30).</summary>
    internal static async Task WithoutId(Bus bus)
    {
        await bus.Send("unique", Texts("x", "x"));
        await Arrive(bus, "x", "x");
    }

    private static Message Identified(string body, string id) => new(body) { MessageId = id };

    /// <summary>Receives and completes all messages of the queue.</summary>
    private static async Task Arrive(Bus bus, params string[] bodies)
    {
        await using var receiver = bus.Receiver("unique");
        var messages = await receiver.Receive(bodies.Length);
        Equal("bodies", messages.Texts(), bodies);
        await receiver.Complete(messages);
        await receiver.ReceivesNothing();
    }
}
